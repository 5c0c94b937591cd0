"""Copies in the metadata topic that repeat others, and those cut short."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeGuard

from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from tests.kafka.tiered import MetadataEvent


def finished(events: Iterable[MetadataEvent]) -> list[SegmentMetadata]:
    begun, ended = {}, []
    for event in (one.event for one in events):
        if isinstance(event, SegmentMetadata):
            begun[event.id] = event
        elif _ends_a_copy(event):
            ended.append(begun[event.id])
    return ended


def cut_short(events: Iterable[MetadataEvent]) -> list[SegmentMetadata]:
    begun: dict[SegmentId, SegmentMetadata] = {}
    for event in (one.event for one in events):
        if isinstance(event, SegmentMetadata):
            begun[event.id] = event
        elif isinstance(event, SegmentUpdate):
            begun.pop(event.id, None)
    return list(begun.values())


def copied_again(events: Iterable[MetadataEvent]) -> list[SegmentMetadata]:
    """Return the finished segments whose offsets were all finished when their copies started."""
    covered: dict[TopicIdPartition, set[int]] = defaultdict(set)
    begun: dict[SegmentId, SegmentMetadata] = {}
    for_nothing: set[SegmentId] = set()
    again = []
    for event in (one.event for one in events):
        if isinstance(event, SegmentMetadata):
            has = covered[event.id.partition]
            begun[event.id] = event
            if has.issuperset(range(event.start_offset, event.last_offset + 1)):
                for_nothing.add(event.id)
        elif _ends_a_copy(event):
            one = begun[event.id]
            covered[event.id.partition].update(range(one.start_offset, one.last_offset + 1))
            if event.id in for_nothing:
                again.append(one)
    return again


def _ends_a_copy(event: SegmentUpdate | PartitionDelete) -> TypeGuard[SegmentUpdate]:
    return isinstance(event, SegmentUpdate) and event.state is SegmentState.COPY_SEGMENT_FINISHED
