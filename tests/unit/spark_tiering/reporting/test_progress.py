"""The progress of a job, in figures and in words."""

from __future__ import annotations

import pytest

from spark_tiering.reporting.progress import Meter, Progress, span_text

COPIED = Progress("segments copied", 2, 5, failed_as="not copied", bytes_total=900_000_000)


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        pytest.param(
            COPIED._replace(done=3, failed=1, bytes=300_000_000, elapsed_s=3.0),
            "3 of 5 segments copied, 300.0 of 900.0 MB, 100.0 MB/s, 1 not copied, 6 s left",
            id="rest by bytes",
        ),
        pytest.param(
            COPIED._replace(done=0, elapsed_s=7.0),
            "0 of 5 segments copied, 0.0 of 900.0 MB, 0.0 MB/s", id="no pace yet",
        ),
        pytest.param(
            Progress("manifests read", 2, 8, elapsed_s=1.0),
            "2 of 8 manifests read, 2 a second, 3 s left", id="no bytes",
        ),
        pytest.param(
            Progress("objects found", 2, elapsed_s=41.0), "2 objects found, 41 s so far",
            id="no total",
        ),
        pytest.param(
            Progress("manifests read", 8, 8, elapsed_s=2.0), "8 of 8 manifests read, 4 a second",
            id="last",
        ),
    ],
)  # fmt: skip
def test_line_when_figures_are_unknown_then_leaves_them_out(progress: Progress, line: str) -> None:
    """A step without bytes is measured by its unit, and one without a total by its time."""
    assert progress.line() == line


def test_meter_when_copies_come_back_then_tells_each_time() -> None:
    """The meter passes each count on, and those that failed add no bytes."""
    told: list[Progress] = []
    now = iter([10.0, 11.0, 12.0])
    meter = Meter(told.append, lambda: next(now))
    meter.expect("copies", 2, bytes_total=70, failed_as="not copied")
    meter.add("copies", size_bytes=30)
    meter.add("copies", failed=1)
    first = Progress("copies", 1, 2, 0, "not copied", 30, 70, 1.0)
    assert told == [first, first._replace(done=2, failed=1, elapsed_s=2.0)]
    assert [one.is_last for one in told] == [False, True]


def test_meter_when_steps_alternate_then_counts_each_by_itself() -> None:
    """A step that is set, and a time that is measured anew, leave other steps alone."""
    told: list[Progress] = []
    now = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    meter = Meter(told.append, lambda: next(now))
    meter.add("listed", 3)
    meter.reach("read", 2, 3, failed=1)
    meter.restart()
    meter.reach("read", 3, 3)
    assert told == [
        Progress("listed", 3, elapsed_s=1.0),
        Progress("read", 2, 3, 1, elapsed_s=2.0),
        Progress("read", 3, 3, elapsed_s=1.0),
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (99.4, "99 s"), (100, "2 min"), (5_000, "83 min"), (11_100, "3 h 05 min")],
)
def test_span_when_told_then_as_people_say_it(seconds: float, text: str) -> None:
    """Short times are in seconds, longer ones in minutes and hours."""
    assert span_text(seconds) == text
