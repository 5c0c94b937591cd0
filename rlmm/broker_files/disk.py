"""
Disk access to a broker's log folders; every function blocks.

A configured folder, a partition's folder and a file are opened one below the other, the last two
never through a symbolic link. Invariant: no file is open after a call.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import FileAbsent, LogNotPermitted, LogUnavailable
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.checkpoints import CheckpointFault, parse_partition_metadata
from rlmm.partition_log.names import PARTITION_METADATA, topic_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.errors import RlmmError
    from rlmm.metadata.ids import TopicIdPartition

SMALL_BYTES_MAX: Final = 64 * 1024
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Not to wait for who writes into a pipe that somebody has put there.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})
"""Nothing of that name, or nothing of the kind that it has to be."""


class FolderPlace(NamedTuple):
    folder: str
    partition: TopicIdPartition

    @property
    def name(self) -> str:
        """Return the partition's folder name; raises `InvalidArgument` for an odd topic."""
        return str(topic_partition(self.partition.topic, self.partition.partition))

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"


class FileIdentity(NamedTuple):
    """Identity of a file: a replaced file of the same name has another inode or size."""

    device: int
    inode: int
    size_bytes: int


class SealedFileFacts(NamedTuple):
    size_bytes: int
    modified_ms: int


class ListedFile(NamedTuple):
    names: list[str]
    identity: FileIdentity


def facts_of(place: FolderPlace) -> dict[str, SealedFileFacts]:
    """Return a partition's regular files by name; files that vanish meanwhile are left out."""
    found: dict[str, SealedFileFacts] = {}
    with _partition_folder(place) as folder, os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found[entry.name] = SealedFileFacts(status.st_size, status.st_mtime_ns // 1_000_000)
    return found


def look_at(place: FolderPlace, name: str) -> ListedFile:
    with _partition_folder(place) as folder:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        if name not in names:
            raise _absent(f"{place}/{name}")
        with _file(folder, name, f"{place}/{name}") as identity:
            return ListedFile(names, identity[1])


def read_piece(
    place: FolderPlace, name: str, identity: FileIdentity, start: int, size: int
) -> bytes:
    """Read the bytes [start, start + size) of a file; empty if the file is gone or was replaced."""
    try:
        with (
            _partition_folder(place) as folder,
            _file(folder, name, f"{place}/{name}") as (descriptor, found),
        ):
            return os.pread(descriptor, size, start) if found == identity else b""
    except FileAbsent:
        return b""


@contextmanager
def opened_folder(path: str) -> Iterator[int]:
    with _translated(path):
        descriptor = os.open(path, _FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: int, where: str) -> list[str]:
    with _translated(where):
        return os.listdir(folder)


def topic_id_of(partition_folder: int, where: str) -> Uuid | str:
    """Return the topic id in an open partition folder, or the reason why there is none."""
    content = small_file(partition_folder, PARTITION_METADATA, f"{where}/{PARTITION_METADATA}")
    if not content:
        return f"it does not say its topic's id ({PARTITION_METADATA})"
    found = parse_partition_metadata(content)
    return (
        f"{PARTITION_METADATA}: {found.detail}"
        if isinstance(found, CheckpointFault)
        else Uuid(found)
    )


def small_file(folder: int, name: str, where: str, bytes_max: int = SMALL_BYTES_MAX) -> bytes:
    """Read a file of at most *bytes_max* in an open folder; None if it does not exist."""
    try:
        with _file(folder, name, where) as (descriptor, _):
            return os.pread(descriptor, bytes_max, 0)
    except FileAbsent:
        return b""


@contextmanager
def inner_folder(folder: int, name: str, where: str) -> Iterator[int]:
    with _translated(where):
        descriptor = os.open(name, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _partition_folder(place: FolderPlace) -> Iterator[int]:
    name, where = place.name, str(place)
    with opened_folder(place.folder) as outer, inner_folder(outer, name, where) as folder:
        found = topic_id_of(folder, where)
        if isinstance(found, str):
            raise FileAbsent(f"{where}: {found}")
        if found != place.partition.topic_id:
            msg = f"{where} is of the topic {found}, asked was {place.partition.topic_id}"
            raise FileAbsent(msg)
        with _translated(where):
            yield folder


@contextmanager
def _file(folder: int, name: str, where: str) -> Iterator[tuple[int, FileIdentity]]:
    with _translated(where):
        descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _absent(where)
            yield descriptor, FileIdentity(status.st_dev, status.st_ino, status.st_size)
        finally:
            os.close(descriptor)


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(where, error) from error


def _refusal(where: str, error: OSError) -> RlmmError:
    if error.errno in _ABSENT:
        return _absent(where)
    if isinstance(error, PermissionError):
        return LogNotPermitted(f"not permitted to read {where}: {error.strerror}")
    return LogUnavailable(f"{where} could not be read: {error.strerror}")


def _absent(where: str) -> FileAbsent:
    return FileAbsent(f"{where} is not there")
