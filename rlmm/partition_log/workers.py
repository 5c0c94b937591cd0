"""The threads of a registry, in pools by kind of work, so that no kind waits for another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

_OPENING = 4
_SYNCING = 8
_FILES = 4


class LogThreads:
    """The threads of one registry; they start when they are first needed."""

    def __init__(self) -> None:
        self.opening = ThreadPoolExecutor(_OPENING, "log-open")
        self.syncing = ThreadPoolExecutor(_SYNCING, "log-sync")
        self.files = ThreadPoolExecutor(_FILES, "log-file")
        self.notes = ThreadPoolExecutor(1, "log-note")
        """One thread: what is noted later is written later."""

    def close(self) -> None:
        """Wait for the work under way, and end the threads. Blocks."""
        for pool in (self.opening, self.syncing, self.files, self.notes):
            pool.shutdown()
