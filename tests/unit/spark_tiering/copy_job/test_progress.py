"""How far a job is, in figures and in words."""

from __future__ import annotations

import pytest

from spark_tiering.copy_job.progress import Progress, ProgressMeter, span_text


def test_progress_when_half_is_done_then_tells_pace_and_rest() -> None:
    """The rest takes as long as what is done took, for as many bytes."""
    progress = Progress(2, 5, 1, 300_000_000, 900_000_000, 3.0)
    assert progress.bytes_per_s == 100_000_000
    assert progress.left_s == 6.0
    assert progress.line() == (
        "2 of 5 segments, 300.0 of 900.0 MB, 100.0 MB/s, 1 not copied, 6 s left"
    )


def test_progress_when_nothing_is_known_yet_then_says_no_end() -> None:
    """Before the first segment nobody can say how long it takes."""
    assert Progress(0, 5, 0, 0, 900, 0.0).left_s is None
    assert Progress(0, 5, 0, 0, 900, 7.0).line() == "0 of 5 segments, 0.0 of 0.0 MB, 0.0 MB/s"


def test_meter_when_copies_come_back_then_tells_each_time() -> None:
    """Each copy is told of; those that failed add no bytes."""
    told: list[Progress] = []
    now = iter([10.0, 11.0, 12.0])
    meter = ProgressMeter(2, 70, lambda: next(now), told.append)
    meter.came_back(30, is_done=True)
    meter.came_back(40, is_done=False)
    assert told == [Progress(1, 2, 0, 30, 70, 1.0), Progress(1, 2, 1, 30, 70, 2.0)]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (99.4, "99 s"), (100, "2 min"), (5_000, "83 min"), (11_100, "3 h 05 min")],
)
def test_span_when_told_then_as_people_say_it(seconds: float, text: str) -> None:
    """Short times in seconds, longer ones in minutes and hours."""
    assert span_text(seconds) == text
