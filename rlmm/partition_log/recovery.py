"""
Finding out where a partition's log ends, and making its files say so.

Blocking. `recovery_rules` decides, this does. Opened read-only nothing is changed: a cut is an end
that readers see, a rebuilt index stays in memory.
"""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.errors import LogDamaged
from rlmm.partition_log.index import (
    OFFSET_ENTRY_BYTES,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY_BYTES,
    SegmentIndex,
    offset_index_fault,
    time_index_fault,
)
from rlmm.partition_log.names import COMPANIONS, LOG, OFFSET_INDEX, TIME_INDEX
from rlmm.partition_log.recovery_rules import (
    UNINDEXED_BYTES_MAX,
    LogCut,
    LogRecoveryResult,
    PartitionOffline,
    first_to_scan,
    judge_damage,
    judge_gap,
    judge_holes,
    recovery_point_of,
)
from rlmm.partition_log.scan import BadBatchHead, ScanResult, heads, scan_file

if TYPE_CHECKING:
    from rlmm.partition_log.segment import Segment
    from rlmm.partition_log.shared_resources import LogPlace

_log = logging.getLogger(__name__)

_OFFSET_MAX = 2**63 - 1


class Recovery:
    """The recovery of one partition's segments, which it shortens where the log ends earlier."""

    def __init__(
        self,
        place: LogPlace,
        segments: list[Segment],
        sizes: dict[str, int],
        *,
        noted_point: int | None,
        is_clean: bool,
    ) -> None:
        self.segments = segments
        self.recovery_point = recovery_point_of(noted_point, [s.base_offset for s in segments])
        self.epochs: list[tuple[int, int]] = []
        """Leader epochs of what was scanned."""
        self._place = place
        self._noted_point = noted_point
        self._sizes = sizes
        self._is_clean = is_clean
        self._scanned_bytes = 0
        self._cut_bytes = 0
        self._removed_segments = 0
        self._rebuilt: list[str] = []

    def run(self) -> int:
        """Settle every segment, return the log's end; `LogDamaged` changes at most indexes."""
        base_offsets = [segment.base_offset for segment in self.segments]
        first = first_to_scan(base_offsets, self.recovery_point)
        if self._is_clean:
            first = len(self.segments) - 1
        for segment, behind in pairwise(self.segments[: first + 1]):
            self._settle_closed(segment, behind.base_offset)
        if self._is_clean:
            next_offset = self._trust_active(self.segments[-1])
            if next_offset is not None and self._noted_point in (None, next_offset):
                return next_offset
        return self._scan_from(first)

    def outcome(self) -> LogRecoveryResult:
        return LogRecoveryResult(
            self._is_clean,
            self._scanned_bytes,
            self._cut_bytes,
            self._removed_segments,
            tuple(self._rebuilt),
        )

    def note_rebuilt(self, name: str) -> None:
        self._rebuilt.append(name)

    # what is trusted

    def _settle_closed(self, segment: Segment, next_offset: int) -> None:
        fault = self._index_fault(segment, next_offset, deep=not self._is_clean)
        if fault is None:
            segment.use_stored_index()
            return
        found = self._scan(segment)
        if found.damage is not None:
            msg = f"{segment.path}: {found.damage}, at byte {found.stop} of a closed segment"
            raise LogDamaged(msg)
        segment.index = found.index
        self._keep_index(segment)

    def _index_fault(self, segment: Segment, next_offset: int, *, deep: bool) -> str | None:
        """
        Return the fault of the index files; only *deep* reads them.

        An empty offset index is sparse, but a segment with times has a time index: an empty one
        would hide it from look-ups by time.
        """
        offsets_path, times_path = segment.file(OFFSET_INDEX), segment.file(TIME_INDEX)
        for path, entry_bytes in (
            (offsets_path, OFFSET_ENTRY_BYTES),
            (times_path, TIME_ENTRY_BYTES),
        ):
            if self._sizes.get(path.name, -1) % entry_bytes:
                return f"{path.name} is missing or no whole number of entries"
        if segment.size and not self._sizes[times_path.name]:
            return f"{times_path.name} is empty"
        if not deep:
            return None
        disk = self._place.disk
        offsets, times = disk.read_file(offsets_path) or b"", disk.read_file(times_path) or b""
        fault = offset_index_fault(offsets, segment.base_offset, next_offset, segment.size)
        if fault is None and segment.size > UNINDEXED_BYTES_MAX:
            last = int.from_bytes(offsets[-4:]) if offsets else 0
            if segment.size - last > UNINDEXED_BYTES_MAX:
                fault = f"last entry is at byte {last} of {segment.size}"
        return fault or time_index_fault(times, segment.base_offset, next_offset)

    def _trust_active(self, segment: Segment) -> int | None:
        """Return the next offset of a log closed cleanly; None when its index needs a scan."""
        if self._index_fault(segment, _OFFSET_MAX, deep=True) is not None:
            return None
        disk, interval = self._place.disk, self._place.settings.index_interval_bytes
        offsets = disk.read_file(segment.file(OFFSET_INDEX)) or b""
        times = disk.read_file(segment.file(TIME_INDEX)) or b""
        index = SegmentIndex.of_files(segment.base_offset, interval, offsets, times)
        last_entry = index.offsets[-1] if index.offsets else 0
        next_offset = segment.base_offset
        most = segment.base_offset + RELATIVE_OFFSET_MAX
        for head in heads(segment.read, last_entry & 0xFFFFFFFF, segment.size):
            if isinstance(head, BadBatchHead) or head.base_offset < next_offset:
                return None
            if head.last_offset > most:
                return None
            if next_offset == segment.base_offset and last_entry:
                indexed = segment.base_offset + (last_entry >> 32)
                if head.last_offset > indexed:
                    return None
            index.note(head.position, head.last_offset, head.max_timestamp_ms)
            next_offset = head.last_offset + 1
        if last_entry and next_offset == segment.base_offset:
            return None
        segment.index = index
        return next_offset

    # what is scanned

    def _scan_from(self, first: int) -> int:
        next_offset = self.segments[first].base_offset
        for number in range(first, len(self.segments)):
            segment = self.segments[number]
            found = self._scan(segment)
            self.epochs += found.epochs
            is_last = number == len(self.segments) - 1
            behind = None if is_last else self.segments[number + 1].base_offset
            is_cut = self._judge(segment, found, behind)
            segment.index = found.index
            segment.born_ms = found.born_ms
            next_offset = found.next_offset
            if is_cut:
                self._cut(number, found)
                break
        self._secure(self.segments[first:])
        return next_offset

    def _scan(self, segment: Segment) -> ScanResult:
        self._scanned_bytes += segment.size
        interval = self._place.settings.index_interval_bytes
        return scan_file(
            segment.read, segment.size, segment.base_offset, interval, in_core=self._place.in_core
        )

    def _judge(self, segment: Segment, found: ScanResult, behind: int | None) -> bool:
        """Return whether the log ends where *found* does; raises when it may not be touched."""
        verdict: LogCut | PartitionOffline | None = None
        if not self._place.is_read_only:
            verdict = judge_holes(found.holes, self.recovery_point)
        if verdict is None and found.damage is not None:
            verdict = judge_damage(found.damage, found.next_offset, self.recovery_point)
        elif verdict is None and behind is not None:
            verdict = judge_gap(found.next_offset, behind, self.recovery_point)
        if isinstance(verdict, PartitionOffline):
            msg = f"{segment.path}: {verdict.fault}; byte {found.stop} of {segment.size}"
            raise LogDamaged(msg)
        return verdict is not None

    def _cut(self, number: int, found: ScanResult) -> None:
        """End the log behind the sound part of segment *number*."""
        segment, removed = self.segments[number], self.segments[number + 1 :]
        self._cut_bytes = segment.size - found.stop + sum(behind.size for behind in removed)
        self._removed_segments = len(removed)
        del self.segments[number + 1 :]
        segment.size = found.stop
        if self._place.is_read_only:
            return
        disk, descriptors = self._place.disk, self._place.descriptors
        for behind in reversed(removed):
            for suffix in (LOG, *COMPANIONS):
                descriptors.forget(behind.file(suffix))
                disk.remove(behind.file(suffix))
        descriptor = descriptors.hold(segment.path)
        try:
            disk.truncate(descriptor, found.stop)
        finally:
            descriptors.let_go(segment.path, descriptor)

    def _secure(self, scanned: list[Segment]) -> None:
        if self._place.is_read_only:
            return
        disk, descriptors = self._place.disk, self._place.descriptors
        for segment in scanned:
            descriptor = descriptors.hold(segment.path)
            try:
                disk.sync(descriptor)
            finally:
                descriptors.let_go(segment.path, descriptor)
            self._keep_index(segment)
        if self._removed_segments:
            disk.sync_folder(scanned[0].folder)

    def _keep_index(self, segment: Segment) -> None:
        """Write back a new index; the active one, or one that finds no room, stays in memory."""
        index = segment.index
        if index is None or self._place.is_read_only:
            return
        index.note_time()
        if not segment.has_index_files():
            self.note_rebuilt(segment.file(OFFSET_INDEX).name)
            try:
                segment.write_index()
            except OSError as error:
                _log.warning("%s: index not written: %s", segment.path, error)
                segment.remove_index_files()
                return
        if segment is not self.segments[-1]:
            segment.use_stored_index()
