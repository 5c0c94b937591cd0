"""Jobs that are asked to stop: what was begun is finished, and the next one goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import StoreUnavailable
from spark_tiering.jobs.records import Records
from spark_tiering.run import stopping
from spark_tiering.run.fates import Fate
from spark_tiering.run.job import run_job
from tests.support.tier_places import TierPlace, WatchedUnits, states

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.run.report import JobReport
    from spark_tiering.work.tasks import CopyTask


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    """Two partitions with two segments each that can be copied."""
    return TierPlace(tmp_path)


def check_stopped(place: TierPlace, report: JobReport, why: str, finished: int) -> None:
    """What was begun is finished, the rest is not begun, and the next job ends clean."""
    assert report.stopped == why
    assert not report.is_fine
    assert report.count(Fate.FINISHED) == finished
    assert report.count(Fate.NOT_BEGUN) == 4 - finished
    assert states(place.check()) == ["CF"] * finished
    again = place.run()
    assert again.is_fine
    assert len(again.receipts) == 4 - finished
    place.check_clean()


def test_job_when_its_stop_file_appears_then_stops_between_segments(
    place: TierPlace, tmp_path: Path
) -> None:
    """A file on the driver's machine is seen before the next wave."""
    file = tmp_path / "stop"
    engine = WatchedUnits(before=lambda task: file.touch())
    report = place.run(engine=engine, stop_file=str(file), wave_units=1)
    check_stopped(place, report, "stop-file", 1)


def test_job_when_paused_from_elsewhere_then_stops_between_segments(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker in the store is looked for again and again."""
    monkeypatch.setattr(stopping, "PAUSE_AGE_S", 0.0)

    def pause(task: CopyTask) -> None:
        Records(at.jobs, at.job_id).ask_to_stop("a test")

    with place.opened(WatchedUnits(before=pause), wave_units=1) as at:
        report = run_job(at)
    check_stopped(place, report, "paused", 1)


def test_job_when_nobody_can_say_whether_it_is_paused_then_goes_on(
    place: TierPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that does not answer this one question is no reason to leave copies open."""

    def fail(records: Records) -> bool:
        msg = "no answer"
        raise StoreUnavailable(msg)

    monkeypatch.setattr(Records, "is_asked_to_stop", fail)
    assert place.run().is_fine
    place.check_clean()


def test_job_when_its_time_is_up_then_begins_nothing(place: TierPlace) -> None:
    """A time limit is one for beginnings: what could not begin is told."""
    check_stopped(place, place.run(time_limit_s=1e-9), "time-is-up", 0)


def test_job_when_a_signal_is_heard_in_the_middle_of_a_wave_then_all_of_it_is_finished(
    place: TierPlace,
) -> None:
    """What is on its way is finished first: signals are asked for between segments."""
    heard: list[str] = []
    engine = WatchedUnits(before=lambda task: heard.append("SIGTERM"))
    report = place.run(engine=engine, why_stop=lambda: heard[0] if heard else "", wave_units=3)
    check_stopped(place, report, "SIGTERM", 3)


def test_job_when_told_to_stop_while_copies_are_started_then_those_started_are_finished(
    place: TierPlace,
) -> None:
    """A reason that comes up between two starts leaves nothing open."""
    asked = iter(["", "", ""])
    report = place.run(why_stop=lambda: next(asked, "enough"))
    check_stopped(place, report, "enough", 2)
