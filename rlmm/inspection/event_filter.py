"""The filter of events of the metadata topic. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.inspection.selectors import EVERYTHING
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata
from rlmm.metadata.verdicts import (
    Applied,
    Duplicate,
    Rejected,
    RejectReason,
    Remark,
    Undecodable,
    UndecodableReason,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.selectors import PartitionFilter
    from rlmm.metadata.ids import Uuid


class EventKind(StrEnum):
    SEGMENT = "segment"
    """The first record of a copy."""
    UPDATE = "update"
    PARTITION_DELETE = "partition-delete"
    SNAPSHOT = "snapshot"
    UNREADABLE = "unreadable"
    """Cannot be decoded: poison, tombstones, damaged batches."""


VERDICTS = ("applied", "duplicate", "rejected", "undecodable")
VERDICT_WORDS = frozenset(
    {*VERDICTS, *map(str, Remark), *map(str, RejectReason), *map(str, UndecodableReason)}
)
"""What a verdict can be asked for by: itself, its reason, or a remark on it."""


_KINDS: dict[type, EventKind] = {
    SegmentMetadata: EventKind.SEGMENT,
    SegmentUpdate: EventKind.UPDATE,
    PartitionDelete: EventKind.PARTITION_DELETE,
    SegmentSnapshot: EventKind.SNAPSHOT,
}


def kind_of(happened: EventRecord) -> EventKind:
    return _KINDS.get(type(happened.event), EventKind.UNREADABLE)


def words_of(happened: EventRecord) -> tuple[str, str | None]:
    match happened.verdict:
        case Applied(remark=remark):
            return "applied", None if remark is None else str(remark)
        case Duplicate():
            return "duplicate", None
        case Rejected(reason=reason):
            return "rejected", str(reason)
        case Undecodable(reason=why):
            return "undecodable", str(why)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Allows the events that meet every condition; an empty condition, or None, allows all."""

    partitions: PartitionFilter = EVERYTHING
    kinds: frozenset[EventKind] = frozenset()
    states: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    brokers: frozenset[int] = frozenset()
    segment: Uuid | None = None

    @property
    def needs_verdicts(self) -> bool:
        return bool(self.verdicts - {"undecodable", *map(str, UndecodableReason)})

    def is_about(self, happened: EventRecord) -> bool:
        if self.segment is not None and happened.segment != self.segment:
            return False
        return happened.partition is not None and self.partitions.allows(happened.partition)

    def allows(self, happened: EventRecord) -> bool:
        event, partition = happened.event, happened.partition
        if self.kinds and kind_of(happened) not in self.kinds:
            return False
        if self.verdicts and not self.verdicts.intersection(words_of(happened)):
            return False
        if partition is None and self.partitions is not EVERYTHING:
            return False
        if partition is not None and not self.partitions.allows(partition):
            return False
        if self.segment is not None and happened.segment != self.segment:
            return False
        if self.states and (event is None or event.state.name not in self.states):
            return False
        return not self.brokers or (event is not None and event.broker_id in self.brokers)


def verdict_words(words: Collection[str]) -> frozenset[str]:
    """Check *words*; raises `InvalidArgument` for a word that no verdict has."""
    unknown = sorted(set(words) - VERDICT_WORDS)
    if unknown:
        msg = f"no verdict is {unknown[0]!r}: {', '.join(VERDICTS)}, or one of their reasons"
        raise InvalidArgument(msg)
    return frozenset(words)
