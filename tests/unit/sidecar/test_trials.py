"""The addresses from hellos that may be tried, and when: pure, by a clock of the test."""

from __future__ import annotations

from itertools import pairwise

from rlmm.errors import ConfigError
from rlmm.sidecar.connection_trials import (
    AGAIN,
    AT_A_TIME_MAX,
    OTHER_S,
    REMEMBERED_MAX,
    ConnectionTrials,
)

WRONG = ConfigError("wrong")


class Clock:
    now_s = 0.0


def made() -> tuple[ConnectionTrials, Clock]:
    clock = Clock()
    return ConnectionTrials(lambda: clock.now_s), clock


def test_address_when_it_fails_again_and_again_then_pauses_double_up_to_the_last() -> None:
    """The pauses double up to the last one, however often the address is named."""
    trials, clock = made()
    tried_s = []
    while clock.now_s < 300:
        if trials.begin("blue", "a:1", is_learned=False):
            tried_s.append(clock.now_s)
            trials.failed("blue", WRONG)
        clock.now_s += 0.5
    pauses = [later - at for at, later in pairwise(tried_s)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert trials.last("blue") == ("a:1", WRONG)


def test_address_when_another_is_told_then_tried_soon_and_never_two_at_a_time() -> None:
    """A newly named address is tried soon, and never two at a time."""
    trials, clock = made()
    for _ in range(7):
        clock.now_s += AGAIN.last_s
        assert trials.begin("blue", "wrong:1", is_learned=False)
        trials.failed("blue", WRONG)
    assert not trials.begin("blue", "right:1", is_learned=False)
    clock.now_s += OTHER_S
    assert trials.begin("blue", "right:1", is_learned=False)
    assert trials.last("blue") is None
    clock.now_s += 1_000
    assert not trials.begin("blue", "other:1", is_learned=False)
    trials.ended("blue")
    assert trials.last("blue") is None


def test_cluster_when_followed_for_long_then_the_next_failure_begins_anew() -> None:
    """The pauses start anew only after a cluster was followed for long."""
    trials, clock = made()
    assert trials.begin("blue", "a:1", is_learned=True)
    trials.ended("blue")
    for pause_s in (1, 2, 4):
        trials.dropped("blue", "a:1", WRONG, lasted_s=0.1)
        clock.now_s += pause_s - 0.1
        assert not trials.begin("blue", "a:1", is_learned=True)
        clock.now_s += 0.1
        assert trials.begin("blue", "a:1", is_learned=True)
        trials.ended("blue")
    trials.dropped("blue", "a:1", WRONG, lasted_s=AGAIN.last_s)
    clock.now_s += 1
    assert trials.begin("blue", "a:1", is_learned=True)


def test_cluster_when_dropped_during_a_try_then_none_is_begun_beside_that() -> None:
    """A cluster dropped during a trial gets no second trial before the first one ends."""
    trials, clock = made()
    assert trials.begin("blue", "b:1", is_learned=True)
    trials.dropped("blue", "a:1", WRONG, lasted_s=100.0)
    clock.now_s += 100
    assert not trials.begin("blue", "a:1", is_learned=True)
    trials.ended("blue")
    assert trials.begin("blue", "a:1", is_learned=True)


def test_clusters_when_many_are_made_up_then_few_are_tried_and_remembered() -> None:
    """Few of many made-up clusters are tried and remembered, and learned ones are not affected."""
    trials, clock = made()
    trials.dropped("blue", "a:1", WRONG, lasted_s=0.0)
    begun = [trials.begin(f"made-up-{number}", "x:1", is_learned=False) for number in range(100)]
    assert sum(begun) == AT_A_TIME_MAX
    assert trials.begin("green", "b:1", is_learned=True)
    for number in range(AT_A_TIME_MAX):
        trials.failed(f"made-up-{number}", WRONG)
    for number in range(1_000):
        assert trials.begin(f"more-{number}", "x:1", is_learned=False)
        trials.failed(f"more-{number}", WRONG)
    assert len(trials._of) <= REMEMBERED_MAX
    assert trials.last("blue") is not None
    assert trials.last("made-up-0") is None
    clock.now_s += 1
    trials.ended("green")
