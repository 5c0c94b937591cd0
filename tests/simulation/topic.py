"""The topic of a run, which remembers every record ever stored in any topic, for the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rlmm.base.clock import Clock
    from rlmm.log.memory.partition import MemoryPartition


@dataclass(frozen=True, slots=True)
class Kept:
    base_offset: int
    next_offset: int
    stored_s: float
    data: bytes


@dataclass(slots=True)
class Life:
    topic_id: Uuid
    batches: list[list[Kept]]
    ended_s: float | None = None
    published: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """Metadata partition and offset -> the value that an engine stored there."""

    def end(self, place: int) -> int:
        batches = self.batches[place]
        return batches[-1].next_offset if batches else 0

    def stored_s(self, place: int, position: int) -> float | None:
        """Return the time of storing of the first record at or behind *position*, or `None`."""
        batches = self.batches[place]
        found = None
        for kept in reversed(batches):
            if kept.next_offset <= position:
                break
            found = kept.stored_s
        return found


class SimulatedTopic(MemoryTopic):
    """A topic whose ids are drawn from a seed."""

    def __init__(
        self, partition_count: int, clock: Clock, random: Random, now_s: Callable[[], float]
    ) -> None:
        self._random = random
        self._now_s = now_s
        self.takes_late = True
        self.lives: dict[Uuid, Life] = {}
        super().__init__(partition_count, clock=clock)
        self.cluster_id = "simulated"

    @property
    def life(self) -> Life | None:
        return None if self.topic_id is None else self.lives[self.topic_id]

    def identity_of(self, life: Life) -> LogIdentity:
        return LogIdentity(self.cluster_id, life.topic_id, len(life.batches))

    def create(self, partition_count: int) -> Uuid:
        self._end()
        super().create(partition_count)
        self.topic_id = topic_id = Uuid(b"\x01" + self._random.randbytes(15))
        self.lives[topic_id] = Life(topic_id, [[] for _ in range(partition_count)])
        return topic_id

    def delete(self) -> None:
        self._end()
        super().delete()

    def _end(self) -> None:
        if self.life is not None:
            self.life.ended_s = self._now_s()

    def store(self, partition: MemoryPartition, data: bytes, record_count: int = 1) -> int:
        base_offset = super().store(partition, data, record_count)
        assert self.life is not None
        kept = Kept(base_offset, partition.next_offset, self._now_s(), data)
        self.life.batches[partition.number].append(kept)
        return base_offset

    def forget_holes(self, place: int, from_offset: int) -> None:
        """Forget the records from *from_offset* on that the cleaner removed before any read."""
        assert self.life is not None
        batches = self.life.batches[place]
        there = {batch.base_offset: batch.data for batch in self.partitions[place].batches}
        for index, kept in enumerate(batches):
            if kept.base_offset >= from_offset:
                data = there.get(kept.base_offset, b"")
                batches[index] = Kept(kept.base_offset, kept.next_offset, kept.stored_s, data)
