"""The nine steps in memory: order, refusals, and drivers that die in each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.journal import AdoptionStep
from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicStatus
from spark_tiering.adopt.settings import RETENTION_MS
from spark_tiering.adopt.steps import WindowOptions
from spark_tiering.copy_job.publishing import PublishFailure
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.tasks import UnitOutcome
from tests.support.tier.copy_plans import cut, segment, source
from tests.support.tier.simulated_adoption import (
    BEFORE,
    CLOSED,
    ONE,
    QUICK,
    TWO,
    died,
    standing_and_reason,
    troubled,
    world,
)

CS, CF, DS, DF = SegmentState


def step_before(state: SegmentState, start: int) -> int:
    """Return the step at which a driver dies before it publishes that a copy has *state*."""
    for step in range(1, 1000):
        found = died(step, is_troubled=False)
        found.dies_at = None
        said = [
            one for one, reached in found.events
            if reached is state and found.segments[one].start_offset == start
        ]  # fmt: skip
        if said:
            return step - 1
    raise AssertionError


CF_OF_FIRST = step_before(CF, 0)


def test_topic_when_adopted_then_every_range_is_copied_once_and_settings_are_as_before() -> None:
    """All closed segments are copied once; settings and records are as before."""
    found = world()
    outcome = found.adopt()
    assert (outcome.standing, outcome.why, outcome.findings) == (TopicStatus.ADOPTED, None, ())
    assert outcome.is_fine
    found.check_closed(BEFORE)
    assert found.finished_starts() == [0, 5, 10, 20, 30, 100]
    assert found.told_tiered == {ONE: 39, TWO: 199}
    assert [one.step for one in found.journals] == list(AdoptionStep)
    assert found.journals[0].before == {
        name: value for name, value in BEFORE.items() if name != "segment.bytes"
    }
    assert found.journals[0].log_starts == {0: 0, 1: 5}


def test_topic_when_adopted_twice_then_the_second_time_does_nothing() -> None:
    """A second adoption has nothing to copy and opens no window."""
    found = world()
    found.adopt()
    steps = found.steps
    assert found.adopt().standing is TopicStatus.NOTHING_TO_DO
    assert len(found.journals) == len(AdoptionStep)
    assert found.steps - steps < 8


def test_f108_copy_when_it_fails_for_good_then_all_above_is_ended_before_brokers_copy() -> None:
    """A segment that fails for good ends all copies above it before brokers copy."""
    found = troubled()
    outcome = found.adopt()
    assert outcome.standing is TopicStatus.ADOPTED
    assert outcome.stopped == "a round of copies finished nothing"
    found.check_closed(BEFORE)
    ours = [one.start_offset for one in outcome.receipts if one.fate.value == "finished"]
    assert sorted(ours) == [0, 5, 10, 100]


def test_first_copy_when_it_fails_then_no_lone_copy_moves_the_log_start() -> None:
    """When the first copy fails, no later copy is finished above the gap."""
    found = world()
    found.outcomes[0] = UnitOutcome.UNKNOWN
    outcome = found.adopt()
    assert outcome.standing is TopicStatus.ADOPTED
    found.check_closed(BEFORE)
    assert found.log_starts == {ONE: 0, TWO: 5}


def test_lone_copy_when_it_cannot_be_ended_then_the_window_stays_open() -> None:
    """A lone copy that cannot be ended keeps the window open until a resume."""
    found = world()
    found.outcomes[0] = UnitOutcome.CONFLICT
    found.undeletable |= {0, 10, 20}
    outcome = found.adopt()
    assert standing_and_reason(outcome) == (TopicStatus.LEFT_OPEN, AdoptionRefusal.OPEN_COPIES)
    assert not found.is_copying
    assert found.lost == []
    found.undeletable.clear()
    found.outcomes.clear()
    assert found.window().resume().standing is TopicStatus.ADOPTED
    found.check_closed(BEFORE)


def test_tier_when_retention_has_just_moved_its_start_then_is_looked_at_again() -> None:
    """A tier start that retention has just moved is read again once."""
    found = world()
    found.broker_copy(ONE, 10, 20)
    found.expired = {ONE: 10}
    assert found.adopt().standing is TopicStatus.ADOPTED
    assert found.log_starts[ONE] == 10


def test_hole_when_somebody_makes_one_in_the_window_then_it_is_not_closed() -> None:
    """The window stays open while the tier has a hole, and closes when it is filled."""
    found = world()
    found.outcomes[10] = UnitOutcome.CONFLICT

    def somebody_copies(_: object) -> None:
        if not any(one.id.partition == ONE for one in found.finished_by_brokers()):
            found.broker_copy(ONE, 30, 40)

    found.on_copy = somebody_copies
    outcome = found.adopt()
    assert standing_and_reason(outcome) == (TopicStatus.LEFT_OPEN, AdoptionRefusal.TIER_HAS_HOLE)
    assert not found.is_copying
    assert found.lost == []
    found.broker_copy(ONE, 10, 30)
    assert found.window().abort().standing is TopicStatus.ABORTED
    found.check_closed(BEFORE)


def test_broker_copy_when_it_was_interrupted_then_its_range_is_copied_too() -> None:
    """A broker's interrupted copy counts as not copied: its range is copied too."""
    found = world()
    found.broker_copy(ONE, 0, 10)
    found.broker_copy(ONE, 10, 20, CS)
    outcome = found.adopt()
    assert outcome.standing is TopicStatus.ADOPTED
    found.check_closed(BEFORE)
    starts = [one.start_offset for one in outcome.receipts if one.partition == ONE]
    assert starts == [10, 20, 30]


@pytest.mark.parametrize(
    ("changed", "why"),
    [({"busy_events": 10_000}, "no rest in 1000 ms"), ({"stop": "paused"}, "paused")],
    ids=["restless", "stopped"],
)
def test_window_when_copying_may_not_begin_then_is_closed_again(
    changed: dict[str, Any], why: str
) -> None:
    """A stop, or metadata that keeps changing, closes the window with nothing copied."""
    found = world(**changed)
    outcome = found.adopt()
    assert outcome.standing is TopicStatus.ADOPTED
    assert outcome.stopped.startswith(why)
    assert not outcome.is_fine
    assert not found.events
    found.check_closed(BEFORE)


def test_brokers_when_they_do_not_go_on_behind_the_copies_then_copying_is_stopped_again() -> None:
    """When brokers do not go on behind the copies, copying is off again, the reason journalled."""
    found = world(is_deaf=True)
    outcome = found.adopt()
    assert standing_and_reason(outcome) == (TopicStatus.LEFT_OPEN, AdoptionRefusal.NOT_TAKEN_UP)
    assert not found.is_copying
    assert found.setting(RETENTION_MS) == "-1"
    assert found.journals[-1].step is AdoptionStep.OPEN
    assert "orders" in found.journals[-1].trouble
    found.is_deaf = False
    assert found.window().abort().standing is TopicStatus.ABORTED
    found.check_closed(BEFORE)


@pytest.mark.parametrize("lost_at", range(1, 110, 4))
def test_topic_when_lost_to_another_job_then_nothing_is_changed_any_more(lost_at: int) -> None:
    """A driver that lost the topic changes no setting; the window stays open."""
    found = world(lost_at=lost_at)
    outcome = found.adopt()
    if outcome.standing is TopicStatus.ADOPTED:
        return
    assert standing_and_reason(outcome)[1] is AdoptionRefusal.NOT_OURS
    assert found.lost == []
    found.lost_at = None
    if found.journals:
        assert found.window().abort().standing in CLOSED
    found.check_closed(BEFORE)


def test_producer_when_it_rolls_segments_in_every_round_then_the_rest_is_the_brokers() -> None:
    """The driver's rounds end although a producer keeps rolling segments."""
    found = world()
    ends = list(range(0, 50, 10))

    def roll(_: object) -> None:
        ends.append(ends[-1] + 10)
        rolled = source(cut(*ends, is_active=True), partition=ONE, is_tiered=True, log_start=0)
        found.sources = [rolled, found.sources[1]]

    found.on_copy = roll
    outcome = found.adopt(replace(QUICK, rounds_max=2))
    assert (outcome.rounds, outcome.is_fine) == (2, True)
    found.check_closed(BEFORE)


@pytest.mark.parametrize("is_all", [True, False], ids=["all", "some"])
def test_segment_when_it_is_damaged_then_told_though_brokers_go_on(*, is_all: bool) -> None:
    """A damaged segment is reported although brokers copy again."""
    found = world()
    torn = segment(10, 20, blockers=("torn",))
    sound = [] if is_all else cut(0, 10)
    found.log_starts[ONE] = log_start = 10 if is_all else 0
    segments = [*sound, torn, *cut(20, is_active=True)]
    found.sources = [source(segments, partition=ONE, is_tiered=True, log_start=log_start)]
    outcome = found.adopt()
    assert outcome.standing is (TopicStatus.NOTHING_TO_DO if is_all else TopicStatus.ADOPTED)
    (finding,) = outcome.findings
    assert "cannot be copied, blocked: torn" in finding
    assert not outcome.is_fine
    found.check_closed(BEFORE)


def test_copy_when_it_was_only_to_be_ended_then_resuming_it_is_fine() -> None:
    """A resume that only has to end a copy counts as complete."""
    found = died(CF_OF_FIRST, is_troubled=False)
    for one in found.open_of_jobs():
        found.segments[one.id] = replace(one, state=DS)
    found.sources = [
        source(cut(0, is_active=True), partition=ONE, is_tiered=True, log_start=0),
        source(cut(5, is_active=True), partition=TWO, is_tiered=True, log_start=5),
    ]
    outcome = found.window().resume()
    assert (outcome.standing, outcome.stopped) == (TopicStatus.ADOPTED, "")
    assert outcome.ends
    found.check_closed(BEFORE)


def test_topic_when_made_anew_in_its_window_then_its_own_settings_stay() -> None:
    """A topic recreated in its window keeps its own settings."""
    found = world()
    own = {RETENTION_MS: "-1"}

    def remake(_: object) -> None:
        found.is_gone = True
        found.explicit = dict(own)

    found.on_copy = remake
    outcome = found.adopt()
    assert standing_and_reason(outcome) == (TopicStatus.LEFT_OPEN, AdoptionRefusal.NO_SUCH_TOPIC)
    assert found.explicit == own
    assert found.window().resume().standing is TopicStatus.ABORTED
    assert found.explicit == own


def test_event_when_its_outcome_is_unknown_then_stragglers_are_waited_for() -> None:
    """The driver waits for events of unknown outcome before brokers copy again."""
    found = world()
    found.failures[0, CS] = PublishFailure.UNKNOWN
    outcome = found.adopt(WindowOptions(quiet_ms=50, quiet_max_ms=1_000, pause_ms=5))
    assert outcome.standing is TopicStatus.ADOPTED
    assert outcome.window_ms >= 100
    found.check_closed(BEFORE)


def test_whole_copy_when_the_source_lacks_it_then_abort_leaves_it_open() -> None:
    """An abort leaves a whole copy open when the source lacks its records."""
    found = died(CF_OF_FIRST, is_troubled=False)
    whole = next(one for one in found.open_of_jobs() if one.start_offset == 0)
    assert found.objects[whole.id.uuid] is StoredObjects.WHOLE
    found.sources = [
        source(cut(10, 20, 30, 40, is_active=True), partition=ONE, is_tiered=True, log_start=0),
        found.sources[1],
    ]
    outcome = found.window().abort()
    assert standing_and_reason(outcome) == (TopicStatus.LEFT_OPEN, AdoptionRefusal.OPEN_COPIES)
    assert outcome.why is not None
    assert "last-copy" in outcome.why.detail
    assert whole.id in found.segments
    assert found.window().resume().standing is TopicStatus.ADOPTED
    assert found.segments[whole.id].state is CF
    found.check_closed(BEFORE)
