"""Killed windows: drivers that die at every step, and the next drivers that take the window up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicStatus
from spark_tiering.copy_job.publishing import PublishRefusal
from tests.support.tier.simulated_adoption import BEFORE, CLOSED, died, troubled, world
from tests.support.tier.simulated_jobs import Killed, WorldPublisher

if TYPE_CHECKING:
    from spark_tiering.adopt.outcomes import TopicOutcome
    from tests.support.tier.simulated_adoption import AdoptedWorld

pytestmark = pytest.mark.slow

CS, CF, DS, DF = SegmentState


def steps_of(made: AdoptedWorld) -> int:
    """Return the number of steps of an undisturbed adoption."""
    made.adopt()
    return made.steps


DEATHS = [(False, step) for step in range(1, steps_of(world()) + 1)]
DEATHS += [(True, step) for step in range(1, steps_of(troubled()) + 1)]


def check_taken_up(found: AdoptedWorld, outcome: TopicOutcome) -> None:
    """Check the facts that hold after a window was taken up and closed, or was never journalled."""
    if found.journals:
        assert outcome.standing in CLOSED or outcome.why is not None
        if outcome.standing is TopicStatus.REFUSED:
            assert outcome.why is not None
            assert outcome.why.reason is AdoptionRefusal.NO_WINDOW
    found.check_closed(BEFORE)


@pytest.mark.parametrize("way", ["resume", "abort"])
@pytest.mark.parametrize(("is_troubled", "dies_at"), DEATHS)
def test_window_of_a_killed_driver_closes(dies_at: int, way: str, *, is_troubled: bool) -> None:
    """After a kill at any step a resume copies the rest; an abort keeps what was finished."""
    found = died(dies_at, is_troubled=is_troubled)
    was_open = bool(found.journals) and found.journals[-1].is_open
    begun = [one for one in found.events if one[1] is CS]
    outcome = getattr(found.window(), way)()
    assert (outcome.standing is TopicStatus.REFUSED) is not was_open
    check_taken_up(found, outcome)
    if way == "abort":
        assert [one for one in found.events if one[1] is CS] == begun
    elif was_open and found.journals[-1].opened_ms:
        assert found.finished_starts() == [0, 5, 10, 20, 30, 100]


@pytest.mark.long
@pytest.mark.parametrize("way", ["resume", "abort"])
@pytest.mark.parametrize("first", range(3, len(DEATHS), 7))
def test_second_driver_when_killed_as_well_then_a_third_one_ends_it(first: int, way: str) -> None:
    """A third driver ends a window whose first and second driver were both killed, at any step."""
    is_troubled, dies_at = DEATHS[first]
    for second in range(1, 400):
        found = died(dies_at, is_troubled=is_troubled)
        found.dies_at = found.steps + second
        try:
            getattr(found.window(), way)()
        except Killed:
            found.dies_at = None
            found.window().resume() if second % 2 else found.window().abort()
            found.check_closed(BEFORE)
        else:
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize(("is_troubled", "dies_at"), DEATHS[::3])
@pytest.mark.parametrize("way", ["resume", "abort"])
def test_late_event_is_refused_after_takeup(dies_at: int, way: str, *, is_troubled: bool) -> None:
    """The metadata refuses a dead driver's late event: its open copies are ended."""
    found = died(dies_at, is_troubled=is_troubled)
    opened = [one.id for one in found.open_of_jobs()]
    getattr(found.window(), way)()
    finished = {one.id for one in found.segments.values() if one.state is CF}
    publisher = WorldPublisher(found)
    for segment_id in set(opened) - finished:
        late = publisher.move(segment_id.partition, segment_id.uuid, CF, None)
        assert isinstance(late, PublishRefusal)
    found.check_closed(BEFORE)
