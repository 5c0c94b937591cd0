"""An archive of files as one plain tar, which may be from outside: its claims allocate nothing."""

from __future__ import annotations

import os
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from rlmm.base.private_files import open_regular
from rlmm.errors import ConfigError
from rlmm.snapshot.files import SnapshotFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    Opener = Callable[[], AbstractContextManager[SnapshotFile]]
    """Opens one file of a source, as often as needed."""

_WRITTEN_S_MAX = 8**11 - 1
"""Largest time in a USTAR header."""
MEMBERS_MAX: Final = 250_000
"""Files of any kind in an archive; a metadata topic has 100,000 partitions at most."""
_HEADER_BYTES_MAX: Final = 4_096
"""Of one header with its extensions: a name is read from them, and nothing else."""


def tar_of(files: Iterable[tuple[str, int, int, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield a reproducible tar of *files*: name, size in bytes, seconds since 1970, content."""
    for name, size, written_s, content in files:
        entry = tarfile.TarInfo(name)
        entry.size = size
        entry.mtime = min(written_s, _WRITTEN_S_MAX)
        yield entry.tobuf(tarfile.USTAR_FORMAT)
        yield from content
        yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def tar_source(source: Path, suffix: str) -> Iterator[tuple[str, Opener]]:
    """Yield the plain files with *suffix* in a tar; `ConfigError` for any other file."""
    with os.fdopen(open_regular(source), "rb") as file:
        bounded = cast("BinaryIO", _Bounded(file, source.stat().st_size))
        try:
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                members = [
                    (one.name, one.offset_data, one.size)
                    for one in _members(archive)
                    if one.isreg() and not one.issparse() and one.name.endswith(suffix)
                ]
        except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
            msg = f"{source} is neither a snapshot nor a plain tar of snapshots: {error}"
            raise ConfigError(msg) from error
    for name, position, size in members:
        yield f"{source}:{name}", _opener_of(source, position, size)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """
    Yield what `tarfile` reads, each behind the one before it. Raise `ValueError` for anything else:
    not every Python refuses a size below zero, which leads back to a header that was read.
    """
    number, position = 0, -1
    while (member := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined]  # tarfile would keep every header that it read
        number += 1
        if member.size < 0 or member.offset_data <= position:
            raise ValueError(f"file {number} does not lie behind the one before it")
        if number > MEMBERS_MAX:
            raise ValueError(f"it has more than {MEMBERS_MAX} files")
        position = member.offset_data
        yield member


def _opener_of(source: Path, first: int, length: int) -> Opener:
    @contextmanager
    def open_member() -> Iterator[SnapshotFile]:
        with os.fdopen(open_regular(source), "rb") as file:

            def read_at(size: int, position: int) -> bytes:
                file.seek(first + position)
                return file.read(min(size, length - position))

            yield SnapshotFile(read_at, length)

    return open_member


class _Bounded:
    """A file as `tarfile` reads it for headers: no length in it is believed."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _HEADER_BYTES_MAX:
            raise ValueError(f"a header of {size} bytes, at most {_HEADER_BYTES_MAX}")
        return self._file.read(min(size, max(0, self._size - self._file.tell())))

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset < 0:
            raise ValueError(f"a position of {offset}")
        return self._file.seek(min(offset, self._size), whence)

    def tell(self) -> int:
        return self._file.tell()
