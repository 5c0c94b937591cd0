"""Names in keys: each belongs to the longest of the prefixes under which it is understood. Pure."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from enum import StrEnum
from typing import Final, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition
from spark_tiering.job_registry.job_store import FOLDER as JOBS_FOLDER
from spark_tiering.layout.object_names import ObjectKind, parse_object_key
from spark_tiering.stores.protocol import RESERVED

KINDS: Final = tuple(ObjectKind)
"""A kind's number is its place here: the order in which objects are written."""
LOG, INDEXES, MANIFEST = range(3)

_NUMBER_OF = {kind.value: number for number, kind in enumerate(KINDS)}
_FILE = re.compile(r"([0-9]{20})-([A-Za-z0-9_-]{21}[AQgw])\.(log|indexes|rsm-manifest)")
_LOCAL_TIERED = re.compile(
    r"[A-Za-z0-9._-]{1,249}-[0-9]{1,10}-[A-Za-z0-9_-]{22}"
    r"/[0-9]{20}-[A-Za-z0-9_-]{22}"
    r"\.(log|index|timeindex|snapshot|leader_epoch_checkpoint|txnindex)"
)
"""Of Kafka's own test storage: a file for each part of a segment."""


class OtherKey(StrEnum):
    JOBS = "jobs"
    """Kept by copy jobs of this project, see `spark_tiering.job_registry`."""
    LOCAL_TIERED = "local-tiered-storage"
    """In the layout of Kafka's test storage: recognised, and never written here."""
    UNKNOWN = "unknown"
    OUTSIDE = "outside"
    """Under none of the prefixes: an inventory holds the whole bucket."""


class SegmentKey(NamedTuple):
    prefix: int
    """Which of the prefixes, 0 for the current one."""
    partition: TopicIdPartition
    uuid: bytes
    start_offset: int
    kind: int


class Prefixes:
    """The prefixes in use, the current one first."""

    def __init__(self, current: str = "", old: tuple[str, ...] = ()) -> None:
        self.all = tuple(dict.fromkeys((current, *old)))
        numbers = sorted(range(len(self.all)), key=lambda number: -len(self.all[number]))
        self._longest_first = [(number, self.all[number]) for number in numbers]
        self._folders: dict[str, TopicIdPartition | None] = {}

    def __reduce__(self) -> tuple[type[Prefixes], tuple[str, tuple[str, ...]]]:
        return Prefixes, (self.all[0], self.all[1:])

    def read(self, key: str) -> SegmentKey | OtherKey:
        """Read *key* as `parse_object_key` does, several times as fast."""
        other = OtherKey.OUTSIDE
        for number, prefix in self._longest_first:
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :] if prefix else key
            folder, _, file = rest.rpartition("/")
            partition = self._partition(folder)
            found = None if partition is None else _FILE.fullmatch(file)
            if partition is not None and found is not None and int(found[1]) <= INT64_MAX:
                uuid = urlsafe_b64decode(found[2] + "==")
                return SegmentKey(number, partition, uuid, int(found[1]), _NUMBER_OF[found[3]])
            if other is OtherKey.OUTSIDE:
                other = _other(rest)
        return other

    def owner(self, key: str) -> int | None:
        found = self.read(key)
        if isinstance(found, SegmentKey):
            return found.prefix
        under = (number for number, prefix in self._longest_first if key.startswith(prefix))
        return next(under, None)

    def _partition(self, folder: str) -> TopicIdPartition | None:
        if folder not in self._folders:
            if len(self._folders) >= 100_000:
                self._folders.clear()
            name = parse_object_key(f"{folder}/{0:020d}-{'A' * 22}.{ObjectKind.LOG}")
            self._folders[folder] = None if name is None else name.segment_id.partition
        return self._folders[folder]


def _other(rest: str) -> OtherKey:
    if rest.startswith((JOBS_FOLDER, RESERVED)):
        return OtherKey.JOBS
    if _LOCAL_TIERED.fullmatch(rest):
        return OtherKey.LOCAL_TIERED
    return OtherKey.UNKNOWN


def check_prefixes(prefixes: tuple[str, ...]) -> None:
    """Raise `InvalidArgument` for a prefix that no key begins with."""
    for prefix in prefixes:
        if len(prefix.encode(errors="surrogatepass")) > 1024 or not prefix.isprintable():
            raise InvalidArgument(f"no key has the prefix {prefix[:300]!r}")


def shown(key: str) -> str:
    plain = "".join(one if one.isprintable() else repr(one)[1:-1] for one in key)
    return plain if len(plain) <= 200 else f"{plain[:200]}..."
