"""
The opening of an engine's log, which a disk that hangs may delay for ever. Until then an engine
works on a stand-in that names what it waits for. Closing the stack frees all that was taken for the
log, its folder of snapshots included.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.folder_lock import snapshots_lock
from rlmm.base.threads import in_own_thread
from rlmm.engine.broker_watch import BrokerAssignmentSource
from rlmm.engine.copy_watch import CopySettingsSource
from rlmm.errors import AppendRefused, LogUnavailable
from rlmm.log.batch_proof import EpochEndSource
from rlmm.log.history_reader import read_aside
from rlmm.log.protocol import CompactionSource, LogStatistics, is_gapless, replacements_of
from rlmm.log.reconnect_backoff import wake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AsyncExitStack

    from rlmm.engine.plan import EnginePlan, LogOpener
    from rlmm.errors import LogError
    from rlmm.log.protocol import LogBounds, LogIdentity, MetadataLog
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.records.record_set import RecordSet

_log = logging.getLogger(__name__)


async def open_within(
    opened: AsyncExitStack, plan: EnginePlan, at: Callable[[str], None]
) -> LogOpener:
    """Open the log of *plan* and lock its snapshot folder; call *at* with the name of each step."""
    held = ExitStack()
    opened.push_async_callback(in_own_thread, "snapshots-lock", held.close)
    at(plan.where)
    found = await plan.open_log()
    opened.push_async_callback(found.log.close)
    if plan.snapshots is not None:
        at(f"the folder of snapshots {plan.snapshots}")
        lock = partial(held.enter_context, snapshots_lock(plan.snapshots))
        await in_own_thread("snapshots-lock", lock)
    return found


class OpeningLog:
    """A `MetadataLog` that is not reached before it is open, and from then on the opened one."""

    def __init__(
        self, opening: asyncio.Task[LogOpener], begin_s: float, what: Callable[[], str]
    ) -> None:
        """*opening* began at *begin_s* of the event loop's clock; *what* names what it needs."""
        self._opening = opening
        self._what = what
        self._is_told = False
        """Whether a caller was refused before: the first one is refused at once."""
        self._begin_s = begin_s

    async def run(self) -> None:
        found = await self._opening
        _log.warning("it is open now, after %.0f s", self._age_s())
        await (asyncio.Event().wait() if found.run is None else found.run())

    @property
    def trouble(self) -> str:
        return f"not open yet, after {self._age_s():.0f} s: waiting for {self._what()}"

    def _age_s(self) -> float:
        return asyncio.get_running_loop().time() - self._begin_s

    def _opened_log(self) -> MetadataLog | None:
        opening = self._opening
        if not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return opening.result().log

    async def _reached(self, timeout_s: float) -> tuple[MetadataLog, float]:
        found = self._opened_log()
        if found is not None:
            return found, timeout_s
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        await asyncio.wait([self._opening], timeout=timeout_s if self._is_told else 0)
        self._is_told = True
        found = self._opened_log()
        if found is None:
            raise LogUnavailable(self.trouble)
        return found, max(0.001, deadline_s - loop.time())

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        log, left_s = await self._reached(timeout_s)
        return await log.identity(timeout_s=left_s)

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        try:
            log, left_s = await self._reached(timeout_s)
        except LogUnavailable as error:
            return {at: LogUnavailable(f"partition {at}: {error}") for at in partitions}
        return await log.bounds(partitions, timeout_s=left_s)

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        log, left_s = await self._reached(timeout_s)
        return await log.read(partition, position, timeout_s=left_s, bytes_max=bytes_max)

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int] | None:
        log, left_s = await self._reached(timeout_s)
        if not isinstance(log, EpochEndSource):
            return None
        return await log.epoch_end(partition, leader_epoch, timeout_s=left_s)

    async def read_aside(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """Read as `HistoryReadSource` does; also for a log that does not implement it."""
        log, left_s = await self._reached(timeout_s)
        return await read_aside(log, partition, position, timeout_s=left_s, bytes_max=bytes_max)

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        try:
            log, left_s = await self._reached(timeout_s)
        except LogUnavailable as error:
            msg = f"partition {partition}: {error}"
            raise AppendRefused(msg) from error
        return await log.append(partition, value, timeout_s=left_s)

    async def tiered_partitions_of(
        self, broker_id: int, *, timeout_s: float
    ) -> frozenset[TopicIdPartition]:
        log, left_s = await self._reached(timeout_s)
        assert isinstance(log, BrokerAssignmentSource), log
        return await log.tiered_partitions_of(broker_id, timeout_s=left_s)

    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        log, left_s = await self._reached(timeout_s)
        assert isinstance(log, CopySettingsSource), log
        return await log.topics_not_copied(timeout_s=left_s)

    async def learn_compaction(self) -> None:
        found = self._opened_log()
        if isinstance(found, CompactionSource):
            await found.learn_compaction()

    @property
    def is_gapless(self) -> bool:
        found = self._opened_log()
        return found is not None and is_gapless(found)

    def replacements(self, partition: int) -> int:
        found = self._opened_log()
        return 0 if found is None else replacements_of(found, partition)

    def wake(self) -> None:
        found = self._opened_log()
        if found is not None:
            wake(found)

    def statistics(self) -> LogStatistics:
        found = self._opened_log()
        return LogStatistics() if found is None else found.statistics()

    async def close(self) -> None:
        self._opening.cancel()
        await asyncio.wait([self._opening])
        found = self._opened_log()
        if found is not None:
            await found.close()
