"""Stopping: stop files, pause marks, deadlines and signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.copy_job.job_lease import PAUSE_AGE_S, StopSignals

if TYPE_CHECKING:
    from pathlib import Path


def test_stop_file_when_it_appears_then_stops_and_stays_stopped(tmp_path: Path) -> None:
    """A stop file stops the job, also when the file is removed again."""
    file = tmp_path / "stop"
    signs = StopSignals(lambda: 0.0, stop_file=file)
    assert signs.why_stop() == ""
    file.touch()
    assert signs.why_stop() == "stop-file"
    file.unlink()
    assert signs.why_stop() == "stop-file"


def test_pause_when_asked_often_then_the_store_is_asked_now_and_then() -> None:
    """The job asks the store for its pause mark from time to time, and a mark it found stays."""
    now = [0.0]
    asked: list[float] = []

    def is_paused() -> bool:
        asked.append(now[0])
        return now[0] >= PAUSE_AGE_S * 2

    signs = StopSignals(lambda: now[0], is_paused=is_paused)
    for moment in (0.0, 1.0, PAUSE_AGE_S - 0.1, PAUSE_AGE_S, PAUSE_AGE_S + 1):
        now[0] = moment
        assert signs.why_stop() == ""
    assert asked == [0.0, PAUSE_AGE_S]
    now[0] = PAUSE_AGE_S * 2
    assert signs.why_stop() == "paused"


def test_deadline_and_signal_when_they_come_then_the_first_reason_stays() -> None:
    """The first reason for a stop stays when a deadline and a signal both come."""
    now = [0.0]
    signs = StopSignals(lambda: now[0], deadline_s=5.0)
    assert signs.why_stop() == ""
    signs.ask_to_stop("signal")
    now[0] = 6.0
    assert signs.why_stop() == "signal"
    assert StopSignals(lambda: 6.0, deadline_s=5.0).why_stop() == "time-is-up"
