"""
A lock for one folder: the kernel locks the folder itself, and a file in it that names the owner.

Every call blocks. Two parts of one process are two owners. A folder of snapshots has a lock of its
own. The file alone, which former versions lock, would leave two owners where it is removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rlmm.base.private_files import make_private_folder, open_regular, require_own_folder
from rlmm.errors import ConfigError, FolderInUse, LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from rlmm.errors import RlmmError

LOCK = "rlmm.lock"
DATA_FOLDER = "data_dir"
_PID_BYTES_MAX = 32

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a full disk, which passes without a change of the configuration."""
_NOT_WRITABLE = {errno.EROFS, errno.EACCES, errno.EPERM} | NO_ROOM


@contextmanager
def folder_lock(
    folder: Path, *, is_observer: bool = False, name: str = DATA_FOLDER
) -> Iterator[None]:
    """
    Hold *folder*, and make it where it is absent; *name* names it in errors.

    Raises `FolderInUse` if another user holds it, `ConfigError` if it cannot be written, and
    `LogUnavailable` if its disk is full. The lock of a dead process does not count. An observer
    that cannot write the folder only makes sure that no writer holds it. A data folder that other
    users may have filled is refused by a `ConfigError`.
    """
    lock, is_written = _opened(folder, name, is_observer=is_observer)
    if lock is None:
        yield
        return
    own_folder: int | None = None
    try:
        try:
            own_folder = locked_folder(folder, is_shared=not is_written)
            fcntl.flock(lock, (fcntl.LOCK_EX if is_written else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"{folder} is in use by {owner(folder) or 'another process'}; choose another"
            raise FolderInUse(msg) from error
        except OSError as error:
            msg = f"{folder} cannot be locked: {error.strerror or error}; choose another"
            raise ConfigError(msg) from error
        if is_written:
            _note_owner(lock, folder, name, is_observer=is_observer)
        yield
        if is_written:
            os.ftruncate(lock, 0)
    finally:
        unlock(lock)
        if own_folder is not None:
            unlock(own_folder)


def locked_folder(folder: Path, *, is_shared: bool = False) -> int | None:
    """
    Lock *folder* itself and return its descriptor; `None` where the file system locks no folder.

    Raises `BlockingIOError` if another process holds it.
    """
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return None
    try:
        fcntl.flock(held, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        if isinstance(error, BlockingIOError):
            raise
        return None  # NFS, for one: the file in the folder is locked all the same
    return held


def unlock(held: int) -> None:
    """Release the lock and close: a forked child has the same open file and would keep it."""
    with suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_UN)
    os.close(held)


def _note_owner(lock: int, folder: Path, name: str, *, is_observer: bool) -> None:
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode("ascii"), 0)
    except OSError as error:
        if not (is_observer and error.errno in _NOT_WRITABLE):
            raise _unusable(folder, name, error) from error


def _unusable(folder: Path, name: str, error: OSError) -> RlmmError:
    why = f"{folder} cannot be used as {name}: {error.strerror or error}"
    if error.errno in NO_ROOM:
        return LogUnavailable(f"{why}; make room")
    return ConfigError(f"{why}; choose another")


def _opened(folder: Path, name: str, *, is_observer: bool) -> tuple[int | None, bool]:
    """Return the lock file, and whether it may be written; None where an observer finds none."""
    try:
        make_private_folder(folder)
        if name == DATA_FOLDER and not (is_observer and not os.access(folder, os.W_OK)):
            require_own_folder(folder, name)
        return open_regular(folder / LOCK, os.O_RDWR | os.O_CREAT), True
    except OSError as error:
        if not (is_observer and error.errno in _NOT_WRITABLE):
            raise _unusable(folder, name, error) from error
    try:
        return open_regular(folder / LOCK), False
    except OSError:
        return None, False


def snapshots_lock(folder: Path) -> AbstractContextManager[None]:
    """Hold a folder of snapshots; one that cannot be written gets none, and is not locked."""
    return folder_lock(folder, is_observer=True, name="the folder of snapshots")


def require_apart(log: Path, snapshots: Path) -> None:
    """Refuse folders of which one contains the other: each would misread the other's files."""
    ours, theirs = log.resolve(), snapshots.resolve()
    if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        msg = (
            f"the log in {log} and the snapshots in {snapshots} need folders beside each other, "
            "neither in the other: choose another"
        )
        raise ConfigError(msg)


def owner(folder: Path) -> str | None:
    pid = owner_pid(folder)
    return None if pid is None else f"process {pid}"


def owner_pid(folder: Path) -> int | None:
    """Return the process that holds *folder*; `None` where no process does."""
    with suppress(OSError), os.fdopen(open_regular(folder / LOCK), "rb") as lock:
        text = lock.read(_PID_BYTES_MAX).strip()
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return int(text) if text.isdigit() else None
    return None
