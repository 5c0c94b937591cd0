"""
The segments of one partition and the files under them: written and synced bytes.

Plain methods change state, on the event loop alone; threads do the `blocking_` ones, which change
files and no state, one appending at a time. So a reading thread may see segments a moment old,
never a half-made change.
"""

from __future__ import annotations

import logging
from errno import ENOENT
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import AppendRefused, InvalidArgument, LogDamaged
from rlmm.partition_log.checkpoints import format_epochs
from rlmm.partition_log.disk import require_whole
from rlmm.partition_log.incoming import IncomingBatch, PlacedBatches, index_batches, place
from rlmm.partition_log.index import RELATIVE_OFFSET_MAX, SegmentIndex
from rlmm.partition_log.names import COMPANIONS, EPOCH_CHECKPOINT, LOG
from rlmm.partition_log.retention import ClosedSegment, expired_count
from rlmm.partition_log.segment import Segment
from rlmm.partition_log.settings import SyncPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlmm.partition_log.epochs import EpochStarts
    from rlmm.partition_log.names import TopicPartition
    from rlmm.partition_log.observation import FolderNews
    from rlmm.partition_log.recovery_rules import LogRecoveryResult
    from rlmm.partition_log.shared_resources import LogPlace


_log = logging.getLogger(__name__)


class LogPosition(NamedTuple):
    """A place between two batches: the offset behind it, its segment, and the byte there."""

    next_offset: int
    base_offset: int
    size: int


class StoredAppend(NamedTuple):
    """An append with its place: *base_offset* at byte *position* of *segment*."""

    segment: Segment
    position: int
    base_offset: int
    batches: list[IncomingBatch]
    placed: PlacedBatches
    size: int


class SyncWork(NamedTuple):
    """The files of one sync; it covers everything below *end*, which was read before."""

    end: LogPosition
    closed: tuple[Segment, ...]
    active: Segment | None
    names_are_new: bool


class PartitionStore:
    """The files of one partition; `opening` makes it."""

    def __init__(
        self,
        name: TopicPartition,
        folder: Path,
        topic_id: bytes | None,
        shared: LogPlace,
        segments: Sequence[Segment],
        end: LogPosition,
        epochs: EpochStarts,
        recovered: LogRecoveryResult,
    ) -> None:
        self.name = name
        self.folder = folder
        self.topic_id = topic_id
        self.place = shared
        self.recovered = recovered
        self.epochs = epochs
        self.next_offset = end.next_offset
        self.recovery_point = end.next_offset
        self.log_start = segments[0].base_offset
        self.names_are_new = False
        self.is_noted = False
        """Whether a recovery point of this partition stands on disk."""
        self._segments = tuple(segments)
        self._unsynced: list[Segment] = []

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    def end(self) -> LogPosition:
        return LogPosition(self.next_offset, self.active.base_offset, self.active.size)

    # appending

    def needs_roll(self, size: int, offset_count: int, now_ms: int) -> bool:
        """Return whether the active segment must be closed before *size* more bytes are written."""
        active, settings = self.active, self.place.settings
        if active.size == 0:
            return False
        if active.size + size > settings.segment_bytes:
            return True
        if self.next_offset + offset_count - 1 - active.base_offset > RELATIVE_OFFSET_MAX:
            return True
        return self.is_aged(now_ms)

    def is_aged(self, now_ms: int) -> bool:
        active = self.active
        return active.size > 0 and now_ms - active.born_ms > self.place.settings.segment_ms

    def plan_append(
        self, record_set: bytes, batches: list[IncomingBatch], leader_epoch: int
    ) -> StoredAppend:
        """Give the batches their offsets and their place; nothing is changed yet."""
        if len(record_set) > self.place.settings.segment_bytes:
            limit = self.place.settings.segment_bytes
            msg = f"{self.name}: an append of {len(record_set)} bytes, a segment takes {limit}"
            raise InvalidArgument(msg)
        active = self.active
        placed = place(record_set, batches, self.next_offset, leader_epoch)
        size = len(record_set)
        return StoredAppend(active, active.size, self.next_offset, batches, placed, size)

    def blocking_write(self, append: StoredAppend) -> None:
        """Write *append* in full or cut it back, `AppendRefused`; else `LogDamaged`."""
        disk, path = self.place.disk, append.segment.path
        try:
            descriptor = self.place.descriptors.hold(path)
        except OSError as error:
            raise self._refused(append, error) from error
        try:
            written = disk.write(descriptor, append.placed.buffers, append.position)
            require_whole(written, append.size)
        except OSError as error:
            try:
                disk.truncate(descriptor, append.position)
            except OSError as second:
                raise LogDamaged(
                    f"{path}: a write at byte {append.position} failed ({error}) "
                    f"and could not be cut back ({second})"
                ) from second
            raise self._refused(append, error) from error
        finally:
            self.place.descriptors.let_go(path, descriptor)

    def take_append(self, append: StoredAppend) -> None:
        segment = append.segment
        if segment.index is not None:
            index_batches(segment.index, append.batches, append.base_offset, append.position)
        segment.size = append.position + append.size
        self.next_offset = append.placed.next_offset
        self._note_unsynced(segment)

    def blocking_new_segment(self, now_ms: int) -> Segment:
        """Make the file of the segment that begins at the log's end."""
        segment = self.segment_at(self.next_offset, 0, now_ms)
        try:
            descriptor = self.place.descriptors.hold(segment.path, create=True)
        except OSError as error:
            msg = f"{segment.path}: no new segment, so nothing was written: {error}"
            raise AppendRefused(msg) from error
        self.place.descriptors.let_go(segment.path, descriptor)
        return segment

    def take_segment(self, segment: Segment) -> None:
        """Go on in a new segment; the one before is closed by the next sync."""
        self._note_unsynced(self.active)
        self._segments = (*self._segments, segment)
        self.names_are_new = True

    def segment_at(self, base_offset: int, size: int, born_ms: int) -> Segment:
        """Return a segment of this partition with an empty index."""
        segment = Segment(self.folder, base_offset, size, self.place, born_ms=born_ms)
        segment.index = SegmentIndex(base_offset, self.place.settings.index_interval_bytes)
        return segment

    def blocking_save_epochs(self, epochs: EpochStarts) -> None:
        self.place.disk.replace_file(
            self.folder / EPOCH_CHECKPOINT,
            format_epochs(epochs.entries),
            sync=self.place.settings.sync is not SyncPolicy.NEVER,
        )

    def _refused(self, append: StoredAppend, error: OSError) -> AppendRefused:
        msg = f"{append.segment.path}: nothing written at offset {append.base_offset}: {error}"
        return AppendRefused(msg)

    # syncing

    def sync_work(self) -> SyncWork | None:
        """Return the files to sync so that all written bytes are durable, or None."""
        active = self.active
        closed = tuple(segment for segment in self._unsynced if segment is not active)
        is_unsynced = bool(self._unsynced) and self._unsynced[-1] is active
        if not self._unsynced and not self.names_are_new:
            return None
        return SyncWork(self.end(), closed, active if is_unsynced else None, self.names_are_new)

    def blocking_sync(self, work: SyncWork) -> list[Segment]:
        """Force out *work*, oldest first; return the closed segments that got their indexes."""
        disk, descriptors = self.place.disk, self.place.descriptors
        for segment in (*work.closed, *([work.active] if work.active else ())):
            descriptor = descriptors.hold(segment.path)
            try:
                disk.sync(descriptor)
                is_there = disk.is_at(descriptor, segment.path)
            finally:
                descriptors.let_go(segment.path, descriptor)
            if not is_there:
                raise FileNotFoundError(ENOENT, "was removed or moved while in use", segment.path)
        if work.names_are_new:
            descriptors.sync_folder(self.folder)
            descriptors.sync_folder(self.folder.parent)
        sealed: list[Segment] = []
        for segment in work.closed:
            try:
                segment.write_index()
            except OSError as error:
                _log.warning("%s: index not written: %s", segment.path, error)
                break
            sealed.append(segment)
        return sealed

    def blocking_missing(self) -> Path | None:
        """Return a segment's file that is not in the folder any more; `None` where all are."""
        try:
            names = self.place.disk.sizes(self.folder)
        except FileNotFoundError:
            return self.folder
        for segment in self._segments:
            if segment.path.name not in names:
                return segment.path
        return None if self.active.is_in_place() else self.active.path

    def blocking_seal(self) -> None:
        """Write the active segment's indexes, as a clean end leaves them."""
        active = self.active
        if active.index is not None:
            active.index.note_time()
            if not active.has_index_files():
                active.write_index()

    def take_sync(self, work: SyncWork, sealed: Sequence[Segment]) -> None:
        """Note that *work* is done, and that the indexes of *sealed* are on disk."""
        self.recovery_point = max(self.recovery_point, work.end.next_offset)
        for segment in sealed:
            if segment.index is not None:
                segment.use_stored_index()
        done = {id(segment) for segment in sealed}
        if work.active is not None and self.end() == work.end:
            done.add(id(work.active))
        self._unsynced = [segment for segment in self._unsynced if id(segment) not in done]
        if work.names_are_new and self.active.base_offset == work.end.base_offset:
            self.names_are_new = False

    def _note_unsynced(self, segment: Segment) -> None:
        if not self._unsynced or self._unsynced[-1] is not segment:
            self._unsynced.append(segment)

    # following another process

    def take_news(self, news: FolderNews) -> None:
        """Take in what the owner of the folder has written and deleted; for a read-only store."""
        for segment, notes, stop, next_offset in news.grown:
            if segment is not self.active:
                self._segments = (*self._segments, segment)
            assert segment.index is not None, segment  # that of an active one is in memory
            for note in notes:
                segment.index.note(*note)
            segment.size, self.next_offset = stop, next_offset
        if news.gone_count:
            self.drop_first(news.gone_count)
        self.log_start = min(max(self.log_start, news.log_start), self.next_offset)

    # deleting from the front

    def blocking_expired(self, now_ms: int) -> int:
        """Count the expired segments; an unsynced one stays."""
        settings = self.place.settings
        unsynced = {id(segment) for segment in self._unsynced}
        closed: list[ClosedSegment] = []
        for segment, behind in pairwise(self._segments):
            if id(segment) in unsynced:
                break
            newest_ms = segment.newest_ms() if settings.retention_ms is not None else now_ms
            closed.append(ClosedSegment(behind.base_offset, segment.size, newest_ms))
        return expired_count(
            closed,
            self.active.size,
            log_start=self.log_start,
            now_ms=now_ms,
            retention_bytes=settings.retention_bytes,
            retention_ms=settings.retention_ms,
        )

    def drop_first(self, count: int) -> tuple[Segment, ...]:
        """Take the first *count* segments out of the log; their files are still there."""
        dropped = self._segments[:count]
        self._segments = self._segments[count:]
        self.log_start = max(self.log_start, self._segments[0].base_offset)
        return dropped

    def blocking_remove(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            for suffix in (LOG, *COMPANIONS):
                path = segment.file(suffix)
                self.place.descriptors.forget(path)
                self.place.disk.remove(path)
            self.place.loaded.drop(segment.path)
