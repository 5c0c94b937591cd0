"""
How far a job is, while it runs: one line that is written anew on a terminal, elsewhere a line of
the log every few seconds. Both go to standard error: what a command answers stays alone.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.reporting.progress import Progress

_log = logging.getLogger("rlmm.cli.tier.progress")

LINE_S: Final = 10.0
"""Between two lines of a log."""
REDRAW_S: Final = 0.1
TICK_S: Final = 1.0
"""A large segment takes minutes: the line is shown again while nothing comes back."""

_CLEAR_LINE = "\r\x1b[2K"


class ProgressLine:
    """Shows progress on *out*, as what it is: a terminal, or not."""

    def __init__(
        self,
        out: TextIO | None = None,
        now_s: Callable[[], float] = time.monotonic,
        *,
        is_terminal: bool | None = None,
    ) -> None:
        self._out = out or sys.stderr
        self._now_s = now_s
        self._is_terminal = self._out.isatty() if is_terminal is None else is_terminal
        self._shown_s = float("-inf")
        self._is_drawn = False
        self._told: tuple[Progress, float] | None = None
        """The newest, and when it came; None where no other is to be waited for."""
        self._lock = threading.RLock()

    def show(self, progress: Progress) -> None:
        """Show *progress*, unless the last one was shown a moment ago; the last of all always."""
        now_s = self._now_s()
        with self._lock:
            self._told = None if progress.is_last else (progress, now_s)
            self._draw(progress, now_s, is_last=progress.is_last)

    def tick(self) -> None:
        """Show the newest again, with the time that has passed; for another thread."""
        with self._lock:
            if self._told is not None:
                progress, told_s = self._told
                now_s = self._now_s()
                elapsed_s = progress.elapsed_s + now_s - told_s
                self._draw(progress._replace(elapsed_s=elapsed_s), now_s, is_last=False)

    def _draw(self, progress: Progress, now_s: float, *, is_last: bool) -> None:
        pause_s = REDRAW_S if self._is_terminal else LINE_S
        if not is_last and now_s - self._shown_s < pause_s:
            return
        self._shown_s = now_s
        if self._is_terminal:
            self._out.write(_CLEAR_LINE + progress.line())
            self._out.flush()
            self._is_drawn = True
        else:
            _log.info("%s", progress.line())

    def close(self) -> None:
        """Take the line away: what follows begins on one of its own."""
        with self._lock:
            if self._is_drawn:
                self._out.write(_CLEAR_LINE)
                self._out.flush()
                self._is_drawn = False


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """A line for as long as the block runs; lines of the log begin where it stood."""
    line = ProgressLine()
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK_S):
            line.tick()

    def clear(_: logging.LogRecord) -> bool:
        line.close()
        return True

    handlers = logging.getLogger().handlers[:]
    for handler in handlers:
        handler.addFilter(clear)
    ticking = threading.Thread(target=tick, name="rlmm-progress", daemon=True)
    ticking.start()
    try:
        yield line
    finally:
        ended.set()
        ticking.join()
        for handler in handlers:
            handler.removeFilter(clear)
        line.close()
