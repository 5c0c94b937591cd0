"""The difference of one metadata partition between two moments, in one read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.inspection.event_filter import words_of
from rlmm.inspection.moment import PartitionSummary, in_order, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.moment import ReplayEnd
    from rlmm.inspection.replay import PartitionReplay, Progress
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard

    Part = Callable[[], bytes]


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
    from rlmm.metadata.python_shard import PythonShard  # noqa: PLC0415  # not for --help

    shard = PythonShard(place)
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
