"""
Events of several metadata partitions as one stream by record time, then as they arrive. Each
partition is read only as fast as the caller takes its events, so memory does not grow.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogError, LogTruncated, LogUnavailable, NotReady
from rlmm.inspection.log_scan import LogScan
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import READ_BYTES, PartitionReplay

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from rlmm.inspection.event_record import EventRecord
    from rlmm.inspection.replay import EventLog, Progress

HELD_BYTES = 16 * 1024 * 1024
LOOK_S = 1.0
POLL_S = 30.0
AWAY_S = 60.0


class JudgedEventReader:
    def __init__(
        self, replay: PartitionReplay, place: int, progress: Progress | None = None
    ) -> None:
        self._replay = replay
        self._place = place
        self._progress = progress

    @property
    def position(self) -> int:
        return self._replay.shard.position

    @property
    def log_start(self) -> int:
        return self._replay.log_start

    async def happened(self) -> AsyncIterator[EventRecord]:
        async for chunk in self._replay.chunks():
            if self._progress is not None:
                self._progress(self._place, self.position, self._replay.end)
            for one in chunk.happened():
                yield one

    def go_on(self) -> None:
        self._replay.go_on(ReplayEnd())


EventReader = JudgedEventReader | LogScan
"""Reads one metadata partition up to an offset; it can read on."""


def readers_of(
    log: EventLog, bounds: Mapping[int, ReplayEnd], *, timeout_s: float,
    firsts: Mapping[int, int] | None = None, progress: Progress | None = None,
) -> dict[int, EventReader]:  # fmt: skip
    """Return readers of places up to the bounds; with *firsts* from there, without verdicts."""
    bytes_max = min(READ_BYTES, max(64 * 1024, HELD_BYTES // max(1, len(bounds))))
    if firsts is None:
        return {
            place: JudgedEventReader(
                PartitionReplay(log, place, bound, timeout_s=timeout_s, bytes_max=bytes_max),
                place, progress,
            )
            for place, bound in bounds.items()
        }  # fmt: skip
    return {
        place: LogScan(
            log, place, bound, timeout_s=timeout_s, first=firsts.get(place), bytes_max=bytes_max
        )
        for place, bound in bounds.items()
    }


async def merged(streams: Sequence[AsyncGenerator[EventRecord]]) -> AsyncGenerator[EventRecord]:
    """Yield the event with the lowest time; each stream keeps its order. All are closed at last."""
    async with AsyncExitStack() as stack:
        heads: list[tuple[int, int, EventRecord]] = []
        for number, stream in enumerate(streams):
            await stack.enter_async_context(aclosing(stream))
            first = await anext(stream, None)
            if first is not None:
                heads.append((first.timestamp_ms, number, first))
        heapify(heads)
        while heads:
            _, number, one = heads[0]
            yield one
            following = await anext(streams[number], None)
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following.timestamp_ms, number, following))


async def followed(
    log: EventLog,
    readers: Mapping[int, EventReader],
    *,
    timeout_s: float,
    look_s: float | None = None,
) -> AsyncGenerator[EventRecord]:
    """Yield appended records until closed; a missing leader is waited for, `AWAY_S` long."""
    pause_s = LOOK_S if look_s is None else look_s
    now = asyncio.get_running_loop().time
    backoff, heard_s = Backoff(RETRY, now), now()
    for reader in readers.values():
        reader.go_on()
    while True:
        try:
            for place in await _grown(log, readers, timeout_s, pause_s):
                async for one in readers[place].happened():
                    yield one
                readers[place].go_on()
            backoff.succeeded()
            heard_s = now()
        except (LogUnavailable, NotReady):
            if now() - heard_s > AWAY_S:
                raise
            await asyncio.sleep(backoff.failed())


async def _grown(
    log: EventLog, readers: Mapping[int, EventReader], timeout_s: float, look_s: float
) -> list[int]:
    """Wait, and return the metadata partitions with something to read; perhaps none yet."""
    if len(readers) == 1:
        ((place, reader),) = readers.items()
        found = await log.read(place, reader.position, timeout_s=POLL_S, bytes_max=1)
        return [] if found is None else [place]
    bounds = await log.bounds(list(readers), timeout_s=timeout_s)
    grown: list[int] = []
    for place, reader in readers.items():
        bound = bounds[place]
        if isinstance(bound, LogError):
            raise bound
        if bound.high_watermark < reader.position:
            msg = (
                f"metadata partition {place}: offset {reader.position} was reached, and the log "
                f"ends before {bound.high_watermark} now: what was told of it is not true any more"
            )
            raise LogTruncated(msg, bound.log_start_offset, bound.high_watermark)
        if bound.high_watermark > reader.position:
            grown.append(place)
    if not grown:
        await asyncio.sleep(look_s)
    return grown
