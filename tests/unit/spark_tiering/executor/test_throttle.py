"""The throttle of one slot, by a clock without waits."""

from __future__ import annotations

import threading

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.executor.throttle import (
    BURST_S,
    JOBS_KEPT,
    UNBOUND,
    PaceLimits,
    Throttle,
    throttle_of,
)
from tests.support.tier.copy_tasks import Time


def throttle(time: Time, pace: PaceLimits) -> Throttle:
    return Throttle(pace, time.clock, time.sleep)


@pytest.mark.parametrize("piece", [10, 100, 1_000, 5_000])
def test_bytes_when_they_are_taken_then_keep_to_the_pace(piece: int) -> None:
    """The throttle keeps its rate for pieces of any size, but for one burst and one piece."""
    time = Time()
    slot = throttle(time, PaceLimits(bytes_per_s=1_000))
    began = time.now_s
    for _ in range(20_000 // piece):
        assert slot.wait(size_bytes=piece)
    took_s = time.now_s - began
    assert 20 - BURST_S - piece / 1_000 <= took_s + 1e-6
    assert took_s <= 20


def test_requests_when_they_are_made_then_keep_to_their_own_pace() -> None:
    """Requests and bytes each have their own rate."""
    time = Time()
    slot = throttle(time, PaceLimits(bytes_per_s=1, requests_per_s=2))
    began = time.now_s
    for _ in range(10):
        assert slot.wait(requests=1)
    assert 10 / 2 - BURST_S - 0.5 <= time.now_s - began <= 10 / 2
    assert slot.wait(size_bytes=100)
    before = time.now_s
    assert slot.wait(requests=1)
    assert time.now_s - before <= 0.5


def test_slot_that_was_idle_when_it_goes_on_has_gathered_little() -> None:
    """A slot that was idle for an hour may use one moment's worth at once."""
    time = Time()
    slot = throttle(time, PaceLimits(bytes_per_s=1_000))
    slot.wait(size_bytes=1_000)
    time.now_s += 3_600
    began = time.now_s
    for _ in range(10):
        slot.wait(size_bytes=1_000)
    assert time.now_s - began >= 10 - BURST_S - 1


def test_wait_that_is_too_long_when_asked_for_is_refused_at_once_and_counts_nothing() -> None:
    """A wait beyond the deadline is refused without sleeping and uses no budget."""
    time = Time()
    slot = throttle(time, PaceLimits(bytes_per_s=1))
    assert slot.wait(size_bytes=100)
    assert not slot.wait(size_bytes=1, limit_s=50)
    assert time.slept == []
    assert slot.wait(size_bytes=1, limit_s=100)
    assert time.slept == [pytest.approx(99)]


def test_requests_that_were_made_already_when_charged_let_the_next_one_wait() -> None:
    """Requests charged after an upload make the next one wait."""
    time = Time()
    slot = throttle(time, PaceLimits(requests_per_s=1))
    slot.charge(31)
    assert slot.wait(requests=1)
    assert time.slept == [pytest.approx(30)]


def test_pace_without_limits_when_kept_never_waits() -> None:
    """A throttle without limits never sleeps."""
    time = Time()
    slot = throttle(time, UNBOUND)
    for _ in range(100):
        assert slot.wait(10**12, 10**6, limit_s=0)
    assert not time.slept


def test_pace_of_a_job_when_shared_is_kept_by_all_slots_together() -> None:
    """The slots of a job share its rate equally, and a missing limit stays missing."""
    assert PaceLimits(100.0, None).share(4) == PaceLimits(25.0, None)
    assert PaceLimits(None, 3).share(2) == PaceLimits(None, 1.5)
    with pytest.raises(InvalidArgument):
        UNBOUND.share(0)


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan")])
def test_pace_by_which_nothing_is_ever_done_when_made_is_refused(limit: float) -> None:
    """A limit of zero or less is refused."""
    with pytest.raises(InvalidArgument):
        PaceLimits(bytes_per_s=limit)
    with pytest.raises(InvalidArgument):
        PaceLimits(requests_per_s=limit)


def test_throttle_of_a_slot_when_units_follow_each_other_is_the_same() -> None:
    """A worker's thread keeps one throttle for each job over its units."""
    pace = PaceLimits(bytes_per_s=1)
    first = throttle_of("job-a", pace)
    assert throttle_of("job-a", pace) is first
    assert throttle_of("job-b", pace) is not first
    assert throttle_of("job-a", UNBOUND) is not first
    others: list[Throttle] = []
    thread = threading.Thread(target=lambda: others.append(throttle_of("job-a", pace)))
    thread.start()
    thread.join()
    assert others[0] is not first
    for number in range(JOBS_KEPT):
        throttle_of(f"job-{number}", pace)
    assert throttle_of("job-a", pace) is not first
