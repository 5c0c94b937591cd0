"""An archive of files as one plain tar, which may be from outside: its claims allocate nothing."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

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
    with source.open("rb") as file:
        bounded = cast("BinaryIO", _Bounded(file, source.stat().st_size))
        try:
            with tarfile.open(fileobj=bounded, mode="r:") as archive:
                members = archive.getmembers()
        except (tarfile.TarError, MemoryError, OverflowError, ValueError) as error:
            msg = f"{source} is neither a snapshot nor a plain tar of snapshots: {error}"
            raise ConfigError(msg) from error
    for member in members:
        if member.isreg() and not member.issparse() and member.name.endswith(suffix):
            yield f"{source}:{member.name}", _opener_of(source, member)


def _opener_of(source: Path, member: tarfile.TarInfo) -> Opener:
    @contextmanager
    def open_member() -> Iterator[SnapshotFile]:
        with source.open("rb") as file:

            def read_at(size: int, position: int) -> bytes:
                file.seek(member.offset_data + position)
                return file.read(min(size, member.size - position))

            yield SnapshotFile(read_at, member.size)

    return open_member


class _Bounded:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._file.seek(min(offset, self._size), whence)

    def tell(self) -> int:
        return self._file.tell()
