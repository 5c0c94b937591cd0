"""
A disk in memory for one machine's snapshots; a crash loses bytes that were not forced. `sync`
forces the bytes of a file, `sync_folder` the names in a folder. Each name that was not forced may
be there after a crash or not; a renaming is one change.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar, cast

from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.files import SnapshotFile
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from rlmm.log.shard_images import ShardImages
    from rlmm.snapshot.format import SnapshotHeader

ROOM = 1 << 30
FREE_BYTES_MIN = 4_096
"""Bytes that a snapshot must leave free; a full disk has less."""
_SLOW_SHARE = 0.25
"""How often what forces or renames ends in a later step than it begins."""


class PowerCut(BaseException):
    """The machine is off and runs no further step."""


class File:
    """The bytes of a file, as programs see them and as they are on the medium."""

    __slots__ = ("data", "medium")

    def __init__(self) -> None:
        self.data = bytearray()
        self.medium = b""


class Platter:
    """The contents of one disk; they survive the machine."""

    mounted: ClassVar[dict[str, Platter]] = {}
    """By the first part of a path; of one run at a time."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self._random = random
        self.names: dict[str, dict[str, File | None]] = {f"/{name}": {}}
        """Folder -> name -> file, `None` for a folder: as programs see it."""
        self._medium: dict[str, dict[str, File | None]] = {f"/{name}": {}}
        self._pending: list[tuple[str, dict[str, File | str | None]]] = []
        """Changes of names that were not forced yet: folder, name -> file, folder or nothing."""
        self.is_full = False
        self.error_share = 0.0
        self.has_failed = False
        self.fuse: int | None = None
        self.damaged: set[bytes] = set()
        """The contents of files with a flipped bit."""
        self.cut: Callable[[], None] = lambda: None
        self.pause: Callable[[float], None] = lambda _: None
        """Lets the rest of the world go on, with a chance: inside a call of the disk."""
        self.saved: Callable[[ShardImages, str], None] = lambda _, __: None
        """Called when a snapshot is said to be on the medium, with its path."""
        self.mounted[name] = self

    @property
    def root(self) -> Path:
        """The top folder; it works where code only reads a `Path`."""
        return cast("Path", SimulatedPath(f"/{self.name}"))

    def files(self) -> Iterator[tuple[str, bytes]]:
        for folder, names in sorted(self.names.items()):
            for name, file in sorted(names.items()):
                if file is not None:
                    yield f"{folder}/{name}", bytes(file.data)

    def change(self, folder: str, names: dict[str, File | str | None]) -> None:
        """Change names together: to a file, to a folder ("") or to nothing."""
        _apply(self.names[folder], names)
        self._pending.append((folder, names))

    def force(self, folder: str) -> None:
        for changed, names in self._pending:
            if changed == folder:
                _apply(self._medium.setdefault(folder, {}), names)
        self._pending = [change for change in self._pending if change[0] != folder]

    def crash(self) -> None:
        """Lose all or a part of the bytes and names that were not forced to the medium."""
        chance = self._random
        for folder, changed in self._pending:
            if chance.random() < 0.5:
                _apply(self._medium.setdefault(folder, {}), changed)
        self._pending.clear()
        there = {f"/{self.name}"}
        for folder in sorted(self._medium):
            if folder in there:
                there |= {
                    f"{folder}/{name}"
                    for name, file in self._medium[folder].items()
                    if file is None
                }
        self._medium = {folder: self._medium.get(folder, {}) for folder in sorted(there)}
        self.names = {folder: dict(names) for folder, names in self._medium.items()}
        for _, names in sorted(self.names.items()):
            for _, file in sorted(names.items()):
                if file is not None and file.data != file.medium:
                    file.data = bytearray(self._torn(file))
                    file.medium = bytes(file.data)
        self.fuse = None

    def turn_bit(self) -> bool:
        files = [
            file
            for _, names in sorted(self.names.items())
            for _, file in sorted(names.items())
            if file is not None and file.data
        ]
        if files:
            file = self._random.choice(files)
            file.data[self._random.randrange(len(file.data))] ^= 1 << self._random.randrange(8)
            file.medium = bytes(file.data)
            self.damaged.add(file.medium)
        return bool(files)

    def _torn(self, file: File) -> bytes:
        chance = self._random
        match chance.randrange(4):
            case 0:
                return file.medium
            case 1:
                return bytes(file.data)
            case 2:
                return bytes(file.data[: chance.randrange(len(file.data) + 1)])
        at = chance.randrange(len(file.data) + 1)
        return bytes(file.data[:at]) + bytes(len(file.data) - at)


def _apply(folder: dict[str, File | None], names: dict[str, File | str | None]) -> None:
    for name, what in names.items():
        if what is None:
            folder.pop(name, None)
        else:
            folder[name] = None if isinstance(what, str) else what


class SimulatedPath(PurePosixPath):
    __slots__ = ()

    def _platter(self) -> Platter:
        return Platter.mounted[self.parts[1]]

    def is_dir(self) -> bool:
        return str(self) == "/" or str(self) in self._platter().names

    def exists(self) -> bool:
        return self.is_dir() or self.name in self._platter().names.get(str(self.parent), {})

    def iterdir(self) -> Iterator[SimulatedPath]:
        for name in sorted(self._platter().names[str(self)]):
            yield self / name


class SimulatedDisk(SnapshotDisk):
    def __init__(self, platter: Platter, random: Random) -> None:
        self.platter = platter
        self._random = random
        self._open: dict[int, File] = {}
        self._next = 3
        self.is_off = False

    def _call(self, *, changes: bool = True) -> None:
        """Make one system call, which may be the last one, or fail."""
        if self.is_off:
            raise PowerCut
        platter = self.platter
        if changes and platter.fuse is not None:
            platter.fuse -= 1
            if platter.fuse < 0:
                self.is_off = True
                platter.cut()
                raise PowerCut
        if platter.error_share and self._random.random() < platter.error_share:
            platter.has_failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def open(self, path: Path, flags: int) -> int:
        self._call(changes=bool(flags & os.O_CREAT))
        folder = self.platter.names.get(str(path.parent), {})
        file = folder.get(path.name)
        if flags & os.O_CREAT:
            if str(path.parent) not in self.platter.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            if file is None:
                file = File()
                self.platter.change(str(path.parent), {path.name: file})
            if flags & os.O_TRUNC:
                file.data.clear()
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self._next += 1
        self._open[self._next] = file
        return self._next

    def close(self, descriptor: int) -> None:
        del self._open[descriptor]

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        self._call(changes=False)
        return bytes(self._open[descriptor].data[position : position + size])

    def size(self, descriptor: int) -> int:
        self._call(changes=False)
        return len(self._open[descriptor].data)

    def write(self, descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> int:
        self._call()
        data = b"".join(buffers)
        if self.platter.is_full:
            if self._random.random() < 0.5:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[: self._random.randrange(len(data))]
        self._open[descriptor].data[position : position + len(data)] = data
        return len(data)

    def sync(self, descriptor: int) -> None:
        self.platter.pause(_SLOW_SHARE)
        self._call()
        file = self._open[descriptor]
        file.medium = bytes(file.data)

    def sync_folder(self, path: Path) -> None:
        self.platter.pause(_SLOW_SHARE)
        self._call()
        self.platter.force(str(path))

    def rename(self, source: Path, target: Path) -> None:
        self.platter.pause(_SLOW_SHARE)
        self._call()
        file = self.platter.names.get(str(source.parent), {}).get(source.name)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        self.platter.change(str(source.parent), {source.name: None, target.name: file})

    def remove(self, path: Path) -> None:
        self._call()
        if path.name in self.platter.names.get(str(path.parent), {}):
            self.platter.change(str(path.parent), {path.name: None})

    def make_folder(self, path: Path) -> None:
        self._call()
        for folder in (*reversed(path.parents), path):
            if str(folder) != "/" and str(folder) not in self.platter.names:
                self.platter.names[str(folder)] = {}
                self.platter.change(str(folder.parent), {folder.name: ""})

    def sizes(self, folder: Path) -> dict[str, int]:
        self._call(changes=False)
        return {
            name: len(file.data)
            for name, file in self.platter.names[str(folder)].items()
            if file is not None
        }

    def free_bytes(self, folder: Path) -> int:
        del folder
        self._call(changes=False)
        # A disk that fills up while it is written to is not seen to be full beforehand.
        return 0 if self.platter.is_full and self._random.random() < 0.5 else ROOM


def file_of(data: bytes) -> SnapshotFile:
    return SnapshotFile(lambda size, position: data[position : position + size], len(data))


def restored(data: bytes) -> tuple[SnapshotHeader, ChosenShard]:
    """Return the header and state of a snapshot; raises as the service does."""
    file = file_of(data)
    header = file.verify()
    shard = ChosenShard(header.partition, header.position)
    for image in file.reader().images():
        shard.import_partition(image)
    return header, shard
