"""
The replay of one metadata partition, as decisions. Pure: record sets, bounds and time in, facts
out. One rule covers lag, stall and loss: the follower must reach each log end offset within a limit
of time after it was seen. Later records are not waited for, so readiness does not flap.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from rlmm.log.replay_progress import CaughtUp, FellBehind, NotReadyReason, ReplayProgress, StateLost
from rlmm.metadata.report import never
from rlmm.metadata.verdicts import COUNTED_APART, Rejected, RejectReason, Undecodable
from rlmm.pump.damage_skipping import DamagedReads

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.log.protocol import LogBounds
    from rlmm.log.replay_progress import Fact, ReplayHistory
    from rlmm.metadata.report import Report
    from rlmm.metadata.shard import Shard
    from rlmm.pump.settings import PumpSettings
    from rlmm.records.damage import DamagedBatch
    from rlmm.records.record_set import RecordSet

_UNREACHED_MAX = 1_024
"""Log ends that are remembered; beyond it the newest replace those just before them."""

UNDECODABLE_ALWAYS = 10
"""Undecodable records that any history may have, if no more than half of it is undecodable."""


class ReplayStart(Enum):
    RESUME = auto()
    TRIMMED = auto()
    """Retention removed what follows the state."""
    BEYOND = auto()
    """The log ends before it: a part of what was read does not exist any more."""


def beginning(position: int, bounds: LogBounds) -> ReplayStart:
    if position < bounds.log_start_offset:
        return ReplayStart.TRIMMED
    if position > bounds.high_watermark:
        return ReplayStart.BEYOND
    return ReplayStart.RESUME


@dataclass(frozen=True, slots=True)
class _LogEnd:
    at_s: float
    next_offset: int


class Replay:
    """A shard, its history, and how far the follower must still read it. Times in seconds."""

    def __init__(
        self,
        shard: Shard,
        history: ReplayHistory,
        bounds: LogBounds,
        now_s: float,
        settings: PumpSettings,
    ) -> None:
        self.shard = shard
        self.history = history
        self.target = bounds.high_watermark
        """The end of the log when reading began; never moves."""
        self.bounds = bounds
        self.is_caught_up = False
        """Whether the shard reached the first high watermark with an accepted history."""
        self.damaged = DamagedReads(settings.damage_reads)
        """Counted anew at each beginning: the same offset may have another batch then."""
        self._settings = settings
        self._heard_s = now_s
        self._unreached: deque[_LogEnd] = deque()
        self._fell_behind = False
        self._refused: StateLost | None = None
        """Why the history was not accepted; good records after it make it no better."""
        if shard.position < bounds.log_start_offset:
            self._pass_trimmed(bounds.log_start_offset)

    @property
    def is_at_ease(self) -> bool:
        """Return whether a judgement can wait for the timer: nothing depends on the next record."""
        return self.is_caught_up and not self._fell_behind

    def progress(self, now_s: float) -> ReplayProgress:
        return ReplayProgress(
            self.shard.partition,
            self.shard.position,
            self.target,
            self.bounds.log_start_offset,
            self.bounds.high_watermark,
            now_s - self._heard_s,
        )

    def absorb(
        self,
        record_set: RecordSet,
        max_events: int | None,
        is_over: Callable[[], bool] = never,
        passed: list[tuple[int, bytes | None]] | None = None,
    ) -> Report:
        """Apply a slice of *record_set*; see `Shard.apply`."""
        report = self.shard.apply(record_set, max_events, is_over=is_over, passed=passed)
        if report.last_batch is not None:
            self.history.last_batch = report.last_batch
        self._count(report)
        return report

    def set_aside(self, damage: DamagedBatch, data: bytes, next_offset: int) -> Report:
        """Pass a batch that cannot be trusted; it counts as undecodable."""
        report = self.shard.set_aside(damage, data, next_offset)
        self._count(report)
        return report

    def is_end_lost(self, asked_s: float) -> bool:
        """Return whether the log end was unknown for too long before the request at *asked_s*."""
        return (asked_s - self._heard_s) * 1_000 > self._settings.end_age_ms_max

    def take_bounds(self, bounds: LogBounds, asked_s: float) -> bool:
        """
        Take the bounds requested at *asked_s*; false where the log end offset decreased. Then a
        part of the log was cut off, and other records came in its place. Not for bounds after
        `is_end_lost`: a new replay takes these.
        """
        if asked_s <= self._heard_s:
            return True  # what is known was asked for later
        if bounds.high_watermark < self.bounds.high_watermark:
            return False
        self.bounds = bounds
        self._heard_s = asked_s
        if bounds.high_watermark > self.shard.position:
            if len(self._unreached) >= _UNREACHED_MAX:
                self._unreached.pop()
            self._unreached.append(_LogEnd(asked_s, bounds.high_watermark))
        return True

    def judge(self, now_s: float) -> Fact | None:
        """Return what a follower is to tell of its state. Raises the panic of a native core."""
        position = self.shard.position
        _ = self.shard.user_partitions  # a core that has panicked refuses any question
        if not self.is_caught_up:
            if position < self.target or self._refused is not None:
                return self._refused
            self._refused = self._judge_history()
            if self._refused is not None:
                return self._refused
        while self._unreached and self._unreached[0].next_offset <= position:
            self._unreached.popleft()
        behind = self._judge_age(position, now_s)
        if behind is not None:
            self._fell_behind = True
            return behind
        if self._fell_behind and position < self.bounds.high_watermark:
            return None  # an end that is only being reached opens nothing
        self._fell_behind = False
        if not self.is_caught_up:
            self.is_caught_up = True
            self.history.accepted = self.history.undecodable
        return CaughtUp()

    def holds_until_s(self) -> float:
        """Return the time up to which a judgement that the shard has caught up holds."""
        limits = self._settings
        end_known_until_s = self._heard_s + limits.end_age_ms_max / 1_000
        if not self._unreached:
            return end_known_until_s
        return min(end_known_until_s, self._unreached[0].at_s + limits.lag_ms_max / 1_000)

    def _judge_history(self) -> StateLost | None:
        """Judge what no start has accepted before; a few records may be lost in any history."""
        history, share_max = self.history, self._settings.undecodable_share_max
        bad = history.undecodable - history.accepted
        few = min(UNDECODABLE_ALWAYS, history.records / 2) if share_max else 0
        if bad and share_max < 1 and bad > max(few, share_max * history.records):
            detail = (
                f"{bad} of {history.records} records could not be decoded, allowed is a share of "
                f"{share_max:g}, or {few:g} records: look at them, then raise "
                "pump.undecodable_share_max if they can be missed"
            )
            return StateLost(NotReadyReason.NOT_UNDERSTOOD, detail)
        return None

    def _judge_age(self, position: int, now_s: float) -> FellBehind | None:
        limits = self._settings
        # What opens for the first time must not be about to close: half the time is left to it.
        lag_ms_max = limits.lag_ms_max if self.is_caught_up else limits.lag_ms_max / 2
        if self._unreached:
            oldest = self._unreached[0]
            waited_ms = (now_s - oldest.at_s) * 1_000
            if waited_ms > lag_ms_max:
                detail = (
                    f"offset {oldest.next_offset} was the end {waited_ms / 1_000:.0f} s ago and is "
                    f"not reached, {self.bounds.high_watermark - position} records are left"
                )
                return FellBehind(NotReadyReason.BEHIND, detail)
        age_ms = (now_s - self._heard_s) * 1_000
        if age_ms > limits.end_age_ms_max:
            detail = f"for {age_ms / 1_000:.0f} s no broker has answered the log end offset"
            return FellBehind(NotReadyReason.END_UNKNOWN, detail)
        return None

    def _pass_trimmed(self, log_start: int) -> None:
        """Go on at the log start offset, past records that retention removed unread."""
        self._count(self.shard.pass_trimmed(log_start))
        self.history.trimmed_before = log_start

    def _count(self, report: Report) -> None:
        tally, history = report.tally, self.history
        apart = 0
        for entry in report.entries:
            match entry.verdict:
                case Undecodable(reason=reason) if reason in COUNTED_APART:
                    apart += entry.next_offset - entry.offset
                case Rejected(reason=RejectReason.UNKNOWN_SEGMENT):
                    history.without_base += 1
        undecodable = tally.undecodable - apart
        history.counted_apart += apart
        history.undecodable += undecodable
        if self.is_caught_up:
            history.accepted = history.undecodable
        history.records += tally.applied + tally.duplicate + tally.rejected + undecodable
