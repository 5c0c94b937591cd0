"""Window refusals, failed changes, and windows that exist already."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.journal import AdoptionStep
from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicStatus
from spark_tiering.adopt.settings import COPY_DISABLE, RETENTION_MS
from tests.support.tier.copy_plans import cut, source
from tests.support.tier.simulated_adoption import (
    BEFORE,
    CAREFUL,
    ONE,
    QUICK,
    TWO,
    died,
    standing_and_reason,
    world,
)

CS, CF, DS, DF = SegmentState


def test_change_when_nobody_hears_of_it_then_is_asked_for_again() -> None:
    """A change of settings whose answer was lost is requested again, and the window continues."""
    found = world(lost_changes=2)
    assert found.adopt().standing is TopicStatus.ADOPTED
    found.check_closed(BEFORE)


def test_change_when_nobody_ever_hears_of_it_then_the_window_counts_as_open() -> None:
    """A change without an answer counts as made: the next driver undoes it."""
    found = world(lost_changes=3)
    assert standing_and_reason(found.adopt()) == (
        TopicStatus.LEFT_OPEN,
        AdoptionRefusal.CHANGE_UNKNOWN,
    )
    assert found.window().abort().standing is TopicStatus.ABORTED
    found.check_closed(BEFORE)


@pytest.mark.parametrize("why", ["policy", "when it is made"])
def test_change_when_the_cluster_refuses_it_then_the_topic_is_refused(why: str) -> None:
    """A change that the cluster refuses refuses the topic, with nothing changed."""
    found = world(refuses_change=why)
    assert standing_and_reason(found.adopt()) == (
        TopicStatus.REFUSED,
        AdoptionRefusal.CHANGE_REFUSED,
    )
    assert bool(found.journals) is (why == "when it is made")
    found.check_closed(BEFORE)


@pytest.mark.parametrize("way", ["resume", "abort"])
def test_window_when_its_journal_lowers_retention_then_changed_only_as_the_operator_says(
    way: str,
) -> None:
    """A journal in the store lowers no retention unless the operator allows it."""
    found = died(14, is_troubled=False)
    forged = replace(found.journals[-1], step=AdoptionStep.RESTORING, before={RETENTION_MS: "1"})
    found.journals[-1] = forged
    settings, events = dict(found.explicit), list(found.events)
    outcome = getattr(found.window(CAREFUL), way)()
    assert standing_and_reason(outcome) == (
        TopicStatus.LEFT_OPEN,
        AdoptionRefusal.RETENTION_SHRINKS,
    )
    assert outcome.why is not None
    assert "retention.ms is -1, it would be 1; " in outcome.why.detail
    assert "--allow-shrinking-retention" in outcome.why.detail
    assert (found.explicit, found.events, found.journals[-1]) == (settings, events, forged)
    assert getattr(found.window(QUICK), way)().standing.is_closed
    assert found.setting(RETENTION_MS) == "1"


def test_unfit_settings_change_nothing() -> None:
    """Settings that would destroy data refuse the topic by name, before anything is changed."""
    found = world()
    found.explicit |= {COPY_DISABLE: "true"}
    before = dict(found.explicit)
    assert standing_and_reason(found.adopt()) == (
        TopicStatus.REFUSED,
        AdoptionRefusal.COPYING_DISABLED,
    )
    assert (found.events, found.journals, found.explicit) == ([], [], before)


@pytest.mark.parametrize(
    ("times", "standing"), [(2, TopicStatus.ADOPTED), (3, TopicStatus.NOTHING_TO_DO)]
)
def test_segment_copied_by_the_broker_is_read_again(times: int, standing: TopicStatus) -> None:
    """A segment that changed while it was read is read again; lasting obstacles are reported."""
    found = world(vanishing=times)
    outcome = found.adopt()
    assert outcome.standing is standing
    assert bool(outcome.findings) is (standing is TopicStatus.NOTHING_TO_DO)
    found.check_closed(BEFORE)


@pytest.mark.parametrize(
    ("changed", "copies", "reason"),
    [
        ({}, [(ONE, 20, 30, CF)], AdoptionRefusal.LONE_COPY),
        ({}, [(ONE, 20, 30, CS)], AdoptionRefusal.LONE_COPY),
        ({}, [(ONE, 20, 30, DS)], AdoptionRefusal.LONE_COPY),
        ({}, [(ONE, 0, 10, CF), (ONE, 20, 30, CF)], AdoptionRefusal.TIER_HAS_HOLE),
        ({"without_source": {TWO}}, [(TWO, 5, 100)], AdoptionRefusal.SOURCE_LACKS_PARTITION),
        ({"too_old": "broker 3: no ListOffsets 9"}, [], AdoptionRefusal.BROKER_TOO_OLD),
    ],
    ids=["lone", "lone-begun", "lone-deleting", "hole", "source-lacks-it", "old-broker"],
)
def test_tier_when_it_is_unfit_then_refused_before_anything(
    changed: dict[str, Any], copies: list[Any], reason: AdoptionRefusal
) -> None:
    """A tier or broker by which records would be lost refuses the topic, with nothing changed."""
    found = world(**changed)
    for copy in copies:
        found.broker_copy(*copy)
    assert standing_and_reason(found.adopt()) == (TopicStatus.REFUSED, reason)
    assert (found.events, found.journals, found.explicit) == ([], [], BEFORE)


def test_window_when_open_then_a_new_adoption_is_refused() -> None:
    """A new adoption of a topic with an open window is refused and names resume and abort."""
    found = died(40, is_troubled=False)
    assert standing_and_reason(found.adopt()) == (TopicStatus.REFUSED, AdoptionRefusal.WINDOW_OPEN)


def test_window_when_it_was_being_closed_then_resuming_copies_nothing_more() -> None:
    """A resume of a closing window copies nothing more, since brokers may copy again."""
    steps = next(
        step for step in range(1, 1000)
        if (journals := died(step, is_troubled=False).journals)
        and journals[-1].step is AdoptionStep.CLOSING
    )  # fmt: skip
    found = died(steps, is_troubled=False)
    begun = [one for one in found.events if one[1] is CS]
    found.sources = [
        source(cut(*range(0, 70, 10), is_active=True), partition=ONE, is_tiered=True, log_start=0),
        found.sources[1],
    ]
    assert found.window().resume().standing is TopicStatus.ADOPTED
    assert [one for one in found.events if one[1] is CS] == begun
    found.check_closed(BEFORE)


@pytest.mark.parametrize("way", ["resume", "abort"])
def test_window_when_there_is_none_then_nothing_is_taken_up(way: str) -> None:
    """A topic without a window, or with a closed one, is left alone by resume and abort."""
    found = world()
    for _ in range(2):
        outcome = getattr(found.window(), way)()
        assert outcome.why is not None
        assert outcome.why.reason is AdoptionRefusal.NO_WINDOW
        found.adopt()
    found.check_closed(BEFORE)


def test_topic_when_it_is_gone_then_its_window_is_closed() -> None:
    """A deleted topic's window is closed without a change of settings."""
    found = died(40, is_troubled=False)
    found.is_gone = True
    assert found.window().resume().standing is TopicStatus.ABORTED
    assert found.journals[-1].step is AdoptionStep.CLOSED
