"""The progress line of a job, rewritten on a terminal, else a log line every few seconds."""

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

_log = logging.getLogger(__name__)

LINE_S: Final = 10.0
REDRAW_S: Final = 0.1
TICK_S: Final = 1.0
"""The line is shown again so often while a large segment takes minutes."""

_CLEAR_LINE = "\r\x1b[2K"


class ProgressLine:
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
        """The newest progress, and when it came; None after the last one."""
        self._lock = threading.RLock()

    def show(self, progress: Progress) -> None:
        """Show *progress*, unless another was shown a moment ago; the last one always."""
        now_s = self._now_s()
        with self._lock:
            self._told = None if progress.is_last else (progress, now_s)
            self._draw(progress, now_s, is_last=progress.is_last)

    def tick(self) -> None:
        """Show the newest progress again, with the time that has passed; for another thread."""
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
        """Remove the line, so that other output begins on a new one."""
        with self._lock:
            if self._is_drawn:
                self._out.write(_CLEAR_LINE)
                self._out.flush()
                self._is_drawn = False


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Yield a line for the time of the block; log lines begin in its place."""
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
