"""The decision about each segment of a user partition, by its objects and the metadata. Pure."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.maintenance.rebuild.manifests import ReadSet


class RebuildFate(StrEnum):
    MISSING = "missing"
    """Whole in the store, and not in the metadata: its events are brought back."""
    EQUAL = "equal"
    DIFFERENT = "different"
    """Finished in the metadata, with other fields than in its manifest."""
    OPEN = "open"
    """Whole in the store, and its copy is not finished in the metadata."""
    DELETED = "deleted"
    """Its deletion was begun or finished, and its objects still exist."""
    SUPERSEDED = "superseded"
    """Not in the metadata, where another segment holds all of its offsets."""
    UNKNOWN = "unknown-topic"
    """Not in the metadata, and of a topic id that the cluster does not have."""
    BROKEN = "broken"
    LOST = "lost"


class SegmentDecision(NamedTuple):
    fate: RebuildFate
    segment_id: SegmentId
    start_offset: int
    segment: SegmentMetadata | None = None
    detail: str = ""
    code: str = ""
    """The code of the finding, where it is broken."""
    modified_ms: int = 0


@dataclass
class PartitionDifference:
    partition: TopicIdPartition
    decided: list[SegmentDecision] = field(default_factory=list)
    """Missing segments come first, by the order of their events."""

    @property
    def missing(self) -> list[SegmentMetadata]:
        """Return the segments to bring back, in the order of events."""
        return [
            one.segment for one in self.decided if one.fate is RebuildFate.MISSING and one.segment
        ]


FIELDS = ("start_offset", "last_offset", "epochs", "size_bytes", "max_timestamp_ms")
_DELETED = (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED)


def differences(recovered: SegmentMetadata, known: SegmentMetadata) -> list[str]:
    """
    Return the fields in which manifest and metadata contradict each other, with both values. Broker
    and event time are not compared: a manifest has those of the start. A segment without a
    transaction index whose flag is not set was written by brokers before 4.0.
    """
    found = []
    for name in FIELDS:
        says, has = getattr(recovered, name), getattr(known, name)
        if says != has:
            found.append(f"{name} {_shown(says)}, the metadata has {_shown(has)}")
    if known.txn_index_empty and not recovered.txn_index_empty:
        found.append("a transaction index, the metadata says empty")
    if recovered.custom_metadata != known.custom_metadata:
        found.append(
            f"custom metadata {_hex(recovered.custom_metadata)}, the metadata has"
            f" {_hex(known.custom_metadata)}"
        )
    return found


def decide(
    partition: TopicIdPartition,
    found: Sequence[ReadSet],
    present: Mapping[SegmentId, SegmentMetadata],
    past: Mapping[SegmentId, SegmentState],
    deletion: str = "",
    *,
    is_topic_known: bool = True,
) -> PartitionDifference:
    """
    Decide about each segment of *partition* by the sets *found* and the metadata *present*. *past*
    has the known deletions of other segments; *deletion* is the state of the partition's, from any
    history. Segments of an unknown topic are not brought back.
    """
    covers = ReadableCover(present.values())
    decided = [_of_set(one, present, past, covers, deletion) for one in found]
    if not is_topic_known:
        decided = [
            one._replace(fate=RebuildFate.UNKNOWN) if one.fate is RebuildFate.MISSING else one
            for one in decided
        ]
    there = {one.segment_id for one in found}
    for segment_id, segment in present.items():
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and segment_id not in there:
            decided.append(SegmentDecision(RebuildFate.LOST, segment_id, segment.start_offset))
    decided.sort(key=_in_order)
    return PartitionDifference(partition, decided)


def _of_set(
    one: ReadSet,
    present: Mapping[SegmentId, SegmentMetadata],
    past: Mapping[SegmentId, SegmentState],
    covers: ReadableCover,
    deletion: str,
) -> SegmentDecision:
    known = present.get(one.segment_id)
    state = past.get(one.segment_id) if known is None else known.state
    fate, detail = RebuildFate.MISSING, ""
    if state in _DELETED:
        assert state is not None
        fate, detail = RebuildFate.DELETED, state.name
    elif deletion:
        fate, detail = RebuildFate.DELETED, f"all of the partition: {deletion}"
    elif one.segment is None:
        return SegmentDecision(
            RebuildFate.BROKEN, one.segment_id, one.start_offset, None, one.detail, one.code,
            one.modified_ms,
        )  # fmt: skip
    elif known is not None and known.state is SegmentState.COPY_SEGMENT_STARTED:
        fate, detail = RebuildFate.OPEN, f"begun by broker {known.broker_id}"
    elif known is not None:
        differing = differences(one.segment, known)
        fate, detail = (
            (RebuildFate.DIFFERENT, "; ".join(differing)) if differing else (RebuildFate.EQUAL, "")
        )
    elif (holder := covers.holder(one.segment)) is not None:
        fate = RebuildFate.SUPERSEDED
        detail = f"{holder.id.uuid} holds offsets {holder.start_offset} to {holder.last_offset}"
    return SegmentDecision(
        fate, one.segment_id, one.start_offset, one.segment, detail, "", one.modified_ms
    )  # fmt: skip


class ReadableCover:
    """Segments that readers find: which of them holds all offsets of another."""

    def __init__(self, present: Iterable[SegmentMetadata]) -> None:
        live = [one for one in present if one.state not in _DELETED]
        self._segments = sorted(live, key=lambda one: (one.start_offset, one.last_offset))
        self._starts = [one.start_offset for one in self._segments]
        self._furthest: list[SegmentMetadata] = []
        """Up to each of them, the one that reaches furthest."""
        for one in self._segments:
            before = self._furthest[-1] if self._furthest else one
            self._furthest.append(one if one.last_offset >= before.last_offset else before)

    def holder(self, segment: SegmentMetadata) -> SegmentMetadata | None:
        """Return the segment that holds every offset of *segment*; None without one."""
        before = bisect_right(self._starts, segment.start_offset)
        if not before:
            return None
        furthest = self._furthest[before - 1]
        return furthest if furthest.last_offset >= segment.last_offset else None


def _in_order(one: SegmentDecision) -> tuple[object, ...]:
    """Sort events by their time; segments without events follow, by offset."""
    if one.fate is RebuildFate.MISSING and one.segment is not None:
        return 0, one.segment.event_timestamp_ms, one.start_offset, one.segment_id.uuid
    return 1, one.start_offset, 0, one.segment_id.uuid


class SegmentOverlap(NamedTuple):
    """Names two segments that are brought back and hold the same offsets."""

    first: SegmentDecision
    second: SegmentDecision
    """Its events come later: readers find it, where both begin at one offset."""

    @property
    def is_order_doubtful(self) -> bool:
        """Return whether the manifest of the first was written after that of the second."""
        return self.first.modified_ms > self.second.modified_ms


def overlaps(difference: PartitionDifference) -> list[SegmentOverlap]:
    """Return overlapping neighbours: each segment with the earlier one that reaches furthest."""
    events = [one for one in difference.decided if one.fate is RebuildFate.MISSING]
    turn = {id(one): number for number, one in enumerate(events)}
    found: list[SegmentOverlap] = []
    furthest: SegmentDecision | None = None
    for one in sorted(events, key=lambda one: (one.start_offset, turn[id(one)])):
        assert one.segment is not None
        if furthest is not None and furthest.segment is not None:
            if one.segment.start_offset <= furthest.segment.last_offset:
                first, second = sorted((furthest, one), key=lambda each: turn[id(each)])
                found.append(SegmentOverlap(first, second))
            if one.segment.last_offset < furthest.segment.last_offset:
                continue
        furthest = one
    return found


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _hex(content: bytes | None) -> str:
    return "none" if content is None else (content.hex() or "empty")
