"""
Atomic writes: after any crash a path holds the old file or the new one, and whole. Blocks. Write
beside it, sync, rename, sync the folder. All system calls are those of a `SnapshotDisk`, so that a
test can crash at each of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.partition_log.disk import Disk, require_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

TEMPORARY = ".tmp"
"""How the name of an unfinished file ends. One name for each path, so that they cannot pile up."""


class SnapshotDisk(Disk):
    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def free_bytes(self, folder: Path) -> int:
        """Room that is left for this user on the disk that *folder* is on."""
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize


def write_atomically(
    disk: SnapshotDisk,
    path: Path,
    chunks: Iterable[bytes],
    go_on: Callable[[], None] = lambda: None,
) -> int:
    """
    Make *path* hold *chunks*, on the medium when this returns; return how many bytes they are.

    *go_on* is called before the last step. An error of the system, *chunks* or *go_on* is raised
    unchanged, and the unfinished file is removed; after an error of the last step the new file
    stands at *path* already.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    position = 0
    try:
        descriptor = disk.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            for chunk in chunks:
                require_whole(disk.write(descriptor, [chunk], position), len(chunk))
                position += len(chunk)
            disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        go_on()
        disk.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            disk.remove(temporary)
        raise
    disk.sync_folder(path.parent)
    return position


def make_durable_folder(disk: SnapshotDisk, path: Path, root: Path) -> None:
    """
    Make *path* and its missing parents up to *root*, and force all names to the medium. Existing
    folders, too: their maker may have died before it did so.
    """
    disk.make_folder(path)
    for folder in (path, *path.parents):
        try:
            disk.sync_folder(folder.parent)
        except PermissionError:
            if folder != root:
                raise  # above *root* it is no matter of ours: who may not look did not make *root*
        if folder == root:
            break


SNAPSHOT_DISK = SnapshotDisk()
