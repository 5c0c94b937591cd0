"""
Fetches as brokers answer them: each names the leader epoch that its reader fetched last, and is
told where the leader's history diverges from that. Leader epochs are kept as by Kafka's cache.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import LogTruncated
from rlmm.kafka_client.fetch.partition_reads import AnsweredOffsets, whole_batches
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from rlmm.log.memory.partition import MemoryPartition
    from tests.simulation.branches import History
    from tests.simulation.topic import SimulatedTopic

_NO_EPOCH = -1
_NOTHING = AnsweredOffsets(-1, -1, _NO_EPOCH, _NO_EPOCH)


@dataclass(frozen=True, slots=True)
class FetchedRecords(RecordSet):
    """A record set that the judge can trace."""

    history: History | None = None
    branch: int = 0


class FetchLog(MemoryLog):
    def __init__(self, topic: SimulatedTopic) -> None:
        super().__init__(topic)
        self._simulated = topic
        self._answered: dict[int, AnsweredOffsets] = {}

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    held = self._reachable(partition)
                    self._require_own(held, position)
                    found = held.select(position, bytes_max)
                    if found is not None:
                        return self._taken(found, position)
                    await held.bell.wait()
        except TimeoutError:
            return None

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int]:
        del timeout_s
        await asyncio.sleep(0)
        return end_of_epoch(self._reachable(partition), leader_epoch)

    def _require_own(self, held: MemoryPartition, position: int) -> None:
        """Refuse a reader whose last fetched epoch says that it has read what was cut off."""
        epoch = self._answered.get(held.number, _NOTHING).epoch_before(position)
        if epoch == _NO_EPOCH or position < held.log_start:
            return
        found, end = end_of_epoch(held, epoch)
        if found >= 0 and (found < epoch or end < position):
            self._answered.pop(held.number)  # the reader knows now
            msg = f"partition {held.number}: offset {position} diverges from its leader"
            raise LogTruncated(msg, held.log_start, held.next_offset)

    def _taken(self, found: RecordSet, position: int) -> FetchedRecords:
        place, next_offset = found.partition, found.next_offset
        last, before = whole_batches(found.data), self._answered.get(place, _NOTHING)
        if last.next_offset is not None:
            next_offset = last.next_offset
            self._answered[place] = AnsweredOffsets(
                position, next_offset, before.epoch_before(position), last.leader_epoch
            )
        history = self._simulated.history(place)
        return FetchedRecords(place, found.data, next_offset, history, history.current)


def end_of_epoch(held: MemoryPartition, asked: int) -> tuple[int, int]:
    """
    Return the largest leader epoch up to *asked* and its end, as `LeaderEpochFileCache` does: a
    leader that knows only later epochs answers *asked* itself, and -1 to an epoch after its own.
    """
    entries = _epoch_entries(held)
    if asked == entries[-1][0]:
        return asked, held.next_offset
    end = next((start for epoch, start in entries if epoch > asked), None)
    if end is None:
        return -1, -1
    return max((epoch for epoch, _ in entries if epoch <= asked), default=asked), end


def _epoch_entries(held: MemoryPartition) -> list[tuple[int, int]]:
    """Return epochs with their first offsets; one without records is forgotten at the next."""
    entries: list[tuple[int, int]] = []
    for epoch, start in [(0, 0), *held.epoch_starts]:
        while entries and entries[-1][1] >= start:
            entries.pop()
        entries.append((epoch, start))
    while len(entries) > 1 and entries[1][1] <= held.log_start:
        del entries[0]
    return [(entries[0][0], max(entries[0][1], held.log_start)), *entries[1:]]
