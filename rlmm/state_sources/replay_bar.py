"""Progress bar of a replay on standard error, only on a terminal and only after a while."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE_S: Final = 0.5
"""A shorter replay is over before an operator could read it."""
REDRAW_S: Final = 0.1


class ReplayBar:
    """A progress callback of a replay: a call draws it, `close` prints the summary."""

    def __init__(
        self, out: TextIO | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Time counts from here; *out* is a terminal."""
        self._out = out or sys.stderr
        self._now_s = now_s
        self._begin_s = now_s()
        self._drawn_s = self._begin_s + PATIENCE_S - REDRAW_S
        self._starts: dict[int, int] = {}
        self._reached: dict[int, tuple[int, int]] = {}
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._is_closed = False

    def __call__(self, place: int, position: int, end: int) -> None:
        """Show that metadata partition *place* is at *position* of *end*."""
        self._starts.setdefault(place, position)
        self._reached[place] = position, end
        now_s = self._now_s()
        if now_s - self._drawn_s >= REDRAW_S and not self._is_closed:
            self._drawn_s = now_s
            self._draw()

    @property
    def done(self) -> int:
        return sum(at - self._starts[place] for place, (at, _) in self._reached.items())

    @property
    def total(self) -> int:
        return sum(end - self._starts[place] for place, (_, end) in self._reached.items())

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = _bar_on(self._out)
            self._task = self._bar.add_task("reading the metadata topic", total=None)
            self._bar.start()
        assert self._task is not None, "made with the bar"
        self._bar.update(self._task, completed=self.done, total=self.total)
        self._bar.refresh()

    def close(self) -> None:
        """Remove the bar; print a summary if it was visible. May be called again."""
        self._is_closed = True
        if self._bar is None:
            return
        self._bar.stop()
        self._bar = None
        self._out.write(
            f"rlmm: read {self.done} records of {len(self._reached)} metadata partitions in "
            f"{self._now_s() - self._begin_s:.1f} s\n"
        )
        self._out.flush()


def _bar_on(out: TextIO) -> Bar:
    """rich is imported here, because short commands do not need it."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("records, left"),
        TimeRemainingColumn(),
        console=Console(file=out),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


@contextmanager
def replay_bar(out: TextIO | None = None, *, is_quiet: bool = False) -> Iterator[ReplayBar | None]:
    """Show a bar while the block runs; None without a terminal, or if the user wants no bar."""
    out = out or sys.stderr
    if is_quiet or not out.isatty():
        yield None
        return
    bar = ReplayBar(out)
    try:
        yield bar
    finally:
        bar.close()
