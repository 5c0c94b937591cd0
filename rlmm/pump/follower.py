"""
The follower of one metadata partition: a task that reads the log, applies it and reports. A
follower serves one assignment: a partition that is assigned again gets a new one, behind a closed
gate.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.backoff import Backoff, Pauses
from rlmm.base.endable_call import EndableCall
from rlmm.base.log_context import bound
from rlmm.errors import (
    LogDamaged,
    LogError,
    LogNotPermitted,
    LogTruncated,
    LogUnavailable,
    OutcomeUnknown,
)
from rlmm.log.protocol import is_gapless
from rlmm.log.replay_progress import (
    CaughtUp,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    ReplayHistory,
    ReplayProgress,
    StateLost,
)
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.report import Tally
from rlmm.pump.damage_skipping import offset_behind
from rlmm.pump.known_state import KnownState
from rlmm.pump.replay import Replay
from rlmm.pump.slices import SliceApplication
from rlmm.pump.state_images import copy_parts
from rlmm.pump.statistics import FollowerStatistics
from rlmm.pump.verdict_waits import VerdictWaits

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.base.clock import Clock
    from rlmm.base.doorbell import Doorbell
    from rlmm.errors import Unresolved
    from rlmm.log.protocol import LogBounds, LogIdentity, MetadataLog
    from rlmm.log.replay_progress import Fact
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import Report
    from rlmm.metadata.shard import Shard
    from rlmm.pump.incidents import Incidents
    from rlmm.pump.listener import PositionListener, ReplayListener
    from rlmm.pump.memory_budget import Budget
    from rlmm.pump.placement import Placement
    from rlmm.pump.replay_scheduler import ReplayScheduler
    from rlmm.pump.settings import PumpSettings
    from rlmm.pump.slices import Passed
    from rlmm.pump.state_restore import StateRestore
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FollowerContext:
    log: MetadataLog
    settings: PumpSettings
    clock: Clock
    listener: ReplayListener
    waits: PositionListener
    restore: StateRestore | None
    make_shard: Callable[[int, int], Shard]
    pace: ReplayScheduler
    budget: Budget
    incidents: Incidents
    changed: Doorbell
    """Rung when a follower's first attempt has ended."""
    confirm: Callable[[LogIdentity], None]
    """Raises `ConfigError` where the log of that identity is not to be followed."""
    placement: Placement


class Follower:
    def __init__(self, partition: int, context: FollowerContext, partition_count: int) -> None:
        """*partition_count* is that of the topic."""
        self.partition = partition
        self._partition_count = partition_count
        self.verdicts = VerdictWaits(0)
        self.is_settled = False
        self.tally = Tally()
        """All offsets that were passed, also for states that were given up."""
        self._context = context
        self._replay: Replay | None = None
        self._needs_beginning = True
        self._is_void = False
        """Whether the log does not, or no longer, hold what the follower read."""
        settings, timeout_s = context.settings, context.settings.bounds_timeout_ms / 1_000
        self._known = KnownState(partition, context.log, context.restore, timeout_s)
        self._slices = SliceApplication(context.pace, settings.slice_events, self.tally)
        self._reading = EndableCall()
        self._beginnings = 0
        self._failures, self._last_failure = 0, ""
        self._heard_s: float | None = None
        self._holds_until_s = -math.inf
        """The time up to which the last judgement, that the state is current, holds."""
        self._loop = asyncio.get_running_loop()
        self._disowned = -1
        """The highest position that the log refused as not its own."""
        pauses = Pauses(settings.retry_first_ms / 1_000, settings.retry_last_ms / 1_000)
        self._backoff = Backoff(pauses, self._loop.time)

    # ---------------------------------------------------------------------------- the task

    async def run(self) -> None:
        """Read until cancelled. Raises `LogRecreated`, as it concerns all partitions, and bugs."""
        with bound(metadata_partition=self.partition):
            while True:
                await self._go_on()

    async def _go_on(self) -> None:
        try:
            if self._needs_beginning:
                await self._begin()
                self._settle()
            await self._read_once()
            if self.progress().position > self._disowned:
                self._backoff.succeeded()
        except LogUnavailable as error:
            await self._pause(error)
        except LogTruncated as error:
            self._meet_truncation(error)
            await self._pause(error)
        except (LogNotPermitted, LogDamaged) as error:
            is_refused = isinstance(error, LogNotPermitted)
            self._needs_beginning = True
            self._report_fact(
                StateLost(
                    NotReadyReason.NOT_PERMITTED if is_refused else NotReadyReason.DAMAGED,
                    str(error),
                )
            )
            await self._pause(error)

    def close(self, error: type[Unresolved], message: str) -> None:
        self.verdicts.fail(error, message)

    async def _begin(self) -> None:
        self._known.begin()
        asked_s, bounds = self._loop.time(), await self._ask_bounds()
        if bounds.high_watermark < self._disowned:
            self._disowned = -1  # it was cut: there is nothing that it could disown again
        async with self._slices.lock:
            before, log_start = self._replay, bounds.log_start_offset
            shard, history = await self._known.newest(before, bounds, is_void=self._is_void)
            if shard is None or history is None:
                shard = self._context.make_shard(self.partition, log_start)
                shard.place_among(self._partition_count)
                history = ReplayHistory(first_offset=log_start)
                self._context.incidents.forget(self.partition)
            if before is None or shard is not before.shard or shard.position < log_start:
                self._renew_verdicts(max(shard.position, log_start))
            self._replay = Replay(shard, history, bounds, asked_s, self._context.settings)
            self._needs_beginning = self._is_void = False
            self._beginnings += 1
        self._context.listener.set_shard(self.partition, shard)
        self._look_for_misplaced(shard)
        if before is not None and before.shard is not shard:
            for _ in before.shard.clearing():
                await asyncio.sleep(0)
        self._report_fact(PartitionReassigned(NotReadyReason.REPLAYING))
        self._context.waits.advance(self.partition, shard.position)
        # At debug where there is nothing to read: fifty partitions would log it.
        _log.log(
            logging.INFO if shard.position < bounds.high_watermark else logging.DEBUG,
            "metadata partition %d: reading from offset %d, target %d, log start %d",
            self.partition, shard.position, bounds.high_watermark, bounds.log_start_offset,
            extra={"offset": shard.position},
        )  # fmt: skip
        self.judge()

    def _renew_verdicts(self, position: int) -> None:
        """Fail the writers that wait for a verdict of the old state."""
        self.verdicts.fail(
            OutcomeUnknown,
            f"metadata partition {self.partition} is read anew, so the outcome of the event is not "
            "known: query the segment before sending the event again",
        )
        self.verdicts = VerdictWaits(position)

    async def _ask_bounds(self) -> LogBounds:
        timeout_s = self._context.settings.bounds_timeout_ms / 1_000
        answers = await self._context.log.bounds([self.partition], timeout_s=timeout_s)
        answer = answers[self.partition]
        if isinstance(answer, LogError):
            raise answer
        self._heard_s = self._loop.time()
        return answer

    async def _read_once(self) -> None:
        replay = self._replay
        assert replay is not None, self.partition
        context, settings = self._context, self._context.settings
        self._known.require_same_log()
        where, read_s = (self.partition, replay.shard.position), settings.read_timeout_ms / 1_000
        read = context.log.read(*where, timeout_s=read_s, bytes_max=settings.read_bytes)
        record_set = await self._reading.result(read)
        self._heard_s = self._loop.time()
        while record_set is not None and not self._needs_beginning:
            if context.budget.is_exhausted:
                await context.budget.wait_room()
            was_damaged = replay.shard.position == replay.damaged.position
            replay.shard.holes_are_damage = was_damaged or is_gapless(context.log)
            applied = await self._slices.apply(
                replay, record_set, self.verdicts, lambda: self._needs_beginning
            )
            if applied is None:
                return
            report, passed = applied
            if self._needs_beginning:  # given up while a thread applied this: it is no verdict
                self._renew_verdicts(report.next_offset)
            self._pass_on(report, passed)
            if report.complete:
                return
            if report.damage is not None:
                await self._pass_damage(replay, record_set, report.damage)

    async def _pass_damage(
        self, replay: Replay, record_set: RecordSet, damage: DamagedBatch
    ) -> None:
        position = replay.shard.position
        what = f"metadata partition {self.partition}, offset {position}: a damaged batch"
        what += f" ({damage.reason}: {damage.detail})"
        if not replay.damaged.is_last(position):
            raise LogUnavailable(f"{what}, it is read anew")
        behind = offset_behind(record_set, damage, position)
        if behind is None:
            behind = (await self._ask_bounds()).high_watermark
            if behind <= position:
                raise LogUnavailable(f"{what}, and nothing says where the log goes on")
        report = await self._slices.set_aside(replay, damage, record_set.data, behind)
        _log.error(
            "%s is set aside: offsets up to %d are lost", what, behind, extra={"offset": position}
        )
        self._pass_on(report, None)

    def _pass_on(self, report: Report, passed: Passed) -> None:
        if report.entries:
            now_ms = self._context.clock.now_ms()
            self._context.incidents.note(self.partition, report.entries, now_ms)
        self.verdicts.take_report(report, passed or ())
        replay = self._replay
        if replay is not None:
            self._look_for_misplaced(replay.shard)
        self._context.waits.advance(self.partition, report.next_offset)
        if replay is not None and not replay.is_at_ease:
            self.judge()

    def _look_for_misplaced(self, shard: Shard) -> None:
        if self._context.placement.look(shard):
            self._context.listener.set_shard(self.partition, shard)
            self._context.placement.on_change()

    # ------------------------------------------------------------------------- from outside

    def take_bounds(self, bounds: LogBounds, asked_s: float) -> None:
        replay = self._replay
        if replay is None or self._needs_beginning:
            return
        before = replay.bounds.high_watermark
        if replay.is_end_lost(asked_s):
            # The log may have been cut meanwhile, and have grown to the same end.
            self._begin_anew("the log end is known again: the log must prove the state")
        elif not replay.take_bounds(bounds, asked_s):
            self._give_up(f"the log ended at {before} and ends at {bounds.high_watermark} now")
        self.judge()  # the limit of the new end begins now

    def _meet_truncation(self, error: LogTruncated) -> None:
        """Begin again: with the same state after a trim, without it after a cut."""
        position = -1 if self._replay is None else self._replay.shard.position
        if error.log_start is not None and position < error.log_start:
            self._begin_anew(str(error))
        else:
            # A leader whose epochs do not fit its own records says so each time it is read.
            self._disowned = max(self._disowned, position)
            self._give_up(str(error))

    def _give_up(self, detail: str) -> None:
        """Drop the state, since the log holds other records, and read anew."""
        self._is_void = True
        self._begin_anew(detail)

    def _begin_anew(self, detail: str) -> None:
        self._needs_beginning = True
        self._reading.end()
        self._report_fact(PartitionReassigned(NotReadyReason.LOADING, detail))

    def judge(self) -> None:
        replay = self._replay
        if replay is None or self._needs_beginning:
            return
        fact = replay.judge(self._loop.time())
        until_s = replay.holds_until_s() if isinstance(fact, CaughtUp) else -math.inf
        if fact is None and not replay.is_caught_up:
            fact = FellBehind(NotReadyReason.REPLAYING, "")
        fault = self._context.placement.fault()
        if fault is not None and not isinstance(fact, StateLost):
            fact = FellBehind(NotReadyReason.MISPLACED, fault)
            until_s = -math.inf
        elif isinstance(fact, FellBehind) and self._context.budget.is_exhausted:
            detail = fact.detail or "the memory limit is reached, nothing more is read"
            fact = FellBehind(NotReadyReason.OVER_BUDGET, detail)
        if until_s != self._holds_until_s:
            self._holds_until_s = until_s
            self._context.listener.hold(self.partition, until_s)
        if fact is not None:
            self._report_fact(fact)

    def is_current(self) -> bool:
        """Return whether the last judgement still holds; judge again where its time has passed."""
        now_s = self._loop.time()
        if now_s <= self._holds_until_s:
            return True
        self.judge()
        return now_s <= self._holds_until_s

    @property
    def savable_position(self) -> int | None:
        """Return the position, if the state may be saved now, and there is anything to save."""
        replay = self._replay
        if replay is None or self._is_void or self._slices.is_lost:
            return None
        position = replay.shard.position
        return None if position == replay.history.first_offset else position

    async def freeze(self, of: TopicIdPartition | None = None) -> ShardImages | None:
        """Freeze the state, or that *of* one user partition, at one position; only reads go on."""
        async with self._slices.lock:
            replay = self._replay
            if replay is None or self._is_void or self._slices.is_lost:
                return None
            parts = await copy_parts(replay.shard.freezing(of), self._loop.time)
            return ShardImages(
                self.partition, replay.shard.position, replay.history.copy(), parts,
                partial(self._still_holds, replay.shard),
            )  # fmt: skip

    def _still_holds(self, shard: Shard) -> bool:
        """Return whether the follower has not given up the state in *shard*."""
        replay = self._replay
        return replay is not None and replay.shard is shard and not self._is_void

    def progress(self) -> ReplayProgress:
        if self._replay is None:
            return ReplayProgress(self.partition, 0, None, None, None, None)
        return self._replay.progress(self._loop.time())

    def statistics(self) -> FollowerStatistics:
        replay = self._replay
        return FollowerStatistics(
            self.progress(),
            ReplayHistory() if replay is None else replay.history.copy(),
            replay is not None and replay.is_caught_up,
            self._beginnings,
            self._failures,
            self._last_failure,
            self._heard_s,
            None if replay is None else replay.shard.statistics(),
            replace(self.tally),
            self.verdicts.listening,
        )

    @property
    def obstacle(self) -> str | None:
        return None if self._beginnings else self._last_failure

    def _report_fact(self, fact: Fact) -> None:
        self._context.listener.take_fact(self.partition, fact, self.progress())

    def _settle(self) -> None:
        if not self.is_settled:
            self.is_settled = True
            self._context.changed.ring()

    async def _pause(self, error: LogError) -> None:
        self._failures += 1
        self._last_failure = str(error)
        self._settle()
        pause_s = self._backoff.failed()
        extra = {} if self._replay is None else {"offset": self._replay.shard.position}
        what = "metadata partition %d: %s; next attempt in %.2f s"
        _log.warning(what, self.partition, error, pause_s, extra=extra)
        await asyncio.sleep(pause_s)
