"""The reference state of a replay at every offset, applied event by event by the slow decoder."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from rlmm.metadata.decoding import decode
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot, SegmentUpdate
from rlmm.metadata.segment import PartitionDeleteState, SegmentMetadata, SegmentState
from rlmm.metadata.verdicts import Rejected, Undecodable
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.verdicts import Verdict
    from tests.simulation.branches import BranchBatch, Gaps

Listed = dict["Uuid", SegmentState]


class _Versions:
    __slots__ = ("images", "listed", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.images: list[bytes] = []
        self.listed: list[Listed] = []

    def at(self, position: int) -> int:
        """Return the number of the state at *position*; -1: none yet."""
        return bisect_right(self.positions, position) - 1


class Reference:
    def __init__(
        self,
        place: int,
        first_offset: int,
        batches: list[BranchBatch],
        partition_count: int,
        gaps: Gaps = (),
    ) -> None:
        self.place = place
        self._batches = batches
        self._gaps = gaps
        self._read = 0
        self._shard = ChosenShard(place, first_offset)
        self._shard.place_among(partition_count)
        self._versions: dict[TopicIdPartition, _Versions] = {}
        self.changes: list[tuple[int, TopicIdPartition]] = []
        """Position behind a change, and what changed, in order."""
        self.verdicts: dict[int, Verdict] = {}
        self.values: dict[int, bytes | None] = {}
        self._deletions: list[tuple[bytes, int]] = []
        self._made: dict[bytes, ChosenShard] = {}

    def advance(self) -> None:
        while self._read < len(self._batches):
            kept = self._batches[self._read]
            self._read += 1
            for batch in walk(kept.data):
                assert isinstance(batch, Batch), batch
                if not batch.is_control:
                    self._take(batch)

    def _take(self, batch: Batch) -> None:
        for record in batch.records():
            assert isinstance(record, Record), record
            if record.offset < self._shard.position or any(
                start <= record.offset < stop for start, stop in self._gaps
            ):
                continue
            self.values[record.offset] = record.value
            event = decode(record.value)
            if isinstance(event, Undecodable):
                self.verdicts[record.offset] = event
                continue
            misplaced = len(self._shard.misplaced)
            verdict = self._shard.apply_event(event, record.offset)
            self.verdicts[record.offset] = verdict
            is_applied = not isinstance(verdict, Rejected)
            if is_applied or len(self._shard.misplaced) > misplaced:
                self._note(event, record.offset + 1, is_applied)

    def _note(self, event: Event, position: int, is_applied: bool) -> None:
        assert not isinstance(event, SegmentSnapshot)
        partition = event.partition if isinstance(event, PartitionDelete) else event.id.partition
        versions = self._versions.setdefault(partition, _Versions())
        listed = dict(versions.listed[-1]) if versions.listed else {}
        match event:
            case _ if not is_applied:
                pass
            case SegmentMetadata():
                listed[event.id.uuid] = SegmentState.COPY_SEGMENT_STARTED
            case SegmentUpdate(state=SegmentState.DELETE_SEGMENT_FINISHED):
                listed.pop(event.id.uuid, None)
            case SegmentUpdate():
                listed[event.id.uuid] = event.state
            case PartitionDelete(state=PartitionDeleteState.DELETE_PARTITION_FINISHED):
                listed.clear()
                self._deletions.append((partition.key, position))
        image = self._shard.partition_image(partition)
        assert image is not None, partition
        versions.positions.append(position)
        versions.images.append(image)
        versions.listed.append(listed)
        self.changes.append((position, partition))

    def partitions_at(self, position: int) -> list[TopicIdPartition]:
        return [
            partition
            for partition, versions in self._versions.items()
            if versions.at(position) >= 0
        ]

    def changed(self, low: int, high: int) -> list[TopicIdPartition]:
        """Return the user partitions that changed behind position *low*, up to *high*."""
        first = bisect_right(self.changes, low, key=lambda change: change[0])
        last = bisect_right(self.changes, high, key=lambda change: change[0])
        return list(dict.fromkeys(partition for _, partition in self.changes[first:last]))

    def image(self, partition: TopicIdPartition, position: int) -> bytes | None:
        versions = self._versions.get(partition)
        version = -1 if versions is None else versions.at(position)
        return None if versions is None or version < 0 else versions.images[version]

    def listed(self, partition: TopicIdPartition, position: int) -> Listed:
        """Return the segments that a listing must have at *position*, each with its state."""
        versions = self._versions.get(partition)
        version = -1 if versions is None else versions.at(position)
        return {} if versions is None or version < 0 else versions.listed[version]

    def was_deleted(self, key: bytes, low: int, high: int) -> bool:
        """Whether the deletion of a partition ended behind position *low*, up to *high*."""
        return any(deleted == key and low < at <= high for deleted, at in self._deletions)

    def shard_of(self, image: bytes) -> ChosenShard:
        """Return a shard with the user partition of *image*; not to be changed."""
        shard = self._made.get(image)
        if shard is None:
            shard = self._made[image] = ChosenShard(self.place)
            shard.import_partition(image)
        return shard
