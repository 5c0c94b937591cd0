"""A run that expires segments, in memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlmm.log.protocol import LogBounds
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import TRANSITIONS, PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from spark_tiering.maintenance.expire.actions import RemovalResult
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from spark_tiering.maintenance.expire.actions import RemovalTarget

SHORT = dict(zip(SegmentState, ("CS", "CF", "DS", "DF"), strict=True))


class Died(BaseException):
    pass


@dataclass
class HeldHands:
    """Stands in for `ExpireActions`, notes effects in *done*, and dies after the *dies_at*-th."""

    segments: dict[SegmentId, SegmentMetadata]
    objects: set[SegmentId]
    wave: int = 2
    deletes: dict[TopicIdPartition, PartitionDeleteState] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    dies_at: int | None = None
    failing: dict[str, str] = field(default_factory=dict)
    """By what is written into *done*: why it does not take effect."""
    not_ours: dict[TopicIdPartition, str] = field(default_factory=dict)
    changes: dict[SegmentId, list[SegmentMetadata | str | None]] = field(default_factory=dict)
    """The states that the next reads of a segment find instead."""
    looks: list[SegmentId] = field(default_factory=list)

    def _took_effect(self, what: str) -> None:
        self.done.append(what)
        if self.dies_at is not None and len(self.done) >= self.dies_at:
            raise Died(what)

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        return self.not_ours.get(partition, "")

    def look(self, segment_id: SegmentId) -> SegmentMetadata | str | None:
        self.looks.append(segment_id)
        if self.changes.get(segment_id):
            return self.changes[segment_id].pop(0)
        return self.segments.get(segment_id)

    def move(self, segments: Sequence[SegmentMetadata], state: SegmentState) -> list[str]:
        told = []
        for one in segments:
            what = f"{SHORT[state]} {one.start_offset}"
            if why := self.failing.get(what):
                told.append(why)
                continue
            now = self.segments[one.id]
            assert state in TRANSITIONS[now.state], f"{what}: it is {now.state.name}"
            if state is SegmentState.DELETE_SEGMENT_FINISHED:
                assert one.id not in self.objects, f"{what}: its objects are there"
                del self.segments[one.id]
            else:
                self.segments[one.id] = replace(now, state=state)
            told.append("")
            self._took_effect(what)
        return told

    def remove(self, targets: Sequence[RemovalTarget]) -> list[RemovalResult]:
        removals = []
        for one in targets:
            what = f"objects {one.start_offset}"
            if why := self.failing.get(what):
                removals.append(RemovalResult(one.segment_id, False, False, why))
                continue
            state = self.segments[one.segment_id].state
            assert state is SegmentState.DELETE_SEGMENT_STARTED, f"{what}: it is {state.name}"
            was_there = one.segment_id in self.objects
            self.objects.discard(one.segment_id)
            removals.append(RemovalResult(one.segment_id, True, was_there))
            self._took_effect(what)
        return removals

    def move_partition(self, partition: TopicIdPartition, state: PartitionDeleteState) -> str:
        what = f"{state.name.rpartition('_')[2]} {partition.partition}"
        if why := self.failing.get(what):
            return why
        assert self.deletes[partition] is not PartitionDeleteState.DELETE_PARTITION_FINISHED
        if state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            assert self.is_empty(partition), f"{what}: segments are left"
        self.deletes[partition] = state
        self._took_effect(what)
        return ""

    def is_empty(self, partition: TopicIdPartition) -> bool | str:
        if why := self.failing.get("is-empty"):
            return why
        return not any(one.partition == partition for one in self.segments)


def lives_in(archive: Path, places: int) -> dict[SegmentId, list[SegmentState]]:
    """Return the states of each segment in an embedded log, in its order."""
    lives: dict[SegmentId, list[SegmentState]] = defaultdict(list)
    with open_tier(CareRequest(embedded=archive)) as tier:
        log = tier.log
        for place, bounds in log.bounds(range(places)).items():
            assert isinstance(bounds, LogBounds)
            position = bounds.log_start_offset
            while position < bounds.high_watermark:
                found = log.read(place, position)
                assert found is not None
                for batch in walk(found.data):
                    assert isinstance(batch, Batch)
                    position = batch.last_offset + 1
                    for record in batch.records():
                        assert isinstance(record, Record)
                        event = decode(record.value)
                        if isinstance(event, SegmentMetadata | SegmentUpdate):
                            lives[event.id].append(event.state)
    return lives
