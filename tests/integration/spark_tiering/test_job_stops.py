"""Jobs stopped by a request: running copies are finished, and the next job continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import StoreUnavailable
from spark_tiering.copy_job import job_lease
from spark_tiering.copy_job.job import run_job
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.executor import stop_mark
from spark_tiering.job_registry.records import JobRecords
from tests.support.tier.job_folders import JOBS, TierPlace, WatchedUnits, states

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.copy_job.report import JobReport
    from spark_tiering.executor.tasks import CopyResult, CopyTask


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every unit ask for the mark, since these run shorter than an answer is valid."""
    monkeypatch.setattr(stop_mark, "UNMARKED_AGE_S", 0.0)


def check_stopped(
    place: TierPlace, report: JobReport, why: str, finished: int, left_open: int = 0
) -> None:
    """Check that running copies are finished, the rest not begun, and the next job is clean."""
    assert report.stopped == why
    assert not report.is_fine
    assert report.count(CopyFate.FINISHED) == finished
    assert report.count(CopyFate.LEFT_OPEN) == left_open
    assert report.count(CopyFate.NOT_BEGUN) == 4 - finished - left_open
    assert sorted(states(place.check())) == ["CF"] * finished + ["CS"] * left_open
    assert len(place.objects()) == 3 * finished
    again = place.run()
    assert again.is_fine
    assert len(again.receipts) == 4 - finished
    place.check_clean()


@pytest.mark.parametrize(("wave_units", "left_open"), [(1, 0), (None, 3)], ids=["between", "in"])
def test_job_when_its_stop_file_appears_stops(
    place: TierPlace, tmp_path: Path, wave_units: int | None, left_open: int
) -> None:
    """A stop file stops the job before the next wave, and by a mark in the store within one."""
    file = tmp_path / "stop"
    engine = WatchedUnits(before=lambda task: file.touch())
    report = place.run(engine=engine, stop_file=str(file), wave_units=wave_units)
    check_stopped(place, report, "stop-file", 1, left_open)


def test_job_when_paused_stops_soon(place: TierPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause mark in the store stops the job between segments."""
    monkeypatch.setattr(job_lease, "PAUSE_AGE_S", 0.0)

    def pause(result: CopyResult) -> None:
        JobRecords(at.jobs, at.job_id).ask_to_stop("a test")

    with place.opened(WatchedUnits(after=pause), wave_units=1) as at:
        report = run_job(at)
    check_stopped(place, report, "paused", 1)


def test_job_goes_on_with_pause_unknown(place: TierPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that cannot answer about the pause mark does not stop the job."""

    def fail(records: JobRecords) -> bool:
        msg = "no answer"
        raise StoreUnavailable(msg)

    monkeypatch.setattr(JobRecords, "is_asked_to_stop", fail)
    assert place.run().is_fine
    place.check_clean()


def test_job_when_its_time_is_up_then_begins_nothing(place: TierPlace) -> None:
    """A job begins no copy after its time limit and reports what it did not begin."""
    check_stopped(place, place.run(time_limit_s=1e-9), "time-is-up", 0)


def test_job_when_signalled_in_a_wave_then_the_rest_does_not_begin(place: TierPlace) -> None:
    """After a signal in a wave the job finishes the running copy, on every engine."""
    heard: list[str] = []
    engine = WatchedUnits(before=lambda task: heard.append("SIGTERM"))
    report = place.run(engine=engine, why_stop=lambda: heard[0] if heard else "", wave_units=3)
    check_stopped(place, report, "SIGTERM", 1, left_open=2)


def test_job_when_paused_in_a_wave_then_units_see_it_first(place: TierPlace) -> None:
    """Units see the pause mark before the driver, which checks it only from time to time."""
    begun: list[CopyTask] = []

    def pause(task: CopyTask) -> None:
        begun.append(task)
        if len(begun) == 2:
            JobRecords(at.jobs, at.job_id).ask_to_stop("a test")

    with place.opened(WatchedUnits(before=pause), wave_units=3) as at:
        report = run_job(at)
    check_stopped(place, report, "paused", 1, left_open=2)


def test_job_finishes_unstoppable_units(place: TierPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the store refuses the stop mark, the job finishes its announced copies."""

    def fail(records: JobRecords, by: str) -> None:
        msg = "no answer"
        raise StoreUnavailable(msg)

    monkeypatch.setattr(JobRecords, "ask_to_stop", fail)
    heard: list[str] = []
    engine = WatchedUnits(before=lambda task: heard.append("SIGTERM"))
    report = place.run(engine=engine, why_stop=lambda: heard[0] if heard else "", wave_units=3)
    check_stopped(place, report, "SIGTERM", 3)


def test_job_when_stopped_during_starts_then_no_more_start(place: TierPlace) -> None:
    """A stop between announcements finishes running copies and announces no more."""
    asked = iter(["", "", ""])
    report = place.run(place.plan(), why_stop=lambda: next(asked, "enough"))
    check_stopped(place, report, "enough", 1, left_open=1)


def test_job_when_stopped_in_planning_reads_no_more(place: TierPlace, tmp_path: Path) -> None:
    """A signal or stop file during planning ends the job before the next segment is read."""
    read: list[object] = []
    file = tmp_path / "stop"

    class Reading(WatchedUnits):
        """Report each segment that is read."""

        def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
            def told(outcome: object) -> None:
                read.append(outcome)
                file.touch()
                on_result(outcome)

            return super().run_units(units, fn, told)

    report = place.run(engine=Reading(), stop_file=str(file))
    assert report.stopped == "stop-file"
    assert not report.is_fine
    assert len(read) == 1
    assert "stopped: stop-file" in "".join(report.lines())
    assert place.segments() == []
    assert not place.objects(JOBS)
    assert place.run(why_stop=lambda: "SIGTERM").stopped == "SIGTERM"
    assert place.run().is_fine
    place.check_clean()
