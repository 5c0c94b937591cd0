"""Jobs in one process: their copies, and the state they leave after a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import EngineUnfit
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.copy_plan.rules import Budgets, SegmentSelection
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.tasks import CopyTask, UnitOutcome
from tests.support.tier.job_folders import (
    ORDERS,
    PAYMENTS,
    PLAIN,
    ZSTD,
    TierPlace,
    WatchedUnits,
    fates,
    states,
)

if TYPE_CHECKING:
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.executor.tasks import CopyOptions

CS, CF, DS, DF = SegmentState


def take_away(place: TierPlace, start: int) -> None:
    for path in place.file("").glob(f"{start:020d}.*"):
        path.rename(path.with_name(f"{path.name}.deleted"))


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
def test_f107_job_copies_all_and_next_nothing(place: TierPlace, options: CopyOptions) -> None:
    """After a job the tier reads back with the source's SHA-256; a second copies nothing."""
    report = place.run(options=options)
    assert report.is_fine
    assert report.count(CopyFate.FINISHED) == 4
    assert report.log_bytes == sum(one.size_bytes for one in place.segments())
    place.check_clean()
    before = place.objects()
    again = place.run(options=options)
    assert again.is_fine
    assert not again.receipts
    assert place.objects() == before


def test_job_when_planned_only_then_nothing_is_written(place: TierPlace) -> None:
    """A planned job writes neither object nor event nor claim."""
    plan = place.plan()
    assert [copy.action for _, copy in plan.in_turn()] == [SegmentAction.COPY] * 4
    assert not place.objects()
    assert not place.claims()
    assert not place.segments()


def test_f104_finished_copy_when_looked_at_then_tells_how_large_it_is(place: TierPlace) -> None:
    """A finished copy's custom metadata holds the size of its objects in the plugin's form."""
    report = place.run()
    stored = {one.uuid: one.stored_bytes for one in report.receipts}
    sizes = place.objects()
    for segment in place.segments():
        own = sum(size for key, size in sizes.items() if str(segment.id.uuid) in key)
        assert own == stored[segment.id.uuid]
        assert segment.custom_metadata


def test_segment_when_it_vanishes_early_then_is_ended(place: TierPlace) -> None:
    """The job ends the copy of a vanished segment; copies above it wait for the next job."""
    report = place.run(on_plan=lambda plan: take_away(place, 0))
    assert fates(report.receipts) == ["ended", "left-open"]
    assert [one.why for one in report.receipts][:1] == [UnitOutcome.SOURCE_GONE]
    assert fates(report.receipts, PAYMENTS) == ["finished"] * 2
    assert not report.is_fine
    assert states([one for one in place.check() if one.id.partition == ORDERS]) == ["CS"]
    again = place.run()
    assert [one.action for one in again.receipts] == [SegmentAction.COMPLETE]
    assert again.is_fine
    assert states(place.check()) == ["CF"] * 3


def move(at: CopyJobContext, task: CopyTask, *reached: SegmentState) -> None:
    for state in reached:
        event = SegmentUpdate(task.segment.id, task.segment.broker_id, at.now_ms(), None, state)
        at.metadata.publish(event, 5.0)


@pytest.mark.parametrize("is_over", [True, False], ids=["deleted", "being-deleted"])
@pytest.mark.parametrize("is_early", [True, False], ids=["before", "after"])
def test_f120_deleted_copy_is_reported(place: TierPlace, is_over: bool, is_early: bool) -> None:
    """A copy that retention deletes meanwhile is ended, without objects, and reported."""
    reached = (DS, DF) if is_over else (DS,)

    def delete(task: CopyTask) -> None:
        if (task.segment.id.partition, task.segment.start_offset) == (ORDERS, 0):
            move(at, task, *reached)
            delete_objects(at.store, task.segment.id, 0)

    tasks: dict[str, CopyTask] = {}
    engine = WatchedUnits(
        before=lambda task: delete(task) if is_early else tasks.update({task.unit_id: task}),
        after=lambda result: None if is_early else delete(tasks[result.unit_id]),
    )
    with place.opened(engine) as at:
        report = run_job(at)
    assert fates(report.receipts) == ["vanished", "left-open"]
    assert "gone" in report.receipts[0].detail or "DELETE" in report.receipts[0].detail
    assert not report.is_fine
    assert not [key for key in place.objects() if str(report.receipts[0].uuid) in key]
    place.check()
    again = place.run()
    assert again.is_fine
    assert len(again.ends) == (not is_over)
    place.check_clean()


def test_jobs_with_a_budget_when_run_again_and_again_then_each_goes_on(place: TierPlace) -> None:
    """Jobs with a budget copy the oldest segments first and go on without a repeat."""
    budgets = Budgets(objects_max=3)
    for finished in (1, 2, 3, 4):
        report = place.run(budgets=budgets)
        assert report.is_fine
        assert len(report.receipts) == 1
        assert len(place.check()) == finished
    assert not place.run(budgets=budgets).receipts
    place.check_clean()


def test_job_of_one_topic_when_run_then_others_stay_as_they_are(place: TierPlace) -> None:
    """A job of one topic neither copies, claims nor reports other topics."""
    report = place.run(filters=SegmentSelection(topics=("pay*",)))
    assert {one.partition for one in report.receipts} == {PAYMENTS}
    assert len(place.claims()) == 1
    assert place.run(filters=SegmentSelection(without_topics=("pay*",))).is_fine
    place.check_clean()


def test_job_when_interrupted_then_its_topics_are_free(place: TierPlace) -> None:
    """An interrupted driver announces its end, so that the next job continues."""

    def interrupt(task: CopyTask) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.run(engine=WatchedUnits(before=interrupt))
    assert states(place.check()) == ["CS"] * 4
    report = place.run()
    assert [one.action for one in report.receipts] == [SegmentAction.RESUME] * 4
    place.check_clean()


def test_job_when_its_engine_fails_then_the_rest_stays_open(place: TierPlace) -> None:
    """A job whose Spark disappears reports its copies and leaves the rest to the next job."""

    class Unfit(WatchedUnits):
        def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
            if not isinstance(units[0], CopyTask):
                return super().run_units(units, fn, on_result)
            super().run_units(units[:1], fn, on_result)
            msg = "Spark does not answer"
            raise EngineUnfit(msg)

    report = place.run(engine=Unfit())
    assert report.stopped == "engine-unfit: Spark does not answer"
    assert report.count(CopyFate.FINISHED) == 1
    assert report.count(CopyFate.LEFT_OPEN) == 3
    assert {one.why for one in report.receipts} == {"", "worker-lost"}
    assert sorted(states(place.check())) == ["CF", "CS", "CS", "CS"]
    assert place.run().is_fine
    place.check_clean()
