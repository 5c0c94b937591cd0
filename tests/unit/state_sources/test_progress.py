"""The bar of a replay: only on a terminal, only after a while, and with a last line that stays."""

from __future__ import annotations

import io

import pytest

from rlmm.state_sources.replay_bar import PATIENCE_S, ReplayBar, replay_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Watch:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_bar_when_nobody_looks_or_wants_it_then_there_is_none() -> None:
    """No bar is drawn in a pipe, in a log, and with `--quiet`."""
    out = io.StringIO()
    with replay_bar(out) as bar:
        assert bar is None
    with replay_bar(Terminal(), is_quiet=True) as bar:
        assert bar is None
    assert out.getvalue() == ""


def test_bar_when_it_is_over_at_once_then_nothing_is_shown() -> None:
    """A replay that ends at once draws no bar and no last line."""
    out, watch = Terminal(), Watch()
    bar = ReplayBar(out, watch)
    for position in range(10):
        bar(0, position, 10)
    watch.now_s += PATIENCE_S - 0.01
    bar(0, 10, 10)
    bar.close()
    assert out.getvalue() == ""


def test_bar_when_it_takes_long_then_shows_how_far_it_is_and_leaves_one_line() -> None:
    """Records of all metadata partitions, counted from where each was begun."""
    out, watch = Terminal(), Watch()
    bar = ReplayBar(out, watch)
    bar(0, 100, 400)
    bar(1, 0, 700)
    watch.now_s += PATIENCE_S + 0.01
    bar(0, 350, 400)
    assert "250/1000" in out.getvalue()
    assert (bar.done, bar.total) == (250, 1_000)
    drawn = out.getvalue()
    bar(0, 360, 400)
    assert out.getvalue() == drawn, "not at every record"
    watch.now_s += 1.5
    bar(0, 400, 400)
    bar(1, 700, 700)
    bar.close()
    assert out.getvalue().endswith("rlmm: read 1000 records of 2 metadata partitions in 2.0 s\n")
    drawn = out.getvalue()
    watch.now_s += 9
    bar(1, 700, 800)
    bar.close()
    assert out.getvalue() == drawn, "closed is closed"


def test_bar_when_the_block_raises_then_is_taken_away() -> None:
    """A raising block removes the bar and restores the cursor."""
    out = Terminal()
    with pytest.raises(KeyboardInterrupt):
        _show_and_interrupt(out)
    assert out.getvalue().count("\x1b[?25l") == 1
    assert out.getvalue().count("\x1b[?25h") == 1


def _show_and_interrupt(out: Terminal) -> None:
    with replay_bar(out) as bar:
        assert bar is not None
        bar._drawn_s = 0.0
        bar(0, 0, 10)
        raise KeyboardInterrupt
