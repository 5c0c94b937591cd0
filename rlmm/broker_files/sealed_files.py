"""
Sealed files: which files of a partition may be read, judged by names alone. Pure.

A segment is rolled when another `.log` follows; its records do not change once they are stable,
which the caller checks.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from rlmm.partition_log.names import (
    EPOCH_CHECKPOINT,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA,
    TIME_INDEX,
    parse_segment_file,
)
from rlmm.records.header import OFFSET_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

OWN_TOPICS: Final = frozenset(
    {
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)
"""The topics that Kafka keeps for itself, passwords of users among them: never served."""
SECRET_TOPICS: Final = ("_*", "*connect-configs*", "mm2-configs*")
"""Patterns of topics in which other programs keep passwords and schemas, not a user's records."""

_OF_PARTITION: Final = (EPOCH_CHECKPOINT, PARTITION_METADATA)
_OF_SEGMENT: Final = (LOG, OFFSET_INDEX, TIME_INDEX, ".txnindex")
_SNAPSHOT: Final = ".snapshot"

WITHOUT_LOG: Final = "the log of its segment is not there"
"""A segment that the broker is deleting looks so: its other files are gone in a moment."""


def is_served(topic: str, patterns: Iterable[str], without: Iterable[str]) -> bool:
    """Return whether *topic* matches one of *patterns* and none of *without*, nor is Kafka's."""
    if topic in OWN_TOPICS or any(fnmatchcase(topic, one) for one in without):
        return False
    return any(fnmatchcase(topic, one) for one in patterns)


def is_ever_read(name: str) -> bool:
    if name in _OF_PARTITION:
        return True
    found = parse_segment_file(name)
    return found is not None and found[0] <= OFFSET_MAX and found[1] in (*_OF_SEGMENT, _SNAPSHOT)


class SealedFiles:
    def __init__(self, names: Iterable[str]) -> None:
        parsed = (parse_segment_file(name) for name in names)
        bases = sorted(
            found[0]
            for found in parsed
            if found is not None and found[1] == LOG and found[0] <= OFFSET_MAX
        )
        self._ends: dict[int, int | None] = dict(zip(bases, [*bases[1:], None], strict=True))

    def needs(self, name: str) -> int | str:
        """Return the offset that must be stable before *name* may be read, or why it never may."""
        if name in _OF_PARTITION:
            return 0
        if not is_ever_read(name):
            return "files of this kind are not served"
        found = parse_segment_file(name)
        assert found is not None, "it is a segment's by its name"
        offset, suffix = found
        if suffix == _SNAPSHOT:
            return offset
        if offset not in self._ends:
            return WITHOUT_LOG
        end = self._ends[offset]
        return "its segment is the active one" if end is None else end


def why_not(needs: int | str, last_stable_offset: int | None) -> str:
    if isinstance(needs, str):
        return needs
    if last_stable_offset is None:
        return "the last stable offset of its partition is not known"
    if needs > last_stable_offset:
        return f"it reaches to offset {needs}, stable is what lies below {last_stable_offset}"
    return ""
