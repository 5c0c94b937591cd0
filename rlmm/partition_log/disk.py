"""
The disk: the few blocking calls that the log uses, in one class into which tests inject faults.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.base.private_files import make_private_folder, open_regular, read_regular

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_WRITE_BUFFERS_MAX = 1024
"""Most buffers of one `pwritev`: IOV_MAX of Linux."""
_SMALL_BYTES_MAX = 64 * 1024 * 1024
"""Of a checkpoint with a line for each partition of a broker."""


class Disk:
    """Calls of the operating system."""

    def open(self, path: Path, flags: int) -> int:
        """Open a regular file; a created one is closed to all but this user and its group."""
        return open_regular(path, flags)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        """Read at most *size* bytes from *position* on; fewer at the file's end."""
        return os.pread(descriptor, size, position)

    def is_in_memory(self, descriptor: int, position: int) -> bool:
        """Return whether the byte at *position* can be read without waiting for the medium."""
        try:
            return os.preadv(descriptor, [bytearray(1)], position, os.RWF_NOWAIT) == 1
        except OSError:
            return False

    def is_at(self, descriptor: int, path: Path) -> bool:
        """Return whether *path* still names the open file: it may have been removed or moved."""
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        held = os.fstat(descriptor)
        return (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        """Write *buffers* in turn at *position*; return the bytes written, fewer on a full disk."""
        written = 0
        for first in range(0, len(buffers), _WRITE_BUFFERS_MAX):
            group = buffers[first : first + _WRITE_BUFFERS_MAX]
            size = sum(map(len, group))
            done = os.pwritev(descriptor, group, position + written)
            written += done
            if done != size:
                break
        return written

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut the file to *size* bytes."""
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Force the file's bytes, and the metadata needed to read them, to the medium."""
        os.fdatasync(descriptor)

    def sync_folder(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read_file(self, path: Path) -> bytes | None:
        """Read a small regular file whole; None when there is none."""
        try:
            content = read_regular(path, _SMALL_BYTES_MAX + 1)
        except FileNotFoundError:
            return None
        if len(content) > _SMALL_BYTES_MAX:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return content

    def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
        """
        Make *path* hold *content*: after a crash it has the old or the new content, whole.

        Without *sync* that holds for the crash of a process, not for a loss of power.
        """
        temporary = path.with_name(path.name + ".tmp")
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                require_whole(self.write(descriptor, [content], 0), len(content))
                if sync:
                    self.sync(descriptor)
            finally:
                self.close(descriptor)
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        if sync:
            self.sync_folder(path.parent)

    def sizes(self, folder: Path) -> dict[str, int]:
        """Names and sizes of the files in *folder*; folders in it are left out."""
        found: dict[str, int] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # replaced or deleted since its name was read
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
        return found

    def make_folder(self, path: Path) -> None:
        """Make a folder; it may be there already, its parents need not."""
        make_private_folder(path)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def modified_ms(self, path: Path) -> int:
        return int(path.stat().st_mtime * 1000)


def require_whole(written: int, size: int) -> None:
    """Turn a short write into the error that it stands for: there was no room for the rest."""
    if written != size:
        raise OSError(errno.ENOSPC, f"short write, {written} of {size} bytes")


DISK = Disk()
