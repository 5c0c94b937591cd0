"""
Files of a data folder: this user's, readable for its group, and closed to all others; and files of
strangers, of which only regular ones are opened. One rule for logs, snapshots, locks and notes.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FOLDER_MODE: Final = 0o750
"""The group may reach a Unix socket in the folder."""
FILE_MODE: Final = 0o640


def open_regular(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """
    Open a regular file, a new one for this user and its group alone. Raise `OSError` for anything
    else: a pipe would keep its reader waiting, and a device has no end.
    """
    # Without O_NONBLOCK the call itself waits for a writer of the pipe.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, FILE_MODE)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "no regular file", str(path))


def read_regular(path: Path | str, bytes_max: int) -> bytes:
    """Read a regular file, no more of it than *bytes_max*."""
    with os.fdopen(open_regular(path), "rb") as file:
        return file.read(bytes_max)


def make_private_folder(path: Path) -> None:
    """Make a folder and its missing parents; one that is there keeps its mode."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in (*reversed(missing), path):
        one.mkdir(FOLDER_MODE, exist_ok=True)
