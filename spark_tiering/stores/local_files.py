"""Files and folders below a local store: its steps, and the errors for the system's refusals."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from rlmm.errors import StoreNotPermitted, StoreUnavailable
from spark_tiering.stores.results import ListedFolder, ListedObject, PutRefusal, PutRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_PERMITTED = {errno.EACCES, errno.EPERM, errno.EROFS}
REFUSALS = {
    errno.ENOSPC: PutRefusal.NO_ROOM,
    errno.EDQUOT: PutRefusal.NO_ROOM,
    errno.EFBIG: PutRefusal.TOO_LARGE,
    errno.ENAMETOOLONG: PutRefusal.KEY,
    errno.ENOTDIR: PutRefusal.KEY,
    errno.EISDIR: PutRefusal.KEY,
    errno.EEXIST: PutRefusal.KEY,
}
NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
"""No object is where the system says this."""


def raise_store_error(operation: str, path: Path, error: OSError) -> NoReturn:
    msg = f"{operation} {path}: {error.strerror or error}"
    if error.errno in NOT_PERMITTED:
        raise StoreNotPermitted(msg) from error
    raise StoreUnavailable(msg) from error


def refused_or_raise(operation: str, path: Path, error: OSError) -> PutRefused:
    """Return the refusal where an error concerns one object; else it is raised for the store."""
    reason = REFUSALS.get(error.errno or 0)
    if reason is None:
        raise_store_error(operation, path, error)
    return PutRefused(reason, f"{operation} {path}: {error.strerror}")


def sync_folder(folder: Path) -> None:
    """Make the names in *folder* outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path, root: Path, *, is_synced: bool) -> None:
    """Make *folder* and missing ones below *root*; their names are synced where wanted."""
    missing = []
    while folder != root and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for made in reversed(missing):
        made.mkdir(exist_ok=True)
        if is_synced:
            sync_folder(made.parent)


def read_range(path: Path, first_byte: int, last_byte: int) -> bytes | None:
    """Return the bytes of a range, cut to the file; `None` where it begins behind the end."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "no regular file")
        if first_byte >= found.st_size:
            return None
        pieces = []
        position, end = first_byte, min(last_byte + 1, found.st_size)
        while position < end:
            piece = os.pread(descriptor, end - position, position)
            if not piece:
                raise OSError(errno.EIO, "the file became shorter while it was read")
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def list_keys(root: Path, prefix: str, reserved: str) -> Iterator[ListedObject]:
    """Return files below *root* with *prefix*, in byte order of keys, one folder in memory."""
    folder, _, _ = prefix.rpartition("/")
    yield from _walk(root / folder if folder else root, folder, prefix, reserved)


def list_level(root: Path, prefix: str, reserved: str) -> Iterator[ListedObject | ListedFolder]:
    above, _, _ = prefix.rpartition("/")
    try:
        with os.scandir(root / above) as entries:
            found = [(entry, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry, is_folder in found:
        key = f"{above}/{entry.name}" if above else entry.name
        if not key.startswith(prefix) or key.startswith(reserved):
            continue
        if is_folder:
            yield ListedFolder(f"{key}/")
        elif entry.is_file(follow_symlinks=False):
            yield from _listed(entry, key)


def _walk(folder: Path, name: str, prefix: str, reserved: str) -> Iterator[ListedObject]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return
    # A folder's keys stand where its name with the slash behind it belongs.
    found.sort(key=lambda one: os.fsencode(one[0].name + ("/" if one[1] else "")))
    for entry, is_folder in found:
        key = f"{name}/{entry.name}" if name else entry.name
        if key.startswith(reserved):
            continue
        if is_folder:
            path = f"{key}/"
            if path.startswith(prefix) or prefix.startswith(path):
                yield from _walk(folder / entry.name, key, prefix, reserved)
        elif key.startswith(prefix) and entry.is_file(follow_symlinks=False):
            yield from _listed(entry, key)


def _listed(entry: os.DirEntry[str], key: str) -> Iterator[ListedObject]:
    with suppress(FileNotFoundError):
        facts = entry.stat(follow_symlinks=False)
        yield ListedObject(key, facts.st_size, facts.st_mtime_ns // 1_000_000)
