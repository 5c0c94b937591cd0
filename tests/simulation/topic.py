"""The topic of a run, which remembers every record ever stored in any topic, for the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.log.memory.partition import MemoryPartition
from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.ids import Uuid
from tests.simulation.branches import BranchBatch, History

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rlmm.base.clock import Clock


@dataclass(slots=True)
class Life:
    topic_id: Uuid
    histories: list[History]
    """By metadata partition."""
    ended_s: float | None = None


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

    def history(self, place: int) -> History:
        """Return the history of *place* in the topic that is there now."""
        assert self.life is not None
        return self.life.histories[place]

    def identity_of(self, life: Life) -> LogIdentity:
        return LogIdentity(self.cluster_id, life.topic_id, len(life.histories))

    def create(self, partition_count: int) -> Uuid:
        self._end()
        super().create(partition_count)
        self.partition_count = partition_count
        self.topic_id = topic_id = Uuid(b"\x01" + self._random.randbytes(15))
        self.lives[topic_id] = Life(topic_id, [History(place) for place in range(partition_count)])
        return topic_id

    def add_partition(self) -> None:
        """An operator adds a partition, which Kafka permits and this topic must never have."""
        assert self.life is not None
        place = len(self.partitions)
        self.partitions.append(MemoryPartition(place))
        self.life.histories.append(History(place))

    def delete(self) -> None:
        self._end()
        super().delete()

    def _end(self) -> None:
        if self.life is not None:
            self.life.ended_s = self._now_s()

    def store(self, partition: MemoryPartition, data: bytes, record_count: int = 1) -> int:
        base_offset = super().store(partition, data, record_count)
        kept = BranchBatch(base_offset, partition.next_offset, self._now_s(), data)
        self.history(partition.number).batches.append(kept)
        return base_offset

    def cut(self, place: int, from_offset: int) -> int:
        """
        Elect a leader that lacks the records from *from_offset* on; return where it ends. That is
        right behind a batch: what the cleaner emptied is not at the end of a log.
        """
        held = self.partitions[place]
        ends = (batch.last_offset + 1 for batch in held.batches if batch.last_offset < from_offset)
        held.truncate_tail(max(ends, default=held.log_start))
        held.begin_epoch()
        self.history(place).cut(held.next_offset, self._now_s())
        held.bell.ring()
        return held.next_offset

    def forget_holes(self, place: int, from_offset: int) -> None:
        """Forget the records from *from_offset* on that the cleaner removed before any read."""
        there = {batch.base_offset: batch.data for batch in self.partitions[place].batches}
        self.history(place).forget_holes(there, from_offset)
