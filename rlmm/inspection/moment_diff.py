"""The difference of a metadata partition, and of its user partitions, between two moments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.inspection.event_filter import words_of
from rlmm.inspection.moment import PartitionSummary, in_order, summary_of
from rlmm.metadata.segment import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.moment import ReplayEnd
    from rlmm.inspection.replay import PartitionReplay, Progress
    from rlmm.metadata.events import PartitionDelete
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard

    Part = Callable[[], bytes]

_PIECE = 1_000


class ChangeKind(StrEnum):
    PARTITION_APPEARED = "partition-appeared"
    """Of the user partition nothing was known before."""
    PARTITION_DELETE = "partition-delete"
    """The deletion of the user partition moved on."""
    SEGMENT_APPEARED = "segment-appeared"
    SEGMENT_FINISHED = "segment-finished"
    SEGMENT_BEING_DELETED = "segment-being-deleted"
    SEGMENT_GONE = "segment-gone"
    SEGMENT_CHANGED = "segment-changed"
    """Its state is the same, or an earlier one, and something else of it is not."""
    WATERMARK = "watermark"
    """How far any copy of a leader epoch ever reached."""


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """Holds one segment before and after; None where the state does not have it."""

    kind: ChangeKind
    before: SegmentMetadata | None
    after: SegmentMetadata | None

    @property
    def segment(self) -> SegmentMetadata:
        found = self.after or self.before
        assert found is not None, "there is one of the two"
        return found


@dataclass(frozen=True, slots=True)
class WatermarkChange:
    """The highest offset of a leader epoch; None where there is none."""

    epoch: int
    before: int | None
    after: int | None
    kind: ChangeKind = ChangeKind.WATERMARK


@dataclass(frozen=True, slots=True)
class DeleteChange:
    """Tells how far the deletion of the partition is; None before it was begun."""

    before: PartitionDelete | None
    after: PartitionDelete | None
    kind: ChangeKind = ChangeKind.PARTITION_DELETE


@dataclass(frozen=True, slots=True)
class NewPartition:
    kind: ChangeKind = ChangeKind.PARTITION_APPEARED


Change = SegmentChange | WatermarkChange | DeleteChange | NewPartition


def changes_of(before: Shard, after: Shard, partition: TopicIdPartition) -> Iterator[Change]:
    """Yield the changes of *partition*, then those of its segments by start offset and id."""
    if not before.knows(partition) and after.knows(partition):
        yield NewPartition()
    deletes = before.partition_delete(partition), after.partition_delete(partition)
    if deletes[0] != deletes[1]:
        yield DeleteChange(*deletes)
    yield from _watermarks(before, after, partition)
    for old, new in _pairs(before, after, partition):
        kind = _kind(old, new)
        if kind is not None:
            yield SegmentChange(kind, old, new)


def _watermarks(
    before: Shard, after: Shard, partition: TopicIdPartition
) -> Iterator[WatermarkChange]:
    old, new = watermarks_of(before, partition), watermarks_of(after, partition)
    for epoch in sorted(old.keys() | new.keys()):
        if old.get(epoch) != new.get(epoch):
            yield WatermarkChange(epoch, old.get(epoch), new.get(epoch))


def watermarks_of(shard: Shard, partition: TopicIdPartition) -> dict[int, int]:
    return {epoch: highest for one, epoch, highest in shard.watermarks() if one == partition}


def _kind(old: SegmentMetadata | None, new: SegmentMetadata | None) -> ChangeKind | None:
    if old is None:
        return ChangeKind.SEGMENT_APPEARED
    if new is None:
        return ChangeKind.SEGMENT_GONE
    if old == new:
        return None
    if new.state > old.state:
        is_deleted = new.state is SegmentState.DELETE_SEGMENT_STARTED
        return ChangeKind.SEGMENT_BEING_DELETED if is_deleted else ChangeKind.SEGMENT_FINISHED
    return ChangeKind.SEGMENT_CHANGED


def _pairs(
    before: Shard, after: Shard, partition: TopicIdPartition
) -> Iterator[tuple[SegmentMetadata | None, SegmentMetadata | None]]:
    """Return every segment of either shard with its counterpart, by start offset and id."""
    olds, news = _segments(before, partition), _segments(after, partition)
    old, new = next(olds, None), next(news, None)
    while old is not None or new is not None:
        if old is not None and (new is None or _order(old) <= _order(new)):
            yield old, after.segment(old.id)
            if new is not None and new.id == old.id:
                new = next(news, None)
            old = next(olds, None)
        elif new is not None:
            if before.segment(new.id) is None:  # else it comes, or came, with its old offset
                yield None, new
            new = next(news, None)


def _order(segment: SegmentMetadata) -> tuple[int, bytes]:
    return segment.start_offset, segment.id.uuid


def _segments(shard: Shard, partition: TopicIdPartition) -> Iterator[SegmentMetadata]:
    listing = shard.listing(partition)
    while (piece := listing.take(_PIECE)) is not None:
        yield from piece


@dataclass(frozen=True, slots=True)
class PartitionPair:
    """Holds one user partition at both moments, each state in a shard of its own."""

    partition: TopicIdPartition
    metadata_partition: int
    before: Shard
    after: Shard

    @property
    def summaries(self) -> tuple[PartitionSummary, PartitionSummary]:
        """Return the figures at both moments; zeros where the partition did not exist."""
        return summary_of(self.before, self.partition), summary_of(self.after, self.partition)


@dataclass(slots=True)
class MomentDiff:
    """Holds a metadata partition at the first moment and at the second."""

    metadata_partition: int
    log_start: int = 0
    first_offset: int = 0
    """The next offset at the first moment."""
    next_offset: int = 0
    """The next offset at the second."""
    verdicts: Counter[str] = field(default_factory=Counter)
    _parts: dict[TopicIdPartition, Part] = field(default_factory=dict)
    _touched: set[TopicIdPartition] = field(default_factory=set)
    _after: Shard | None = None

    def both(self, wanted: Callable[[TopicIdPartition], bool]) -> Iterator[PartitionPair]:
        """Yield *wanted* partitions with events in between, by topic, partition and topic id."""
        after = self._after
        assert after is not None, "it was read"
        known = [
            summary_of(after, one) for one in self._touched if wanted(one) and after.knows(one)
        ]
        for summary in in_order(known):
            partition = summary.partition
            part = self._parts.get(partition)
            old = _alone(self.metadata_partition, None if part is None else part())
            new = _alone(self.metadata_partition, after.partition_image(partition))
            yield PartitionPair(partition, self.metadata_partition, old, new)

    def hear(self, happened: EventRecord) -> None:
        self.verdicts[words_of(happened)[0]] += happened.next_offset - happened.offset
        if happened.partition is not None:
            self._touched.add(happened.partition)

    def freeze(self, shard: Shard) -> None:
        """Keep the state of the first moment by reference; figures are made on demand."""
        self.first_offset = shard.position
        for partition in shard.partitions():
            for part in shard.freezing(partition):
                if part is not None:
                    self._parts[partition] = part

    def end(self, shard: Shard) -> None:
        self._after, self.next_offset = shard, shard.position
        self._parts = {one: part for one, part in self._parts.items() if one in self._touched}


def _alone(place: int, image: bytes | None) -> Shard:
    from rlmm.metadata.engines import shard_type  # noqa: PLC0415  # not for --help

    shard = shard_type()(place)
    if image is not None:
        shard.import_partition(image)
    return shard


async def compare(
    replay: PartitionReplay, place: int, second: ReplayEnd, progress: Progress | None = None
) -> MomentDiff:
    """
    Compare two moments; *replay* reads up to the first. `InvalidArgument` if *second* is earlier.
    """
    compared = MomentDiff(place)
    async for _ in replay.chunks():
        if progress is not None:
            progress(place, replay.shard.position, replay.end)
    compared.log_start = replay.log_start
    compared.freeze(replay.shard)
    replay.go_on(second)
    async for chunk in replay.chunks():
        for happened in chunk.happened():
            compared.hear(happened)
        if progress is not None:
            progress(place, replay.shard.position, replay.end)
    compared.end(replay.shard)
    return compared
