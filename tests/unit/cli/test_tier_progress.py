"""The context of a job of `rlmm tier`: its progress, its files and its signals."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import threading
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from rlmm.cli.tier_common import progress_line as progress_line_module
from rlmm.cli.tier_common.job_context import print_and_keep
from rlmm.cli.tier_common.progress_line import LINE_S, REDRAW_S, ProgressLine, progress_line
from rlmm.errors import ConfigError
from spark_tiering.reporting.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

CLEAR = "\r\x1b[2K"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def progress(done: int, failed: int = 0) -> Progress:
    return Progress(
        "segments copied", done, 5, failed, "not copied", done * 1_000_000, 5_000_000, 1.0
    )


def test_line_on_a_terminal_when_shown_again_then_is_written_over_the_last_one() -> None:
    """The line replaces the last one, and is cleared at the end."""
    out, clock = io.StringIO(), Clock()
    line = ProgressLine(out, clock, is_terminal=True)
    line.show(progress(1))
    clock.now_s += 2 * REDRAW_S
    line.show(progress(2))
    line.close()
    line.close()
    shown = [CLEAR + progress(number).line() for number in (1, 2)]
    assert out.getvalue() == "".join(shown) + CLEAR
    assert "\n" not in out.getvalue()


def test_line_on_a_terminal_when_much_comes_back_at_once_then_is_not_written_each_time() -> None:
    """Thousands of small segments cost no thousands of lines; the last one is always shown."""
    out, clock = io.StringIO(), Clock()
    line = ProgressLine(out, clock, is_terminal=True)
    for segments in range(5):
        line.show(progress(segments))
    assert out.getvalue().count(CLEAR) == 1
    line.show(progress(5, failed=1))
    assert out.getvalue().count(CLEAR) == 2
    assert "1 not copied" in out.getvalue()


def test_line_elsewhere_when_shown_then_is_one_of_the_log_every_few_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a terminal the progress is a log line every few seconds, and the last."""
    out, clock = io.StringIO(), Clock()
    line = ProgressLine(out, clock)
    with caplog.at_level(logging.INFO, "rlmm.cli.tier_common.progress_line"):
        line.show(progress(0))
        clock.now_s += LINE_S - 1
        line.show(progress(1))
        clock.now_s += 1
        line.show(progress(2))
        line.show(progress(5))
        line.close()
    assert [record.getMessage() for record in caplog.records] == [
        progress(number).line() for number in (0, 2, 5)
    ]
    assert not out.getvalue()


def test_line_when_its_block_fails_then_is_taken_away_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error's own line begins at the left, on a line of its own."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)

    def fail() -> None:
        with progress_line() as line:
            line.show(progress(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert out.getvalue().endswith(CLEAR)


def test_line_of_the_log_when_written_meanwhile_then_begins_where_the_other_one_stood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log line starts on a line of its own, and the progress is drawn again later."""
    out = io.StringIO()
    out.isatty = lambda: True  # type: ignore[method-assign]  # what it is on a terminal
    monkeypatch.setattr("sys.stderr", out)
    handler = logging.StreamHandler(out)
    logging.getLogger().addHandler(handler)
    try:
        with progress_line() as line:
            line.show(progress(1))
            logging.getLogger("rlmm.test").warning("the disk is slow")
    finally:
        logging.getLogger().removeHandler(handler)
    assert out.getvalue() == f"{CLEAR}{progress(1).line()}{CLEAR}the disk is slow\n"
    assert not handler.filters


def test_line_when_nothing_comes_back_for_long_then_is_shown_again_with_the_time_that_passed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without results for a long time the progress line is drawn again with the elapsed time."""
    clock = Clock()
    line = ProgressLine(io.StringIO(), clock, is_terminal=False)
    with caplog.at_level(logging.INFO, "rlmm.cli.tier_common.progress_line"):
        line.tick()
        line.show(progress(1))
        for _ in range(2):
            clock.now_s += LINE_S - 1
            line.tick()
        line.show(progress(5))
        clock.now_s += 2 * LINE_S
        line.tick()
    passed_s = 1.0 + 2 * (LINE_S - 1)
    assert [record.getMessage() for record in caplog.records] == [
        progress(1).line(),
        progress(1)._replace(elapsed_s=passed_s).line(),
        progress(5).line(),
    ]


def test_line_on_a_terminal_when_a_block_runs_then_is_shown_again_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The line is drawn again until the block ends."""
    monkeypatch.setattr(progress_line_module, "TICK_S", 0.001)
    monkeypatch.setattr(progress_line_module, "REDRAW_S", 0.0)
    shown = threading.Semaphore(0)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def flush(self) -> None:
            shown.release()

    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    with progress_line() as line:
        line.show(progress(1))
        for _ in range(3):
            assert shown.acquire(timeout=30)
    assert out.getvalue().count("1 of 5 segments") >= 3
    assert out.getvalue().endswith(CLEAR)
    assert "rlmm-progress" not in {one.name for one in threading.enumerate()}


DOCUMENT = {"deleted": 3}


@pytest.mark.parametrize("output", ["table", "json"])
def test_report_when_its_reader_has_gone_then_is_kept_all_the_same(
    tmp_path: Path, output: str
) -> None:
    """A job whose output goes to `| head -1` still writes its report."""
    file = tmp_path / "report.json"
    gone = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    with patch("click.echo", side_effect=gone), pytest.raises(BrokenPipeError):
        print_and_keep(iter(["three"]), DOCUMENT, output, file)
    assert json.loads(file.read_bytes()) == DOCUMENT


def test_report_when_the_disk_of_what_is_printed_is_full_then_that_is_one_line(
    tmp_path: Path,
) -> None:
    """The error is one line, and the report is kept."""
    file = tmp_path / "report.json"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with patch("click.echo", side_effect=full), pytest.raises(ConfigError) as caught:
        print_and_keep(iter(["three"]), DOCUMENT, "table", file)
    assert str(caught.value) == "standard output: No space left on device"
    assert json.loads(file.read_bytes()) == DOCUMENT
