"""
Sets of objects that no metadata knows of, as lines of JSON: so they wait on disk, and so a list of
orphans is kept to be signed off. Pure.

    {"format": "rlmm-tier-orphans", "version": 1, "store": ..., "madeMs": ...}
    {"topic": "orders", "topicId": ..., "partition": 3, "id": ..., "start": 120, "prefix": "kafka/",
     "objects": ["log", "indexes"], "bytes": 15042, "modifiedMs": ..., "last": null,
     "verdict": "orphan", "proof": "segment-deleted", "why": ...}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rlmm.errors import ConfigError, InvalidArgument
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.object_names import ObjectKind, main_key, object_key
from spark_tiering.maintenance.audit.verdicts import OrphanProof, SetVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORMAT: Final = "rlmm-tier-orphans"
VERSION: Final = 1
_LINE_MAX: Final = 8_192


class UnknownObjectSet(NamedTuple):
    """One such set."""

    partition: TopicIdPartition
    uuid: Uuid
    start_offset: int
    prefix: str
    kinds: tuple[ObjectKind, ...]
    size_bytes: int
    modified_ms: int
    last_offset: int | None
    """As its manifest says; None where there is none, or none that can be read."""
    verdict: SetVerdict
    proof: OrphanProof | None
    why: str

    @property
    def id(self) -> SegmentId:
        """Whose objects they are, by their names."""
        return SegmentId(self.partition, self.uuid)

    @property
    def keys(self) -> list[str]:
        """Of the objects, in the order in which they are written."""
        return [object_key(self.id, self.start_offset, kind, self.prefix) for kind in self.kinds]

    @property
    def main(self) -> str:
        return self.prefix + main_key(self.id, self.start_offset)


def format_loose(one: UnknownObjectSet) -> str:
    fields = {
        "topic": one.partition.topic,
        "topicId": str(one.partition.topic_id),
        "partition": one.partition.partition,
        "id": str(one.uuid),
        "start": one.start_offset,
        "prefix": one.prefix,
        "objects": [kind.value for kind in one.kinds],
        "bytes": one.size_bytes,
        "modifiedMs": one.modified_ms,
        "last": one.last_offset,
        "verdict": one.verdict.value,
        "proof": None if one.proof is None else one.proof.value,
        "why": one.why,
    }
    return json.dumps(fields, separators=(",", ":")) + "\n"


def format_head(store: str, made_ms: int) -> str:
    """The first line of a list that is kept."""
    fields = {"format": FORMAT, "version": VERSION, "store": store, "madeMs": made_ms}
    return json.dumps(fields, separators=(",", ":")) + "\n"


def parse_loose(line: str) -> UnknownObjectSet:
    """What a line says. Raises `ValueError` for what is none."""
    if len(line) > _LINE_MAX:
        msg = f"a line of {len(line)} characters"
        raise ValueError(msg)
    said = json.loads(line)
    if not isinstance(said, dict):
        msg = "no object of JSON"
        raise ValueError(msg)  # noqa: TRY004 - whatever is wrong with a line is one error
    try:
        partition = TopicIdPartition(Uuid.parse(said["topicId"]), said["topic"], said["partition"])
        proof, last = said["proof"], said["last"]
        found = UnknownObjectSet(
            partition,
            Uuid.parse(said["id"]),
            _number(said["start"]),
            str(said["prefix"]),
            tuple(ObjectKind(kind) for kind in said["objects"]),
            _number(said["bytes"]),
            _number(said["modifiedMs"]),
            None if last is None else _number(last),
            SetVerdict(said["verdict"]),
            None if proof is None else OrphanProof(proof),
            str(said["why"]),
        )
        assert found.keys is not None
    except (KeyError, TypeError, AttributeError, InvalidArgument) as error:
        msg = f"{type(error).__name__}: {error}"
        raise ValueError(msg) from error
    return found


def _number(value: Any) -> int:
    if type(value) is not int:
        msg = f"{value!r} is no number"
        raise TypeError(msg)
    return value


def read_list(
    lines: Iterable[str], where: str, store: str, prefixes: tuple[str, ...]
) -> Iterator[UnknownObjectSet]:
    """
    The orphans of a list that was kept. Raises `ConfigError` for one that is none, that is of
    another store, or that names a prefix which was not said to be in use.
    """
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
        msg = f"{where}: a list of version {head.get('version')!r}, known is {VERSION}"
        raise ConfigError(msg)
    if head.get("store") != store:
        msg = f"{where}: a list of orphans of {head.get('store')!r}, not of {store}"
        raise ConfigError(msg)
