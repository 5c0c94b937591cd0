"""
The observation of a partition that another process writes, by a reader that changes nothing.

A look finds the batches and segments that the owner has written since the last one, and the
segments that it has deleted. Where the bytes read before are not there any more, the owner has cut
the log or made it anew: the reader opens the partition again. Bytes below the size of a file are
whole, so a batch that is not sound there is damage, unless it was there when the reader came: then
a crash of the owner may have left it, and opening has judged it by the owner's recovery point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.partition_log.index import SegmentIndex
from rlmm.partition_log.names import LOG, parse_segment_file
from rlmm.partition_log.scan import ScanResult, scan_on
from rlmm.records.header import HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.partition_log.segment import Segment
    from rlmm.partition_log.store import PartitionStore


class BatchNotes(SegmentIndex):
    """The batches of a scan, for the index of a segment that readers use meanwhile."""

    __slots__ = ("notes",)

    def __init__(self, base_offset: int) -> None:
        super().__init__(base_offset, 0)
        self.notes: list[tuple[int, int, int]] = []

    def note(self, position: int, last_offset: int, max_timestamp_ms: int) -> None:
        self.notes.append((position, last_offset, max_timestamp_ms))


class SegmentGrowth(NamedTuple):
    """Batches of *segment* up to byte *stop*, behind those that are known."""

    segment: Segment
    notes: list[tuple[int, int, int]]
    stop: int
    next_offset: int


class FolderNews(NamedTuple):
    """The changes that one look found, or the *fault* for which the partition goes offline."""

    grown: tuple[SegmentGrowth, ...] = ()
    gone_count: int = 0
    """Segments that the owner has deleted from the front."""
    log_start: int = 0
    fault: str | None = None
    is_replaced: bool = False
    """Whether the fault is that the owner has cut the log, or made it anew."""


class FolderWatch:
    """Looks at the folder of *store*; one look at a time, in any thread. Making it blocks, too."""

    def __init__(self, store: PartitionStore) -> None:
        self._store = store
        self._last = (0, b"")
        """The header of the last batch in the active segment: its position and bytes."""
        if store.active.size:
            *_, last = store.active.heads_from(store.active.last_indexed, store.active.size)
            self._note_last(store.active, last.position)
        self._seen_bytes: int | None = None
        """Size of the last file at the last look."""

    def blocking_look(self, noted_log_start: Callable[[], int]) -> FolderNews:
        """Find what has changed; `OSError` where the disk does not say."""
        store, active = self._store, self._store.active
        try:
            sizes = store.place.disk.sizes(store.folder)
        except FileNotFoundError:
            return self._replaced("its folder is gone")
        size = sizes.get(active.path.name)
        if size is None or not active.is_in_place():
            return self._replaced(f"{active.path.name} is gone, or another file")
        if size < active.size or not self._holds_last_batch(active):
            return self._replaced(f"{active.path.name} has other bytes before byte {active.size}")
        found = [parse_segment_file(name) for name in sizes]
        offsets = sorted(one[0] for one in found if one is not None and one[1] == LOG)
        gone_count = sum(segment.base_offset < offsets[0] for segment in store.segments)
        log_start = max(noted_log_start(), offsets[0])
        grown, fault = self._grown([base for base in offsets if base > active.base_offset], sizes)
        return FolderNews(grown, gone_count, log_start, fault)

    def _grown(
        self, later: list[int], sizes: dict[str, int]
    ) -> tuple[tuple[SegmentGrowth, ...], str | None]:
        """Scan the active segment from its known end on, and the segments behind it."""
        store, segment = self._store, self._store.active
        next_offset = store.next_offset
        grown: list[SegmentGrowth] = []
        while True:
            size = sizes[segment.path.name]
            notes = BatchNotes(segment.base_offset)
            found = ScanResult(notes, next_offset, segment.size)
            if size != self._seen_bytes or segment is not store.active:
                falling = scan_on(found, segment.read, size)
                if falling is not None:
                    found.damage = f"base offset {falling}, expected {found.next_offset} or more"
            is_old = segment is store.active and self._seen_bytes is None
            if found.damage is not None and not found.is_torn and not is_old:
                return (), f"{segment.path}: {found.damage}, at byte {found.stop}"
            if notes.notes or segment is not store.active:
                grown.append(SegmentGrowth(segment, notes.notes, found.stop, found.next_offset))
            if notes.notes:
                self._note_last(segment, notes.notes[-1][0])
            next_offset = found.next_offset
            if found.stop < size or not later or later[0] != next_offset:
                self._seen_bytes = size
                return tuple(grown), None
            segment = store.segment_at(later.pop(0), 0, -1)

    def _holds_last_batch(self, active: Segment) -> bool:
        """Return whether the last batch of *active* that was read still stands there."""
        position, header = self._last
        return active.size == 0 or active.read(HEADER_BYTES, position) == header

    def _note_last(self, segment: Segment, position: int) -> None:
        self._last = (position, segment.read(HEADER_BYTES, position))

    def _replaced(self, what: str) -> FolderNews:
        for segment in self._store.segments:
            self._store.place.descriptors.forget(segment.path)
            self._store.place.loaded.drop(segment.path)
        return FolderNews(
            fault=f"{self._store.folder}: {what}: its owner has cut the log, or made it anew",
            is_replaced=True,
        )
