"""The reading of one metadata partition, as decisions by position and time."""

from __future__ import annotations

import pytest

from rlmm.log.protocol import LogBounds
from rlmm.log.replay_progress import (
    CaughtUp,
    Fact,
    FellBehind,
    NotReadyReason,
    ReplayHistory,
    StateLost,
)
from rlmm.pump.replay import Replay, ReplayStart, beginning
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, started, tp
from tests.support.engine.shards import batch_of, new_shard, record_set
from tests.support.records.record_sets import marker
from tests.support.records.value_bytes import segment_value

LIMITS = PumpSettings(lag_ms_max=30_000, end_age_ms_max=60_000)
GOOD = [started("a"), finished("a")]
TOMBSTONE = None
VERSION_1 = segment_value(head=b"\x01\x00\x01")


class Read:
    def __init__(
        self,
        target: int,
        *,
        settings: PumpSettings = LIMITS,
        log_start: int = 0,
        history: ReplayHistory | None = None,
    ) -> None:
        self.replay = Replay(
            new_shard(log_start),
            history or ReplayHistory(first_offset=log_start),
            LogBounds(log_start, target),
            0.0,
            settings,
        )

    def apply(self, *events: object) -> None:
        given = record_set(batch_of(events, self.replay.shard.position))  # type: ignore[arg-type]
        self.replay.absorb(given, 10_000)

    def move(self, position: int) -> None:
        self.replay.absorb(record_set(next_offset=position), 1)

    def hear(self, next_offset: int, at_s: float) -> bool:
        return self.replay.take_bounds(LogBounds(0, next_offset), at_s)

    def judge(self, at_s: float) -> Fact | None:
        return self.replay.judge(at_s)

    def why(self, at_s: float) -> NotReadyReason | None:
        fact = self.judge(at_s)
        return fact.why if isinstance(fact, FellBehind | StateLost) else None


# ------------------------------------------------------------------------------- where to begin


@pytest.mark.parametrize(
    ("position", "found"),
    [
        (39, ReplayStart.TRIMMED),
        (40, ReplayStart.RESUME),
        (50, ReplayStart.RESUME),
        (60, ReplayStart.RESUME),
        (61, ReplayStart.BEYOND),
    ],
    ids=["before", "at-start", "within", "at-end", "beyond"],
)
def test_f66_state_then_fits_between_the_bounds(position: int, found: ReplayStart) -> None:
    """A state between the bounds of the log is used, and any other one is dropped."""
    assert beginning(position, LogBounds(40, 60)) is found


# ------------------------------------------------------------------------------------- opening


def test_f28_empty_log_that_starts_at_40_then_is_caught_up_at_once() -> None:
    """Start = end = 40: there is nothing to wait for."""
    assert Read(40, log_start=40).judge(0.0) == CaughtUp()


def test_f30_target_then_is_the_end_when_reading_began() -> None:
    """Records that arrive later are not waited for, and the target does not move with them."""
    read = Read(10)
    read.move(9)
    assert read.hear(25, 2.0)
    assert read.judge(2.0) is None
    read.move(10)
    assert read.judge(3.0) == CaughtUp()
    assert read.replay.target == 10
    progress = read.replay.progress(4.0)
    assert (progress.target, progress.high_watermark, progress.lag_records) == (10, 25, 15)
    assert progress.end_age_s == 2.0


def test_f31_markers_and_holes_then_count_as_progress() -> None:
    """The position decides, not the offset of the last data record."""
    read = Read(6)
    read.apply(*GOOD)
    read.replay.absorb(record_set(marker(2), next_offset=6), 10)
    assert read.replay.shard.position == 6
    assert read.judge(0.0) == CaughtUp()


def test_target_when_reached_late_then_an_end_seen_long_ago_is_waited_for() -> None:
    """After a long replay the gate waits for a fresh log end before it opens."""
    read = Read(10)
    assert read.hear(1_000, 2.0)
    read.move(10)
    assert read.why(100.0) is NotReadyReason.BEHIND
    assert read.hear(2_000, 100.0)
    assert read.why(100.0) is NotReadyReason.BEHIND
    read.move(1_500)
    assert read.judge(101.0) is None  # what was seen meanwhile is reached as well, once
    read.move(2_000)
    assert read.judge(102.0) == CaughtUp()


def test_f69_target_when_reached_and_the_end_is_not_known_then_does_not_open() -> None:
    """The gate stays closed after a long replay when the log end is unknown."""
    read = Read(10)
    read.move(10)
    assert read.why(60.1) is NotReadyReason.END_UNKNOWN
    assert read.hear(10, 61.0)
    assert read.judge(61.0) == CaughtUp()


def test_f30_target_when_reached_with_time_to_spare_then_opens_and_stays() -> None:
    """The gate opens with half of the allowed lag left, so it does not close at once."""
    read = Read(10)
    assert read.hear(1_000, 2.0)
    assert read.hear(1_100, 16.0)
    read.move(10)
    assert read.why(17.5) is NotReadyReason.BEHIND
    soon = Read(10)
    assert soon.hear(1_000, 2.0)
    soon.move(10)
    assert soon.judge(16.0) == CaughtUp()


# ---------------------------------------------------------------------------- lag, stall, loss


def caught_up(next_offset: int = 10, settings: PumpSettings = LIMITS) -> Read:
    read = Read(next_offset, settings=settings)
    read.move(next_offset)
    assert read.judge(0.0) == CaughtUp()
    return read


def test_f25_end_when_not_reached_in_time_then_fell_behind_and_says_by_how_much() -> None:
    """An end that was seen longer ago than is allowed must be reached by now."""
    read = caught_up()
    assert read.hear(15, 2.0)
    assert read.hear(40, 20.0)
    assert read.judge(32.0) == CaughtUp()
    fact = read.judge(32.1)
    assert isinstance(fact, FellBehind)
    assert fact.why is NotReadyReason.BEHIND
    assert fact.detail == "offset 15 was the end 30 s ago and is not reached, 30 records are left"


def test_f25_reader_that_keeps_up_then_is_never_behind() -> None:
    """A reader that reaches each log end in time is current, however fast the log grows."""
    read = caught_up()
    for second in range(2, 400, 2):
        assert read.hear(second * 1_000, float(second))
        assert read.judge(second) == CaughtUp()
        read.move((second - 2) * 1_000 or 11)
    assert read.judge(399.0) == CaughtUp()


def test_f30_stale_reader_then_opens_at_the_end_and_not_on_the_way() -> None:
    """A replay that fell behind must reach the present log end before the gate opens again."""
    read = caught_up()
    assert read.hear(100, 1.0)
    assert read.hear(200, 31.0)
    assert read.why(32.0) is NotReadyReason.BEHIND
    read.move(150)
    assert read.judge(33.0) is None
    assert not read.replay.is_at_ease
    read.move(200)
    assert read.judge(34.0) == CaughtUp()
    assert read.replay.is_at_ease


def test_f69_end_when_nobody_can_say_it_then_fell_behind() -> None:
    """The gate closes when the log end is unknown for too long."""
    read = caught_up()
    assert read.hear(10, 5.0)
    assert read.judge(65.0) == CaughtUp()
    assert read.why(65.1) is NotReadyReason.END_UNKNOWN
    assert not read.replay.is_end_lost(65.0)
    assert read.replay.is_end_lost(66.0)


def test_f25_ends_when_very_many_then_the_oldest_decides_and_memory_is_bounded() -> None:
    """Days of a stall cost no more memory than minutes, and do not become younger."""
    read = caught_up()
    for second in range(2, 20_000, 2):
        assert read.hear(10 + second, float(second))
    assert len(read.replay._unreached) == 1_024
    fact = read.judge(20_000.0)
    assert isinstance(fact, FellBehind)
    assert fact.detail.startswith("offset 12 was the end 19998 s ago")
    assert fact.detail.endswith("19998 records are left")


def test_bounds_when_asked_for_earlier_then_are_not_news() -> None:
    """An answer to an earlier request changes nothing and is no truncation."""
    read = caught_up()
    assert read.hear(20, 10.0)
    assert read.hear(15, 9.0)
    assert read.replay.bounds == LogBounds(0, 20)
    assert read.replay.progress(10.0).end_age_s == 0.0


def test_end_when_it_goes_back_then_does_not_follow_from_before() -> None:
    """A log end below a former one means that the log was truncated."""
    read = caught_up()
    assert read.hear(20, 10.0)
    assert not read.hear(19, 11.0)
    assert read.hear(20, 12.0)


def test_end_when_it_is_before_the_target_then_does_not_follow_from_before() -> None:
    """A log end before the target means a truncation, also during the replay."""
    assert not Read(10).hear(9, 2.0)


# ------------------------------------------------------------------------ history not understood


@pytest.mark.parametrize(
    ("good", "bad", "share_max", "is_open"),
    [
        (0, 1, 0.01, False),
        (99, 1, 0.01, True),
        (60, 1, 0.01, True),
        (1_089, 11, 0.01, True),
        (1_088, 12, 0.01, False),
        (90, 10, 0.01, True),
        (89, 11, 0.01, False),
        (3, 3, 0.01, True),
        (2, 3, 0.01, False),
        (99, 1, 0, False),
        (100, 0, 0, True),
        (0, 5, 1, True),
    ],
    ids=[
        "all",
        "one-of-many",
        "one-of-few",
        "at-the-limit",
        "above",
        "ten",
        "more-than-ten",
        "half",
        "more-than-half",
        "none-allowed",
        "none-there",
        "let-in",
    ],
)
def test_f27_f63_history_when_not_understood_then_does_not_open(
    *, good: int, bad: int, share_max: float, is_open: bool
) -> None:
    """More undecodable records than the setting allows keep a partition closed, by name."""
    read = Read(good + bad, settings=PumpSettings(undecodable_share_max=share_max))
    read.apply(*[b"junk"] * bad, *[started(number) for number in range(good)])
    fact = read.judge(0.0)
    if is_open:
        assert fact == CaughtUp()
    else:
        assert isinstance(fact, StateLost)
        assert fact.why is NotReadyReason.NOT_UNDERSTOOD
        assert f"{bad} of {good + bad} records" in fact.detail
        assert "pump.undecodable_share_max" in fact.detail


def test_f63_refused_history_then_is_not_made_good_by_what_follows() -> None:
    """Later good records do not open a partition whose history was refused."""
    read = Read(2)
    read.apply(b"junk", b"junk")
    assert read.why(0.0) is NotReadyReason.NOT_UNDERSTOOD
    read.apply(*[started(number) for number in range(1_000)])
    assert read.why(1.0) is NotReadyReason.NOT_UNDERSTOOD
    assert not read.replay.is_caught_up


def test_f63_kept_history_then_is_judged_with_what_follows_it() -> None:
    """The history counts of a snapshot count after a restart."""
    kept = ReplayHistory(records=100, undecodable=50)
    assert Read(0, history=kept).why(0.0) is NotReadyReason.NOT_UNDERSTOOD


def test_f63_history_that_was_served_when_it_is_judged_anew_then_is_accepted() -> None:
    """A start does not judge what was served before, only undecodable records that came later."""
    read = Read(100)
    read.apply(*[started(number) for number in range(100)])
    assert read.judge(0.0) == CaughtUp()
    read.apply(*[b"junk"] * 50)
    history = read.replay.history.copy()
    assert (history.undecodable, history.accepted) == (50, 50)
    again = Read(2, history=history.copy())
    again.apply(b"junk", b"junk")
    assert again.judge(0.0) == CaughtUp()
    assert again.replay.history.accepted == 52
    worse = Read(11, history=history.copy())
    worse.apply(*[b"junk"] * 11)
    assert worse.why(0.0) is NotReadyReason.NOT_UNDERSTOOD
    assert worse.replay.history.accepted == 50


def test_f27_tombstones_and_later_versions_then_close_nothing() -> None:
    """History that was removed, or is of a known later form, was not misunderstood."""
    read = Read(5, settings=PumpSettings(undecodable_share_max=0))
    read.apply(TOMBSTONE, VERSION_1, TOMBSTONE, *GOOD)
    assert read.judge(0.0) == CaughtUp()
    history = read.replay.history
    assert (history.counted_apart, history.undecodable, history.records) == (3, 0, 2)


def test_f65_updates_without_base_then_are_counted_apart() -> None:
    """Updates without a first record are counted apart, because more events may be missing."""
    read = Read(4)
    read.apply(finished("gone"), finished("gone"), *GOOD)
    history = read.replay.history
    assert (history.without_base, history.records, history.undecodable) == (2, 4, 0)
    assert read.judge(0.0) == CaughtUp()


# ----------------------------------------------------------------------------- a trimmed history


def test_f67_state_when_retention_has_passed_it_then_is_kept_and_marked() -> None:
    """What the shard read before stays true, and the history names what it never saw."""
    read = Read(2)
    read.apply(started("w"), finished("w"))
    shard = read.replay.shard
    again = Replay(shard, read.replay.history, LogBounds(60, 60), 0.0, LIMITS)
    assert (shard.position, shard.highest_offset(tp(), 0)) == (60, 99)
    assert [one.id for one in shard.segments(tp())] == [started("w").id]
    assert (again.history.trimmed_before, again.history.is_complete) == (60, False)
    assert again.judge(0.0) == CaughtUp()
