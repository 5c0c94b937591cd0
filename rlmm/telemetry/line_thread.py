"""
A thread that writes log lines, so that their caller never waits.

A pipe whose reader has stopped, a terminal that is held and a disk that hangs keep a write for as
long as they like, and with it the event loop. Invariant: a line that is not written is counted.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from rlmm.base.threads import OwnedThread

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of lines that wait for the thread, some 10,000 of them."""
_END_S: Final = 2.0
"""How long the end waits for a reader that takes nothing."""


class LineThread:
    """Takes the place of a stream in a log handler; one call of `write` is one line."""

    closed = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._file = os.dup(stream.fileno())  # that of the thread, however the stream ends
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._is_ending = False
        self.failed = 0
        """Lines that were taken and could not be written."""
        self.last_failure = ""
        self._thread = OwnedThread("log lines", self._run)
        self._thread.start()

    def write(self, text: str) -> int:
        """Take a line; raise `BlockingIOError` where too many wait already."""
        line = text.encode(errors="backslashreplace")
        with self._changed:
            if self._waiting_bytes + len(line) > WAITING_BYTES_MAX:
                msg = f"{self._waiting_bytes} bytes of lines wait, as their reader takes none"
                raise BlockingIOError(msg)
            self._lines.append(line)
            self._waiting_bytes += len(line)
            self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Return at once: the thread writes each line as soon as it can."""

    def isatty(self) -> bool:
        return self._stream.isatty()

    def wait_room(self, timeout_s: float = _END_S) -> bool:
        """
        Wait until half of the room is free: the other half is for lines that cannot wait. Return
        false where no line could be written for *timeout_s*.
        """
        with self._changed:
            while self._waiting_bytes > WAITING_BYTES_MAX // 2:
                if not self._changed.wait(timeout_s):
                    return False
        return True

    def end(self, timeout_s: float = _END_S) -> None:
        """Wait until all lines are written, or none could be for *timeout_s*."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        left = -1
        while self._thread.is_alive() and left != self._waiting_bytes:
            left = self._waiting_bytes
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    if self._is_ending:
                        os.close(self._file)
                        return
                    self._changed.wait()
                line = self._lines[0]
            try:
                self._put(line)
            except OSError as error:
                self.failed += 1
                self.last_failure = f"{type(error).__name__}: {error}"
            with self._changed:
                self._lines.popleft()
                self._waiting_bytes -= len(line)
                self._changed.notify_all()

    def _put(self, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(self._file, line) :]
            except BlockingIOError:  # another process has made the same terminal so
                select.select([], [self._file], [])


@contextmanager
def line_thread(stream: TextIO | None) -> Iterator[LineThread | None]:
    """Write to *stream* in a thread inside the block; `None` for one that is closed, or no file."""
    try:
        writer = None if stream is None else LineThread(stream)
    except (OSError, ValueError):
        writer = None
    try:
        yield writer
    finally:
        if writer is not None:
            writer.end()
