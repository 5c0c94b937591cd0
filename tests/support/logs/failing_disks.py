"""Disks that fail on command."""

from __future__ import annotations

import errno
import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rlmm.partition_log.disk import Disk
from rlmm.snapshot.atomic import SnapshotDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class NamedCallsDisk(SnapshotDisk, ABC):
    """A disk that gives the name of each call to `_meet` before it makes the call."""

    @abstractmethod
    def _meet(self, call: str) -> None: ...

    def open(self, path: Path, flags: int) -> int:
        self._meet("create" if flags & os.O_CREAT else "open")
        return super().open(path, flags)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        self._meet("read")
        return super().read(descriptor, size, position)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        self._meet("write")
        return super().write(descriptor, buffers, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._meet("truncate")
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        self._meet("sync")
        super().sync(descriptor)

    def sync_folder(self, path: Path) -> None:
        self._meet("sync_folder")
        super().sync_folder(path)

    def remove(self, path: Path) -> None:
        self._meet("remove")
        super().remove(path)

    def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
        self._meet("replace_file")
        super().replace_file(path, content, sync=sync)

    def rename(self, source: Path, target: Path) -> None:
        self._meet("rename")
        super().rename(source, target)


class FaultyDisk(NamedCallsDisk):
    """A disk whose next calls fail by `fail(call, errno)`, or stop short by `shorten(bytes)`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._faults: dict[str, list[int]] = {}
        self._short: list[int] = []

    def fail(self, call: str, code: int = errno.EIO, times: int = 1) -> None:
        self._faults.setdefault(call, []).extend([code] * times)

    def shorten(self, size: int) -> None:
        """Let the next write stop after *size* bytes, as on a full disk."""
        self._short.append(size)

    def heal(self) -> None:
        self._faults.clear()
        self._short.clear()

    def _meet(self, call: str) -> None:
        self.calls.append(call)
        faults = self._faults.get(call)
        if faults:
            code = faults.pop(0)
            raise OSError(code, os.strerror(code))

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        size = self._short.pop(0) if self._short and not self._faults.get("write") else None
        kept = buffers if size is None else [b"".join(buffers)[:size]]
        return super().write(descriptor, kept, position)


class GatedDisk(Disk):
    """A disk whose calls of one name wait until the test opens a gate."""

    def __init__(self, applies: Callable[[Path | None], bool] = lambda _: True) -> None:
        self.reached = threading.Event()
        """Set when a call waits."""
        self.gate = threading.Event()
        self.sync_count = 0
        self.gated = "sizes"
        """The calls that wait: sizes, write or sync."""
        self._applies = applies
        self.gate.set()

    def hold(self, call: str) -> None:
        self.gated = call
        self.gate.clear()
        self.reached.clear()

    def sizes(self, folder: Path) -> dict[str, int]:
        if self._applies(folder) and self.gated == "sizes":
            self._wait()
        return super().sizes(folder)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        if self.gated == "write":
            self._wait()
        return super().write(descriptor, buffers, position)

    def sync(self, descriptor: int) -> None:
        self.sync_count += 1
        if self.gated == "sync":
            self._wait()
        super().sync(descriptor)

    def _wait(self) -> None:
        self.reached.set()
        assert self.gate.wait(30), "the test never opened the gate"


class SlowDisk(Disk):
    def __init__(self) -> None:
        self.slow = ""
        self.reached = threading.Event()
        self.gate = threading.Event()

    def _pass(self, call: str) -> None:
        if call == self.slow:
            self.reached.set()
            assert self.gate.wait(30)

    def open(self, path: Path, flags: int) -> int:
        self._pass("create" if flags & os.O_CREAT and path.suffix == ".log" else "open")
        return super().open(path, flags)

    def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
        self._pass(path.name)
        super().replace_file(path, content, sync=sync)

    def remove(self, path: Path) -> None:
        self._pass("remove")
        super().remove(path)


class ReadOnlyDisk(Disk):
    def make_folder(self, path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
