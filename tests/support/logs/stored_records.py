"""The records that a topic really stored, and a log that notices a cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlmm.errors import LogTruncated
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.records.record_set import RecordSet
from tests.support.engine.chosen import ChosenShard
from tests.support.engines import World

if TYPE_CHECKING:
    from tests.support.virtual_time import VirtualTimeLoop


class StoredRecords:
    """Every record that was stored in a topic, and when."""

    def __init__(self, loop: VirtualTimeLoop, partition_count: int) -> None:
        self.world = World(partition_count)
        self._loop = loop
        self._store = self.world.topic.store
        self.world.topic.store = self.store  # type: ignore[method-assign]
        self.begin()

    def begin(self) -> None:
        self.stored: list[list[tuple[bytes, float]]] = [
            [] for _ in range(self.world.partition_count)
        ]
        self.cuts: list[list[int]] = [[] for _ in range(self.world.partition_count)]
        self.has_holes = [False] * self.world.partition_count
        """Whether what is read depends on when it was read."""

    def store(self, partition: Any, data: bytes, record_count: int = 1) -> int:
        offset = self._store(partition, data, record_count)
        stored = self.stored[partition.number]
        assert (offset, record_count) == (len(stored), 1)
        stored.append((data, self._loop.time()))
        return offset

    def cut(self, place: int, from_offset: int) -> None:
        del self.stored[place][from_offset:]
        self.cuts[place].append(from_offset)

    def shard(self, place: int, first: int, position: int) -> ChosenShard:
        shard = ChosenShard(place, first)
        for offset, (data, _) in enumerate(self.stored[place][first:position], first):
            shard.apply(RecordSet(place, data, offset + 1))
        return shard


class CutDetectingLog(MemoryLog):
    """A log that notices, as Kafka's does, that its reader read a history cut off since."""

    def __init__(self, truth: StoredRecords) -> None:
        super().__init__(truth.world.topic)
        self._truth = truth
        self._stored = truth.stored
        self._seen: dict[int, int] = {}

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        self._check(partition, position)
        found = await super().read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
        self._check(partition, position)
        return found

    def _check(self, partition: int, position: int) -> None:
        if self._stored is not self._truth.stored:  # another topic
            self._stored = self._truth.stored
            self._seen.clear()
        cuts = self._truth.cuts[partition]
        unseen = cuts[self._seen.get(partition, 0) :]
        self._seen[partition] = len(cuts)
        if any(position > cut for cut in unseen):
            msg = f"partition {partition}: offset {position} belongs to another history"
            raise LogTruncated(msg)
