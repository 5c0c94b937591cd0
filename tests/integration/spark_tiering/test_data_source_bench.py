"""The benchmark of the data source in its quick form: how little a window of time reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.data_source import QUICK, WINDOW_SHARE_MAX, measure_window
from bench.figures import Run

if TYPE_CHECKING:
    from pathlib import Path


def test_window_of_time_when_it_is_one_minute_then_little_is_read(tmp_path: Path) -> None:
    """A query of one minute reads few bytes of the tier and returns every row of that minute."""
    run = Run()
    measure_window(run, QUICK.large, tmp_path)
    assert [figure.at_most for figure in run.asked] == [WINDOW_SHARE_MAX] * 2
    assert all(figure.is_met for figure in run.asked), run.asked
    requests = [figure.value for figure in run.figures if figure.unit == "requests"]
    of_tier = QUICK.large.partitions * QUICK.large.segments
    assert all(value < 4 * of_tier for value in requests)
