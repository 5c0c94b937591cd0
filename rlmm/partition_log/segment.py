"""
One segment: a `.log` file with its two indexes, and how a place in it is found.

Only the active segment grows, with its index in memory; a closed one's is on disk, unless it was
rebuilt and could not be written. Each question brings the limit of the bytes that readers may see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import LogDamaged
from rlmm.partition_log.index import (
    RELATIVE_OFFSET_MAX,
    SegmentIndex,
    last_timestamp_ms,
    offset_entries,
    offset_index_fault,
    position_at_most,
    position_for_offset,
)
from rlmm.partition_log.names import LOG, OFFSET_INDEX, TIME_INDEX, segment_file
from rlmm.partition_log.scan import BadBatchHead, BatchHead, heads

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rlmm.partition_log.shared_resources import LogPlace


class IndexWrong(Exception):
    """An index led to where no fitting batch is: build it anew. It never leaves the package."""

    def __init__(self, segment: Segment, detail: str) -> None:
        super().__init__(f"{segment.path}: {detail}")
        self.segment = segment


class Slice(NamedTuple):
    """Whole batches at bytes [start, stop) of a segment, and the offset behind them."""

    start: int
    stop: int
    next_offset: int


class Segment:
    """The segment that begins at *base_offset*; *size* counts whole batches only."""

    __slots__ = (
        "_descriptors", "_disk", "_is_checked", "_loaded", "base_offset", "born_ms", "folder",
        "index", "is_index_stored", "max_timestamp_ms", "path", "size",
    )  # fmt: skip

    def __init__(
        self, folder: Path, base_offset: int, size: int, place: LogPlace, *, born_ms: int = -1
    ) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.size = size
        self.born_ms = born_ms
        self.path = folder / segment_file(base_offset, LOG)
        self.index: SegmentIndex | None = None
        self.is_index_stored = False
        """Whether there may be index files on disk."""
        self.max_timestamp_ms = -1
        self._is_checked = False
        self._disk = place.disk
        self._descriptors = place.descriptors
        self._loaded = place.loaded

    def __repr__(self) -> str:
        return f"Segment({self.path}, {self.size} bytes)"

    def file(self, suffix: str) -> Path:
        return self.folder / segment_file(self.base_offset, suffix)

    def read(self, size: int, position: int) -> bytes:
        """Read from the `.log` file; fewer bytes than asked for at its end."""
        descriptor = self._descriptors.hold(self.path)
        try:
            return self._disk.read(descriptor, size, position)
        finally:
            self._descriptors.let_go(self.path, descriptor)

    def is_in_place(self) -> bool:
        """Return whether the open `.log` file is the one in the folder. Blocks."""
        descriptor = self._descriptors.hold(self.path)
        try:
            return self._disk.is_at(descriptor, self.path)
        finally:
            self._descriptors.let_go(self.path, descriptor)

    def use_stored_index(self) -> None:
        """Look up in the `.index` file from now on, checked once, and drop the index in memory."""
        self._loaded.drop(self.path)
        self._is_checked = False
        self.index = None

    def has_index_files(self) -> bool:
        index, read = self.index, self._disk.read_file
        return (
            index is not None
            and read(self.file(OFFSET_INDEX)) == index.offset_bytes()
            and read(self.file(TIME_INDEX)) == index.time_bytes()
        )

    def remove_index_files(self) -> None:
        """Remove index files before the segment grows: stale, they would pass after a crash."""
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            self._disk.remove(self.file(suffix))
        self.is_index_stored = False

    def write_index(self) -> None:
        """Write both index files as they are to stay: complete and with the closing time."""
        if self.index is None:
            return
        self.index.note_time()
        self.max_timestamp_ms = self.index.max_timestamp_ms
        # Not synced: what a loss of power leaves of them is judged, and if need be rebuilt.
        self._disk.replace_file(self.file(OFFSET_INDEX), self.index.offset_bytes(), sync=False)
        self._disk.replace_file(self.file(TIME_INDEX), self.index.time_bytes(), sync=False)
        self.is_index_stored = True

    def newest_ms(self) -> int:
        """Time of the newest record; of the last change of the file where no record has one."""
        timestamp_ms = self.index.max_timestamp_ms if self.index else self.max_timestamp_ms
        if timestamp_ms < 0 and self.index is None:
            timestamp_ms = last_timestamp_ms(self._disk.read_file(self.file(TIME_INDEX)) or b"")
            self.max_timestamp_ms = timestamp_ms
        return timestamp_ms if timestamp_ms >= 0 else self._disk.modified_ms(self.path)

    def is_in_memory(self, positions: Sequence[int]) -> bool:
        """Return whether the bytes at *positions* can be read without waiting for the medium."""
        descriptor = self._descriptors.hold(self.path)
        try:
            return all(self._disk.is_in_memory(descriptor, at) for at in positions)
        finally:
            self._descriptors.let_go(self.path, descriptor)

    def heads_from(self, position: int, limit: int) -> Iterator[BatchHead]:
        """Walk the batches in [position, limit), which are known to be sound."""
        for head in heads(self.read, position, limit):
            if isinstance(head, BadBatchHead):
                raise LogDamaged(f"{self.path}: no batch at byte {head.position}: {head.detail}")
            yield head

    def find(self, offset: int, limit: int) -> BatchHead | None:
        """Find the first batch below *limit* that ends at or behind *offset*; `IndexWrong`."""
        start = position_for_offset(self._entries, offset - self.base_offset)
        if start >= limit:
            start = position_at_most(self._entries, limit - 1)
        if start == 0:
            return self._first_ending_at(offset, 0, limit)
        try:
            found = next(self.heads_from(start, limit), None)
            if found is None or not self.base_offset <= found.base_offset <= offset:
                raise IndexWrong(self, f"index leads to byte {start} for offset {offset}")
            return self._first_ending_at(offset, start, limit)
        except LogDamaged as error:
            raise IndexWrong(self, str(error)) from error

    @property
    def last_indexed(self) -> int:
        """Return a position at or before that of the last batch, from the index alone."""
        return position_at_most(self._entries, self.size - 1)

    def start_hint(self, offset: int) -> int:
        """Return a position at or before that of *offset*, from the index alone."""
        return position_for_offset(self._entries, offset - self.base_offset)

    def take(self, first: BatchHead, bytes_max: int, limit: int, limit_offset: int) -> Slice:
        """
        Choose whole batches from *first* on: at most *bytes_max*, but one in any case.

        *limit_offset* is the offset behind the last batch below *limit*.
        """
        if first.position + bytes_max >= limit:
            return Slice(first.position, limit, limit_offset)
        last = first
        near = position_at_most(self._entries, first.position + bytes_max)
        try:
            for head in self.heads_from(max(near, first.stop), limit):
                if head.stop > first.position + bytes_max:
                    break
                last = head
        except LogDamaged as error:
            raise IndexWrong(self, str(error)) from error
        if near > last.stop:
            # The batch that is indexed there does not fit any more: what lies before it does.
            return self._slice_before(first, near)
        return Slice(first.position, last.stop, last.last_offset + 1)

    def _slice_before(self, first: BatchHead, stop: int) -> Slice:
        behind = next(self.heads_from(stop, self.size), None)
        if behind is None or behind.base_offset <= first.last_offset:
            raise IndexWrong(self, f"index leads to byte {stop}, where no later batch begins")
        return Slice(first.position, stop, behind.base_offset)

    def _first_ending_at(self, offset: int, start: int, limit: int) -> BatchHead | None:
        for head in self.heads_from(start, limit):
            if head.last_offset >= offset:
                return head
        return None

    @property
    def is_indexed_in_memory(self) -> bool:
        return self.index is not None or self._loaded.get(self.path) is not None

    @property
    def _entries(self) -> array[int]:
        if self.index is not None:
            return self.index.offsets
        entries = self._loaded.get(self.path)
        if entries is None:
            content = self._disk.read_file(self.file(OFFSET_INDEX)) or b""
            if not self._is_checked:
                most = self.base_offset + RELATIVE_OFFSET_MAX + 1
                fault = offset_index_fault(content, self.base_offset, most, self.size)
                if fault is not None:
                    raise IndexWrong(self, fault)
                self._is_checked = True
            entries = offset_entries(content)
            self._loaded.put(self.path, entries)
        return entries
