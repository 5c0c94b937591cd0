"""One process for one folder: a lock of the kernel's on a file that names its owner. Blocks."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK = "rlmm.lock"

_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextmanager
def folder_lock(folder: Path, *, is_observer: bool = False) -> Iterator[None]:
    """
    Hold *folder*, which is made where there is none.

    Raises `ConfigError`, one line, when another process holds it, or it cannot be written. What a
    dead process left behind is no obstacle. An observer needs no right to write: in a folder that
    is read-only it only sees to it that nobody writes there, beside any number of others.
    """
    lock, is_written = _opened(folder, is_observer=is_observer)
    if lock is None:
        yield
        return
    try:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if is_written else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            msg = f"{folder} is in use by {owner(folder) or 'another process'}; choose another"
            raise ConfigError(msg) from error
        if is_written:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
        if is_written:
            os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def _opened(folder: Path, *, is_observer: bool) -> tuple[int | None, bool]:
    """The lock file, and whether it may be written; None where an observer finds none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), True
    except OSError as error:
        if not (is_observer and error.errno in _READ_ONLY):
            msg = f"{folder} cannot be used as data_dir: {error.strerror or error}; choose another"
            raise ConfigError(msg) from error
    try:
        return os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC), False
    except OSError:
        return None, False


def owner(folder: Path) -> str | None:
    """Who holds *folder*, in words; `None` where nobody does."""
    pid = owner_pid(folder)
    return None if pid is None else f"process {pid}"


def owner_pid(folder: Path) -> int | None:
    """The process that holds *folder*; `None` where nobody does."""
    try:
        text = (folder / LOCK).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not text.isdigit():
        return None
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return int(text)
    else:
        return None
    finally:
        os.close(lock)
