"""Shared resources of all partitions of a registry: disk, descriptors, threads, settings."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from rlmm.base.threads import FilePool

if TYPE_CHECKING:
    from array import array
    from pathlib import Path

    from rlmm.partition_log.descriptors import Descriptors
    from rlmm.partition_log.disk import Disk
    from rlmm.partition_log.settings import LogSettings


_OPENING = 4
_SYNCING = 8
_FILES = 4


class LogThreads:
    """The threads of one registry, in pools by kind of work, so that no kind waits for another."""

    def __init__(self) -> None:
        self.opening = FilePool(_OPENING, "log-open")
        self.syncing = FilePool(_SYNCING, "log-sync")
        self.files = FilePool(_FILES, "log-file")
        self.notes = FilePool(1, "log-note")
        """One thread keeps the order of notes."""

    def close(self) -> None:
        """Wait for the work under way, and end the threads. Blocks."""
        for pool in (self.opening, self.syncing, self.files, self.notes):
            pool.shutdown()


LOADED_BYTES_MAX = 32 * 1024 * 1024
"""Index entries of closed segments that are kept in memory: those of 16 GiB of batches."""


class LoadedEntries:
    """The offset index entries of the closed segments that were read last, by path. Thread-safe."""

    def __init__(self, bytes_max: int = LOADED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._entries: OrderedDict[Path, array[int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path) -> array[int] | None:
        """Return the entries of *path*, if they are here."""
        with self._lock:
            found = self._entries.get(path)
            if found is not None:
                self._entries.move_to_end(path)
            return found

    def put(self, path: Path, entries: array[int]) -> None:
        """Keep the entries of *path*, at the cost of others."""
        self.drop(path)
        with self._lock:
            self._entries[path] = entries
            self._bytes += _bytes_of(entries)
            while self._bytes > self._bytes_max:
                _, superfluous = self._entries.popitem(last=False)
                self._bytes -= _bytes_of(superfluous)

    def drop(self, path: Path) -> None:
        """Forget the entries of *path*: the file was removed or replaced."""
        with self._lock:
            found = self._entries.pop(path, None)
            if found is not None:
                self._bytes -= _bytes_of(found)


def _bytes_of(entries: array[int]) -> int:
    return len(entries) * entries.itemsize


class LogPlace(NamedTuple):
    """Holds the disk, and the open files and memory that its partitions share."""

    disk: Disk
    descriptors: Descriptors
    loaded: LoadedEntries
    settings: LogSettings
    is_read_only: bool
    in_core: bool = False
    """Whether the native core scans files."""
