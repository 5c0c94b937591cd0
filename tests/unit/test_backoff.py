"""The pauses between attempts."""

from __future__ import annotations

from rlmm.base.backoff import BOOTSTRAP, RETRY, Backoff


def test_f95_backoff_when_failures_follow_each_other_then_doubles_from_250_ms_to_10_s() -> None:
    """Failure scenario F95: the pauses while no broker can be reached."""
    backoff = Backoff(BOOTSTRAP, lambda: 0.0)
    assert [backoff.failed() for _ in range(8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_backoff_when_time_passes_then_the_pause_runs_out() -> None:
    """The clock gives the rest of a pause, which is never below zero."""
    now = 100.0
    backoff = Backoff(RETRY, lambda: now)
    assert backoff.remaining_s == 0
    backoff.failed()
    assert round(backoff.remaining_s, 6) == RETRY.first_s
    now += 0.04
    assert round(backoff.remaining_s, 3) == 0.06
    now += 5
    assert backoff.remaining_s == 0


def test_backoff_when_it_succeeded_then_begins_anew() -> None:
    """After a success the next failure costs the first pause again, and none is left."""
    backoff = Backoff(BOOTSTRAP, lambda: 0.0)
    for _ in range(5):
        backoff.failed()
    backoff.succeeded()
    assert backoff.remaining_s == 0
    assert backoff.failed() == BOOTSTRAP.first_s


def test_f95_backoff_when_begun_anew_then_the_pause_ends_where_the_first_one_would() -> None:
    """A sign of life shortens the pause to the first one and no further."""
    now = 100.0
    backoff = Backoff(BOOTSTRAP, lambda: now)
    backoff.begin_anew()
    assert backoff.remaining_s == 0
    for _ in range(7):
        backoff.failed()
    for _ in range(3):
        backoff.begin_anew()
        assert backoff.remaining_s == BOOTSTRAP.first_s
    now += 1
    assert backoff.remaining_s == 0
    assert [backoff.failed() for _ in range(3)] == [0.25, 0.5, 1.0]
