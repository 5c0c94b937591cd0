"""A metadata log with a history, and the moment that it makes: for questions about the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.inspection.replay import replay
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import PartitionDelete, SegmentSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from rlmm.inspection.moment import ReplayEnd
    from rlmm.inspection.replay import ShardsMoment
    from rlmm.metadata.events import Event

PLACES = 3


START_MS = 1_700_000_000_000


class SteppingClock:
    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        return self.at_ms

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return SYSTEM_CLOCK.timeout(timeout_s)


class History:
    """Events appended one by one to a topic in memory, each a second after the one before it."""

    def __init__(self, partition_count: int = PLACES) -> None:
        self.clock = SteppingClock()
        self.topic = MemoryTopic(partition_count, clock=self.clock)
        self.log = MemoryLog(self.topic)

    async def add(self, *events: Event | bytes, place: int | None = None) -> list[tuple[int, int]]:
        """Append events or bytes; return metadata partition and offset of each."""
        return [await self._append(event, place) for event in events]

    async def _append(self, event: Event | bytes, place: int | None) -> tuple[int, int]:
        value = event if isinstance(event, bytes) else encode_any(event)
        if place is None:
            assert not isinstance(event, bytes | SegmentSnapshot), "say where"
            about = event if isinstance(event, PartitionDelete) else event.id
            partition = about.partition
            place = place_of(partition, len(self.topic.partitions))
        offset = await self.log.append(place, value, timeout_s=5)
        self.clock.at_ms += 1_000
        return place, offset

    async def moment(self, bound: ReplayEnd | None = None) -> ShardsMoment:
        """Return the state that all events make, or those before *bound*."""
        return await replay(self.log, bound=bound, timeout_s=5)


async def moment_of(events: Iterable[Event]) -> ShardsMoment:
    history = History()
    await history.add(*events)
    return await history.moment()
