"""
Private files and folders: one rule for owners and modes of what other users must not reach, and one
way to read a file, so that a pipe or a device in the place of a regular file keeps no reader. Only
files that an operator names to a command may be pipes.

The rule follows symbolic links of files, as Kubernetes mounts secrets behind them. Every call
blocks.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER_MODE: Final = 0o750
"""The group may reach a Unix socket in the folder."""
FILE_MODE: Final = 0o640
_ROOT: Final = 0
_CLUSTERS: Final = "clusters"
"""The folder of the data folder whose folders have parts of their own."""


def require_private(path: Path, key: str, *, gives_rights: bool = True) -> None:
    """
    Refuse a file with secrets that another user may read or change, by a `ConfigError`.

    Its owner is the user of this process, or root. The group may read it if the owner is root, or
    if the process is in the group, and never write it. Without *gives_rights*, for credentials of
    a client, owner and group may be any others.
    """
    try:
        found = path.stat()
    except OSError as error:
        msg = f"{key} {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    mode = f"its mode is {stat.S_IMODE(found.st_mode):04o}"
    if found.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        msg = f"{key} {path} must not be open to every user of the machine, {mode}: chmod o= {path}"
        raise ConfigError(msg)
    if not gives_rights:
        return
    _require_owner(path, key, found)
    if found.st_mode & stat.S_IWGRP:
        msg = f"{key} {path} must not be writable by a group, {mode}: chmod g-w {path}"
        raise ConfigError(msg)
    if found.st_mode & stat.S_IRGRP and found.st_uid != _ROOT and not _is_ours(found.st_gid):
        msg = (
            f"{key} {path} must not be readable by group {found.st_gid}, which this process is not "
            f"in, {mode}: chmod g= {path}"
        )
        raise ConfigError(msg)


def require_own_folder(folder: Path, name: str) -> None:
    """
    Refuse a folder whose content other users may have put there, by a `ConfigError`.

    Its owner is the user of this process, or root, and no group and no other user may write to it,
    unless it is a mount point that root owns: so a container gets its volumes. Nothing in it may
    be a symbolic link. Raises `OSError` where it cannot be looked at.
    """
    for found in (folder.lstat(), folder.stat()):
        _require_owner(folder, name, found)
    is_open = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if is_open and not (found.st_uid == _ROOT and folder.is_mount()):
        msg = (
            f"{name} {folder} must not be writable by other users, its mode is "
            f"{stat.S_IMODE(found.st_mode):04o}: chmod go-w {folder}"
        )
        raise ConfigError(msg)
    for link in _links_in(folder):
        msg = (
            f"{name} {folder} must not have symbolic links, found {link}: move what it points to "
            "there, or mount it there"
        )
        raise ConfigError(msg)


def _links_in(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif _CLUSTERS in {entry.name, folder.name} and entry.is_dir():
                yield from _links_in(folder / entry.name)


def _require_owner(path: Path, key: str, found: os.stat_result) -> None:
    own = os.geteuid()
    if found.st_uid not in {_ROOT, own}:
        msg = (
            f"{key} {path} must belong to the user of this process ({own}) or to root, it belongs "
            f"to user {found.st_uid}: chown {own} {path}"
        )
        raise ConfigError(msg)


def _is_ours(group: int) -> bool:
    return group == os.getegid() or group in os.getgroups()


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
