"""
Sets of objects that no metadata knows, as JSON lines on disk and in a list to sign off. Pure.

    {"format": "rlmm-tier-orphans", "version": 1, "store": ..., "madeMs": ...}
    {"topic": "orders", "topicId": ..., "partition": 3, "id": ..., "start": 120, "prefix": "kafka/",
     "objects": ["log", "indexes"], "bytes": 15042, "modifiedMs": ..., "last": null,
     "verdict": "orphan", "proof": "segment-deleted", "why": ...}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.object_names import ObjectKind, main_key, object_key
from spark_tiering.layout.strict_json import JsonFault, plain_values, read_json
from spark_tiering.maintenance.audit.object_set_verdict import OrphanProof, SetVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORMAT: Final = "rlmm-tier-orphans"
VERSION: Final = 1
_LINE_BYTES_MAX: Final = 8_192


class UnknownObjectSet(NamedTuple):
    partition: TopicIdPartition
    uuid: Uuid
    start_offset: int
    prefix: str
    kinds: tuple[ObjectKind, ...]
    size_bytes: int
    modified_ms: int
    last_offset: int | None
    """The last offset by its manifest; None without one that can be read."""
    verdict: SetVerdict
    proof: OrphanProof | None
    why: str

    @property
    def id(self) -> SegmentId:
        return SegmentId(self.partition, self.uuid)

    @property
    def keys(self) -> list[str]:
        """Return the keys of the objects, in the order in which they are written."""
        return [object_key(self.id, self.start_offset, kind, self.prefix) for kind in self.kinds]

    @property
    def main(self) -> str:
        return self.prefix + main_key(self.id, self.start_offset)


class _OrphanLine(msgspec.Struct, rename="camel"):
    topic: str
    topic_id: Uuid
    partition: int
    id: Uuid
    start: int
    prefix: str
    objects: tuple[ObjectKind, ...]
    bytes: int
    modified_ms: int
    last: int | None
    verdict: SetVerdict
    proof: OrphanProof | None
    why: str


def format_loose(one: UnknownObjectSet) -> str:
    at = one.partition
    line = _OrphanLine(at.topic, at.topic_id, at.partition, *one[1:])
    return json.dumps(plain_values(line), separators=(",", ":")) + "\n"


def format_head(store: str, made_ms: int) -> str:
    fields = {"format": FORMAT, "version": VERSION, "store": store, "madeMs": made_ms}
    return json.dumps(fields, separators=(",", ":")) + "\n"


def parse_loose(line: str) -> UnknownObjectSet:
    """Parse a line. Raise `ValueError` for a line that is no set of objects."""
    try:
        one = read_json(line.encode(), _OrphanLine, bytes_max=_LINE_BYTES_MAX)
        partition = TopicIdPartition(one.topic_id, one.topic, one.partition)
        found = UnknownObjectSet(partition, *msgspec.structs.astuple(one)[3:])
        assert found.keys is not None
    except (JsonFault, InvalidArgument) as error:
        raise ValueError(str(error)) from error
    return found


def read_list(
    lines: Iterable[str], where: str, store: str, prefixes: tuple[str, ...]
) -> Iterator[UnknownObjectSet]:
    """Yield the orphans of a list. Raise `ConfigError` for another file, store or prefix."""
    said = iter(lines)
    _check_head(next(said, ""), where, store)
    for number, line in enumerate(said, 2):
        try:
            one = parse_loose(line)
        except ValueError as error:
            msg = f"{where}, line {number}: this is no orphan of a list: {str(error)[:200]}"
            raise ConfigError(msg) from error
        if one.verdict is not SetVerdict.ORPHAN or one.proof is None or not one.kinds:
            msg = f"{where}, line {number}: it is {one.verdict.value}, and only orphans are deleted"
            raise ConfigError(msg)
        if one.prefix not in prefixes:
            msg = f"{where}, line {number}: the prefix {one.prefix!r} is not named: --old-prefix"
            raise ConfigError(msg)
        yield one


def _check_head(line: str, where: str, store: str) -> None:
    try:
        head = json.loads(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        msg = f"{where}: this is no list of orphans: `rlmm tier audit --save-orphans` makes one"
        raise ConfigError(msg)
    if head.get("version") != VERSION:
        raise ConfigError(f"{where}: a list of version {head.get('version')!r}, known is {VERSION}")
    if head.get("store") != store:
        raise ConfigError(f"{where}: a list of orphans of {head.get('store')!r}, not of {store}")
