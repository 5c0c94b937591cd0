"""A bounded number of open files."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rlmm.partition_log.descriptors import Descriptors
from rlmm.partition_log.disk import Disk

A, B, C = Path("a"), Path("b"), Path("c")


class CountedDisk(Disk):
    """A disk that gives out numbers instead of files."""

    def __init__(self) -> None:
        self.opened: list[Path] = []
        self.open_now: set[int] = set()
        self.refusals = 0

    def open(self, path: Path, flags: int) -> int:
        del flags
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "too many open files")
        self.opened.append(path)
        self.open_now.add(len(self.opened))
        return len(self.opened)

    def close(self, descriptor: int) -> None:
        self.open_now.remove(descriptor)


def touch(descriptors: Descriptors, path: Path) -> int:
    descriptor = descriptors.hold(path)
    descriptors.let_go(path, descriptor)
    return descriptor


def test_file_when_room_is_needed_then_the_longest_unused_one_is_closed() -> None:
    """A file stays open while there is room; the least recently used goes first."""
    disk = CountedDisk()
    descriptors = Descriptors(disk, 2, read_only=False)
    assert touch(descriptors, A) == touch(descriptors, A)
    for path in (B, A, C, A, B):
        touch(descriptors, path)
    assert disk.opened == [A, B, C, B]
    assert len(disk.open_now) == len(descriptors) == 2
    descriptors.close()
    assert not disk.open_now


def test_file_when_held_then_is_never_closed() -> None:
    """A held file stays open beyond the limit, and the limit holds again when it is released."""
    disk = CountedDisk()
    descriptors = Descriptors(disk, 1, read_only=False)
    held = [descriptors.hold(path) for path in (A, B, C)]
    assert disk.open_now == set(held)
    for path, descriptor in zip((A, B, C), held, strict=True):
        descriptors.let_go(path, descriptor)
    assert len(disk.open_now) == 1


def test_file_when_forgotten_then_is_opened_anew_and_closed_by_its_last_holder() -> None:
    """The last holder of a replaced file closes it, and new readers open the new one."""
    disk = CountedDisk()
    descriptors = Descriptors(disk, 4, read_only=False)
    held = descriptors.hold(A)
    descriptors.forget(A)
    assert touch(descriptors, A) != held
    assert held in disk.open_now
    descriptors.let_go(A, held)
    assert held not in disk.open_now
    descriptors.forget(A)
    touch(descriptors, B)
    descriptors.forget(B)
    descriptors.forget(C)
    assert not disk.open_now


def test_file_when_the_process_has_too_many_then_idle_ones_make_room() -> None:
    """At the limit of the process the descriptors close idle files."""
    disk = CountedDisk()
    descriptors = Descriptors(disk, 100, read_only=False)
    touch(descriptors, A)
    touch(descriptors, B)
    disk.refusals = 1
    touch(descriptors, C)
    assert len(disk.open_now) == 1
    disk.refusals = 2
    with pytest.raises(OSError, match="too many"):
        descriptors.hold(A)
