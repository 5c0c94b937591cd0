"""
Descriptors of files: a bounded number of open files for any number of partitions. Thread-safe.

Of the descriptors that no user holds, the least recently used one is closed first. That loses no
unsynced bytes: a later sync of the file forces them out, and the kernel reports a failed write-back
at the next opening.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.partition_log.disk import Disk

Result = TypeVar("Result")

_SHARE_OF_LIMIT = 2
_NO_LIMIT = 65_536
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


class _OpenFile:
    __slots__ = ("descriptor", "holders")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.holders = 1


def open_files_max_by_limit() -> int:
    """Return half of the process's limit of open files: connections need the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, (_NO_LIMIT if soft == resource.RLIM_INFINITY else soft) // _SHARE_OF_LIMIT)


class Descriptors:
    """The open files of one registry, by path."""

    def __init__(self, disk: Disk, open_files_max: int, *, read_only: bool) -> None:
        self._disk = disk
        self._most = open_files_max
        self._flags = os.O_RDONLY if read_only else os.O_RDWR
        self._open: OrderedDict[Path, _OpenFile] = OrderedDict()
        self._forgotten: dict[int, _OpenFile] = {}
        """Files that are not to be used any more, but are still held."""
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def hold(self, path: Path, *, create: bool = False) -> int:
        """Open *path*, or find it open, and keep it open until `let_go`."""
        with self._lock:
            found = self._open.get(path)
            if found is not None:
                found.holders += 1
                self._open.move_to_end(path)
                return found.descriptor
        flags = self._flags | (os.O_CREAT if create else 0)
        descriptor = self._with_room(lambda: self._disk.open(path, flags))
        with self._lock:
            raced = self._open.get(path)
            if raced is None:
                self._open[path] = _OpenFile(descriptor)
                superfluous = self._idle(len(self._open) - self._most)
            else:
                raced.holders += 1
                superfluous, descriptor = [descriptor], raced.descriptor
        self._close_all(superfluous)
        return descriptor

    def let_go(self, path: Path, descriptor: int) -> None:
        """Give back a descriptor of `hold`; the file stays open while there is room."""
        with self._lock:
            found = self._forgotten.get(descriptor) or self._open[path]
            found.holders -= 1
            superfluous: list[int] = []
            if descriptor in self._forgotten:
                if not found.holders:
                    del self._forgotten[descriptor]
                    superfluous = [descriptor]
            elif len(self._open) > self._most:
                superfluous = self._idle(len(self._open) - self._most)
        self._close_all(superfluous)

    def forget(self, path: Path) -> None:
        """Open *path* anew when it is next asked for: the file was removed or replaced."""
        with self._lock:
            found = self._open.pop(path, None)
            if found is None:
                return
            if found.holders:
                self._forgotten[found.descriptor] = found
                return
        self._disk.close(found.descriptor)

    def sync_folder(self, path: Path) -> None:
        """Force the names in a folder to the medium, making room for one more open file."""
        self._with_room(lambda: self._disk.sync_folder(path))

    def close(self) -> None:
        with self._lock:
            descriptors = [found.descriptor for found in self._open.values()]
            descriptors += self._forgotten
            self._open.clear()
            self._forgotten.clear()
        self._close_all(descriptors)

    def _with_room(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except OSError as error:
            if error.errno not in _TOO_MANY:
                raise
        with self._lock:
            idle = self._idle(len(self._open))
        self._close_all(idle)
        return call()

    def _idle(self, count: int) -> list[int]:
        """Take out up to *count* files without a holder, least recently used first."""
        paths: list[Path] = []
        for path, found in self._open.items():
            if len(paths) >= count:
                break
            if not found.holders:
                paths.append(path)
        return [self._open.pop(path).descriptor for path in paths]

    def _close_all(self, descriptors: list[int]) -> None:
        for descriptor in descriptors:
            self._disk.close(descriptor)
