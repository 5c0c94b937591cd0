"""Plans carried out in memory: order, failures, drivers that die, jobs that lose their topic."""

from __future__ import annotations

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.publishing import PublishFailure
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.executor.tasks import UnitOutcome
from tests.support.builders import tp
from tests.support.tier.copy_plans import cut, source
from tests.support.tier.simulated_jobs import Killed, World, fates

pytestmark = pytest.mark.slow

CS, CF, DS, DF = SegmentState
ORDERS, LOGS = tp("orders", 0), tp("logs", 1)


def world(mode: CopyMode = CopyMode.ARCHIVE) -> World:
    is_tiered = mode is CopyMode.ADOPT
    log_start = 0 if is_tiered else None
    return World(
        [
            source(
                cut(*range(0, 50, 10), is_active=True),
                partition=ORDERS,
                is_tiered=is_tiered,
                log_start=log_start,
            ),
            source(
                cut(0, 100, 200, 300, is_active=True),
                partition=LOGS,
                is_tiered=is_tiered,
                log_start=log_start,
            ),
        ],
        mode,
    )


def troubled(mode: CopyMode) -> World:
    found = world(mode)
    found.outcomes[20] = UnitOutcome.CONFLICT
    return found


def every_death() -> list[tuple[CopyMode, int]]:
    """Yield every step of a job at which its driver may die, in both modes."""
    deaths = []
    for mode in CopyMode:
        undisturbed = troubled(mode)
        undisturbed.carry_out()
        deaths += [(mode, step) for step in range(1, undisturbed.steps + 1)]
    return deaths


@pytest.mark.parametrize("mode", list(CopyMode))
def test_plan_when_carried_out_then_everything_is_finished_lowest_first(mode: CopyMode) -> None:
    """Copies of a partition start and finish in ascending order, whichever returns first."""
    found = world(mode)
    carried = found.carry_out()
    assert {one.fate for one in carried.receipts()} == {CopyFate.FINISHED}
    found.check()
    assert sorted(found.told) == found.finished_starts()
    for partition in (ORDERS, LOGS):
        for state in (CS, CF):
            starts = [
                found.segments[segment_id].start_offset
                for segment_id, reached in found.events
                if segment_id.partition == partition and reached is state
            ]
            assert starts == sorted(starts)
            assert len(starts) == len(set(starts)) > 2


@pytest.mark.parametrize(("mode", "dies_at"), every_death())
def test_f102_f114_f115_driver_when_killed_next_ends_clean(mode: CopyMode, dies_at: int) -> None:
    """After a kill at any step all finished copies are whole, and the next jobs finish the rest."""
    found = troubled(mode)
    found.dies_at = dies_at
    with pytest.raises(Killed):
        found.carry_out()
    found.check()
    found.outcomes.clear()
    found.dies_at = None
    found.carry_out()
    carried = found.carry_out()
    assert {one.fate for one in carried.receipts()} <= {CopyFate.FINISHED}
    assert found.finished_starts() == [0, 0, 10, 20, 30, 100, 200]
    assert {one.state for one in found.segments.values()} == {CF}
    assert set(found.objects.values()) == {StoredObjects.WHOLE}
    found.check()


def test_f108_copy_when_it_fails_for_good_then_is_ended_and_the_rest_stays_open() -> None:
    """A copy that failed for good is ended; those above it continue with the next job."""
    found = World([source(cut(0, 10, 20, 30, 40), partition=ORDERS)])
    found.outcomes[10] = UnitOutcome.CONFLICT
    carried = found.carry_out()
    assert fates(carried) == ["finished", "ended", "left-open", "not-begun"]
    states = [state for segment_id, state in found.events if segment_id.partition == ORDERS]
    assert [state for state in states if state in (DS, DF)] == [DS, DF]
    found.check()
    found.outcomes.clear()
    assert fates(found.carry_out()) == ["finished"] * 3
    assert found.finished_starts() == [0, 10, 20, 30]


def test_f108_adopted_copy_when_it_fails_for_good_then_all_above_is_ended_from_the_top() -> None:
    """Where brokers adopt, a permanent failure ends all copies above it from the top."""
    found = world(CopyMode.ADOPT)
    found.outcomes[0] = UnitOutcome.BLOCKED
    carried = found.carry_out()
    assert fates(carried) == ["ended", "ended", "not-begun", "not-begun"]
    of_orders = [one for one in found.events if one[0].partition == ORDERS]
    begun = {segment_id: at for at, (segment_id, state) in enumerate(of_orders) if state is CS}
    deletions = [begun[segment_id] for segment_id, state in of_orders if state is DS]
    assert deletions == sorted(deletions, reverse=True)
    assert len(deletions) == 2


@pytest.mark.parametrize(
    "outcome", [one for one in UnitOutcome if one.is_retriable and one is not UnitOutcome.STOPPED]
)
def test_copy_when_it_may_succeed_later_then_stays_open(outcome: UnitOutcome) -> None:
    """A copy that may succeed later stays open and stops its partition, no other one."""
    found = world()
    found.outcomes[10] = outcome
    carried = found.carry_out()
    assert fates(carried)[:2] == ["finished", "left-open"]
    assert CF not in found.state_of(20) + found.state_of(30)
    assert fates(carried, LOGS) == ["finished"] * 3
    found.check()


def test_f106_start_when_the_metadata_takes_nothing_then_no_object_is_written() -> None:
    """A copy whose start event the metadata refuses writes no object."""
    found = world()
    for start in range(0, 50, 10):
        found.failures[start, CS] = PublishFailure.NOT_STORED
    carried = found.carry_out()
    assert fates(carried) == ["not-begun"] * 4
    of_orders = [one for one in carried.receipts() if one.partition == ORDERS]
    assert {one.why for one in of_orders} == {"start-not-stored"}
    assert not {one.uuid for one in of_orders} & set(found.objects)


@pytest.mark.parametrize(
    ("start", "state", "expected"),
    [
        (0, CS, ["left-open", "not-begun", "not-begun", "not-begun"]),
        (10, CF, ["finished", "left-open"]),
    ],
    ids=["start", "finish"],
)
def test_event_when_its_outcome_is_unknown_then_stays_open_for_the_next_job(
    start: int, state: SegmentState, expected: list[str]
) -> None:
    """An event of unknown outcome counts as stored: its copy is left to the next job."""
    found = world()
    found.failures[start, state] = PublishFailure.UNKNOWN
    assert fates(found.carry_out())[: len(expected)] == expected
    assert state in found.state_of(start)
    found.failures.clear()
    again = [one.start_offset for one in found.carry_out().receipts() if one.partition == ORDERS]
    assert (start in again) is (state is CS)
    found.check()
    assert found.finished_starts() == [0, 0, 10, 20, 30, 100, 200]


def test_f120_copy_when_somebody_deletes_it_meanwhile_then_vanished_and_its_objects_go() -> None:
    """A copy that retention deletes meanwhile is vanished and its objects are removed."""
    found = world()

    def delete(copy: object) -> None:
        if copy.start_offset == 10:  # type: ignore[attr-defined]
            gone = [key for key, one in found.segments.items() if one.id.uuid == copy.uuid]  # type: ignore[attr-defined]
            for segment_id in gone:
                del found.segments[segment_id]

    found.on_copy = delete
    carried = found.carry_out()
    assert fates(carried)[:2] == ["finished", "vanished"]
    found.check()


@pytest.mark.parametrize("lost_at", range(1, 40, 3))
def test_topic_when_lost_then_nothing_is_published_any_more(lost_at: int) -> None:
    """A job that lost its topic publishes no more events, neither finishes nor deletions."""
    found = world()
    found.outcomes[20] = UnitOutcome.CONFLICT
    found.lost_at = lost_at
    carried = found.carry_out()
    published_after = found.steps - lost_at
    assert carried.stopped == "lost"
    # What was on its way when the topic was lost takes two steps for each copy, and no event.
    assert published_after <= 2 * 3 + 1
    found.check()


@pytest.mark.parametrize("mode", list(CopyMode))
@pytest.mark.parametrize("asked_at", range(16))
def test_stop_when_asked_for_then_running_copies_finish(mode: CopyMode, asked_at: int) -> None:
    """A stop finishes the lowest running copies; announced ones wait for the next job."""
    found = world(mode)
    asked = iter([""] * asked_at)
    copied: list[object] = []
    found.on_copy = copied.append
    carried = found.carry_out(lambda: next(asked, "stop-file"))
    assert carried.stopped == "stop-file"
    assert found.stopped_units in ([], ["stop-file"])
    seen = [one.fate.value for one in carried.receipts()]
    assert set(seen) <= {"finished", "left-open", "not-begun"}
    assert len(copied) <= asked_at
    assert {one.why for one in carried.receipts() if one.fate is CopyFate.LEFT_OPEN} <= {"stopped"}
    found.check()
    found.stopped_units.clear()
    assert {one.fate for one in found.carry_out().receipts()} <= {CopyFate.FINISHED}
    assert found.finished_starts() == [0, 0, 10, 20, 30, 100, 200]


def test_stop_when_a_unit_heard_it_before_the_driver_then_no_further_wave_begins() -> None:
    """A stop mark that a unit sees before the driver keeps the driver from the next wave."""
    found = world()
    found.outcomes[0] = UnitOutcome.STOPPED
    carried = found.carry_out()
    assert carried.stopped == "paused"
    begun = [one for one in carried.receipts() if one.fate is not CopyFate.NOT_BEGUN]
    assert len(begun) == 3
    assert found.stopped_units == []


def test_f108_objects_when_they_cannot_be_deleted_then_the_deletion_stays_begun() -> None:
    """A deletion whose objects cannot be removed is not finished, and a later job continues it."""
    found = world()
    found.outcomes[10] = UnitOutcome.CONFLICT
    found.undeletable.add(10)
    carried = found.carry_out()
    assert fates(carried)[1] == "ending"
    assert found.state_of(10) == [DS]
    found.outcomes.clear()
    found.undeletable.clear()
    again = found.carry_out()
    assert [one.fate for one in again.ends] == [CopyFate.ENDED]
    assert found.finished_starts() == [0, 0, 10, 20, 30, 100, 200]
