"""Blobs of rows on disk, parted by segment, until all of a part are there. I/O."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.closing import ClosedByWith

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SIZE = struct.Struct(">Q")


class RowSpill(ClosedByWith):
    """A folder of its own, removed at the end. A part's blobs are files of one name each."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rlmm-audit-")
        self.size_bytes = 0

    def close(self) -> None:
        self._folder.cleanup()

    def file(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def add(self, name: str, blobs: Mapping[int, bytes]) -> None:
        for shard, blob in blobs.items():
            with self.file(f"{name}-{shard}").open("ab") as file:
                file.write(_SIZE.pack(len(blob)))
                file.write(blob)
            self.size_bytes += _SIZE.size + len(blob)

    def read(self, name: str, shard: int) -> Iterator[bytes]:
        """Return the blobs of a shard; none where there are none."""
        path = self.file(f"{name}-{shard}")
        if not path.exists():
            return
        with path.open("rb") as file:
            while head := file.read(_SIZE.size):
                yield file.read(_SIZE.unpack(head)[0])

    def remove(self, name: str, shard: int) -> None:
        self.file(f"{name}-{shard}").unlink(missing_ok=True)
