"""The files of snapshots: opened, verified, read. Blocks. Errors of the format name the path."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt, SnapshotCorrupt, SnapshotError, SnapshotForeign
from rlmm.metadata.image_reading import read_partition_image
from rlmm.snapshot.catalog import Catalog, identity_folder
from rlmm.snapshot.decoding import SnapshotReader, verify
from rlmm.snapshot.format import HEADER_BYTES_MAX, decode_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlmm.log.protocol import LogIdentity
    from rlmm.snapshot.atomic import SnapshotDisk
    from rlmm.snapshot.format import SnapshotHeader

    ReadAt = Callable[[int, int], bytes]
    """Reads so many bytes at a position; fewer at the end, or after an interrupted call."""


class SnapshotFile:
    def __init__(self, read_at: ReadAt, size: int) -> None:
        self.size = size
        self._read_at = read_at

    def peek(self) -> SnapshotHeader:
        """Return the header, verified by its own checksum alone: enough for a list, not for use."""
        start = SnapshotReadPass(self._read_at)(min(self.size, HEADER_BYTES_MAX))
        at = 0

        def take(size: int, what: str) -> bytes:
            nonlocal at
            at += size
            if at > len(start):
                msg = f"the file ends in {what}, after {len(start)} bytes"
                raise SnapshotCorrupt(msg)
            return start[at - size : at]

        return decode_header(take)

    def verify(self) -> SnapshotHeader:
        """Return the header of a file whose checksum is right; reads the whole file."""
        return verify(SnapshotReadPass(self._read_at), self.size)

    def reader(self) -> SnapshotReader:
        return SnapshotReader(SnapshotReadPass(self._read_at), self.size)

    def examine(self) -> SnapshotHeader:
        """Return the header of a file from outside after checking checksum, blocks and images."""
        header = self.verify()
        for image in self.reader().images():
            read_partition_image(image)
        return header

    def pieces(self, size: int = 1 << 20) -> Iterator[bytes]:
        read = SnapshotReadPass(self._read_at)
        left = self.size
        while left:
            piece = read(min(left, size))
            if not piece:
                raise SnapshotCorrupt("the file ends early: it was longer when it was opened")
            left -= len(piece)
            yield piece


class SnapshotReadPass:
    def __init__(self, read_at: ReadAt) -> None:
        self._read_at = read_at
        self._position = 0

    def __call__(self, size: int) -> bytes:
        """Return the next *size* bytes; fewer only at the end."""
        data = self._read_at(size, self._position)
        while len(data) < size:
            more = self._read_at(size - len(data), self._position + len(data))
            if not more:
                break
            data += more
        self._position += len(data)
        return data


@contextmanager
def opened(
    disk: SnapshotDisk, path: Path, go_on: Callable[[], None] = lambda: None
) -> Iterator[SnapshotFile]:
    """Open a snapshot; errors about its content carry its path. *go_on* precedes each read."""
    descriptor = disk.open(path, os.O_RDONLY)

    def read_at(size: int, position: int) -> bytes:
        go_on()
        return disk.read(descriptor, size, position)

    try:
        with naming(str(path)):
            yield SnapshotFile(read_at, disk.size(descriptor))
    finally:
        disk.close(descriptor)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Errors about the content of a file carry its name, once."""
    try:
        yield
    except SnapshotError as error:
        if str(error).startswith(name):
            raise
        raise type(error)(f"{name}: {error}") from error
    except ImageCorrupt as error:
        msg = f"{name}: {error}"
        raise SnapshotCorrupt(msg) from error


def partition_counts(
    root: Path, identity: LogIdentity, disk: SnapshotDisk, go_on: Callable[[], None]
) -> Iterator[int]:
    """
    Yield the counts in the newest snapshot headers of the topic of *identity*. Blocks. *go_on* is
    called before each metadata partition and each read.
    """
    catalog = Catalog(identity_folder(root, identity), disk)
    for partition in catalog.partitions():
        go_on()
        with suppress(SnapshotError, OSError):
            for stored in catalog.newest_first(partition)[:1]:
                with opened(disk, stored.path, go_on) as file:
                    found = file.peek().identity
                ours = identity.cluster_id, identity.topic_id
                if (found.cluster_id, found.topic_id) == ours:
                    yield found.partition_count


def require_identity(header: SnapshotHeader, identity: LogIdentity) -> None:
    """Raises `SnapshotForeign` for another log, or another partition count."""
    found = header.identity
    for what, ours, theirs in (
        ("cluster", identity.cluster_id, found.cluster_id),
        ("topic", str(identity.topic_id), str(found.topic_id)),
    ):
        if ours != theirs:
            msg = f"of {what} {theirs!r}, expected is {ours!r}"
            raise SnapshotForeign(msg)
    if identity.partition_count != found.partition_count:
        msg = (
            f"of a topic of {found.partition_count} metadata partitions, expected are "
            f"{identity.partition_count}: user partitions live elsewhere in it"
        )
        raise SnapshotForeign(msg)


def require_place(header: SnapshotHeader, partition: int, position: int) -> None:
    """Refuse a snapshot that its path belies."""
    if (header.partition, header.position) != (partition, position):
        msg = (
            f"holds metadata partition {header.partition} at position {header.position}, its path "
            f"says metadata partition {partition} at {position}"
        )
        raise SnapshotForeign(msg)
