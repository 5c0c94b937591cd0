"""
The slices in which the record sets of one metadata partition are applied, one at a time.

Of a large record set a part is applied in a thread, where the shard offers such work. Meanwhile the
position and the counts stay as they were, and answers may be newer. Everything else that needs a
quiet shard waits for `lock`: freezing, a new beginning, damage that is set aside.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.pump.replay_scheduler import SLICE_S, TIMED_SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.report import Report, Tally
    from rlmm.pump.replay import Replay
    from rlmm.pump.replay_scheduler import ReplayScheduler
    from rlmm.pump.verdict_waits import VerdictWaits
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet

Passed = list[tuple[int, bytes | None]] | None
"""What a slice passes, where a writer waits for that."""


class SliceApplication:
    def __init__(self, pace: ReplayScheduler, events_max: int, tally: Tally) -> None:
        """
        *events_max* limits a slice of a shard whose slices do not end by time alone. *tally* counts
        all that is passed.
        """
        self.lock = asyncio.Lock()
        self.is_lost = False
        """Whether a slice failed, so that it is not known how far the shard came."""
        self._pace = pace
        self._events_max = events_max
        self._tally = tally

    async def apply(
        self,
        replay: Replay,
        record_set: RecordSet,
        verdicts: VerdictWaits,
        is_given_up: Callable[[], bool],
    ) -> tuple[Report, Passed] | None:
        """
        Apply a slice of *record_set*, and list what it passes if a writer waits for *verdicts*;
        `None` where the state was given up before its turn.

        A slice that a thread has begun is applied also to a state that was given up meanwhile.
        A writer that registers meanwhile waits for an offset behind the record set.
        """
        async with self.lock:
            passed, work = verdicts.listening_list(), None
            if self._pace.has_threads:
                work = replay.shard.work_ahead(record_set, keeps_passed=passed is not None)
            if work is None:
                await self._pace.turn(replay.shard.partition)
                if is_given_up():
                    return None
                passed = verdicts.listening_list()
            else:
                await self._work_ahead(work, replay, record_set, passed)
            report = self._absorb(replay, record_set, passed)
        self._pace.applied(report.tally.applied)
        return report, passed

    async def set_aside(
        self, replay: Replay, damage: DamagedBatch, data: bytes, next_offset: int
    ) -> Report:
        async with self.lock:
            report = replay.set_aside(damage, data, next_offset)
        self._tally.add(report.tally)
        return report

    async def _work_ahead(
        self, work: Callable[[], object], replay: Replay, record_set: RecordSet, passed: Passed
    ) -> None:
        """Do *work* in a thread; a cancelled caller waits, and the position follows."""
        is_whole = True

        def do() -> None:
            nonlocal is_whole
            is_whole = False
            work()
            is_whole = True

        try:
            await self._pace.in_thread(do)
            await self._pace.turn(replay.shard.partition)
        except BaseException:
            self.is_lost = not is_whole
            if is_whole:
                self._absorb(replay, record_set, passed)
            raise

    def _absorb(self, replay: Replay, record_set: RecordSet, passed: Passed) -> Report:
        is_timed = replay.shard.slices_by_time
        events_max = None if is_timed else self._events_max
        is_over = self._pace.slice_end(TIMED_SLICE_S if is_timed else SLICE_S)
        try:
            report = replay.absorb(record_set, events_max, is_over, passed)
        except BaseException:
            self.is_lost = is_timed  # the position of the pure-Python shard follows each event
            raise
        self._tally.add(report.tally)
        return report
