"""
The scan of a `.log` file: by heads to find a place, with every CRC for a recovery.

With the native core a recovery takes sound batches in runs, without the interpreter's lock: several
partitions are scanned at once. What a run does not fit is judged batch by batch, as without it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rlmm.partition_log.index import RELATIVE_OFFSET_MAX, SegmentIndex
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedBatch
from rlmm.records.header import (
    BATCH_BYTES_MAX,
    HEADER,
    HEADER_BYTES,
    LENGTH_FROM,
    LENGTH_MIN,
    MAGIC,
    OFFSET_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read = Callable[[int, int], bytes]
    """Returns up to *size* bytes from *position* on."""

_WINDOW_BYTES = 8 * 1024
_CHUNK_BYTES = 1024 * 1024
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8


class BatchHead(NamedTuple):
    """The header of a batch at bytes [position, stop) of its file; its CRC is not checked."""

    position: int
    stop: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int


class BadBatchHead(NamedTuple):
    """Tells where a batch should begin and none does."""

    position: int
    detail: str


def heads(read: Read, position: int, limit: int) -> Iterator[BatchHead | BadBatchHead]:
    """Yield the heads of the batches in [position, limit); `BadBatchHead` comes last, if at all."""
    window, window_at = b"", 0
    while position < limit:
        at = position - window_at
        if at + HEADER_BYTES > len(window):
            window, window_at, at = (
                read(min(_WINDOW_BYTES, limit - position), position),
                position,
                0,
            )
        if len(window) - at < HEADER_BYTES:
            yield BadBatchHead(position, f"{limit - position} bytes are no whole header")
            return
        header = HEADER.unpack_from(window, at)
        base_offset, length, last_offset = header[0], header[1], header[0] + header[6]
        stop = position + LENGTH_FROM + length
        if header[3] != MAGIC or length < LENGTH_MIN or stop > limit:
            yield BadBatchHead(
                position, f"magic {header[3]}, length {length}, limit at byte {limit}"
            )
            return
        if not 0 <= base_offset <= last_offset <= OFFSET_MAX:
            yield BadBatchHead(position, f"offsets {base_offset} to {last_offset}")
            return
        yield BatchHead(position, stop, base_offset, last_offset, header[8], header[2])
        position = stop


class OffsetGap(NamedTuple):
    """Offsets [first_offset, next_offset) that no batch has, before the batch at *position*."""

    position: int
    first_offset: int
    next_offset: int


@dataclass(slots=True)
class ScanResult:
    """
    The result of a scan of one file up to its end, or to *damage*.

    [0, stop) holds whole and sound batches with rising offsets; *next_offset* is after the last.
    """

    index: SegmentIndex
    next_offset: int
    stop: int = 0
    born_ms: int = -1
    """Largest timestamp of the first batch, -1 when it has none."""
    damage: str | None = None
    is_torn: bool = False
    """Whether *damage* is a batch that is not there as a whole."""
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """Leader epochs with the first offset of each, as the batches rise."""
    holes: list[OffsetGap] = field(default_factory=list)
    """Offsets that the batches pass over; compaction leaves such."""

    def enter(self, position: int, base_offset: int, leader_epoch: int) -> None:
        """Note what changes with the batch at *position*: offsets that no batch has, the epoch."""
        if base_offset > self.next_offset:
            self.holes.append(OffsetGap(position, self.next_offset, base_offset))
        if leader_epoch > self.latest_epoch:
            self.epochs.append((leader_epoch, base_offset))

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1


def scan_file(
    read: Read, size: int, base_offset: int, index_interval_bytes: int, *, in_core: bool
) -> ScanResult:
    """
    Check every batch of a file of *size* bytes, up to the first that is not sound; by the native
    core with *in_core*.
    """
    found = ScanResult(SegmentIndex(base_offset, index_interval_bytes), base_offset)
    backwards = scan_on(found, read, size, in_core=in_core)
    if backwards is not None:
        return _before_jump(found, backwards, read, in_core=in_core)
    return found


def scan_on(found: ScanResult, read: Read, size: int, *, in_core: bool = False) -> int | None:
    """Check the batches from where *found* stops; return a base offset that falls, if one does."""
    while found.stop < size and found.damage is None:
        position = found.stop
        chunk = read(min(_CHUNK_BYTES, size - position), position)
        taken = _take_runs(found, chunk) if in_core else 0
        backwards = _take_batches(found, chunk, taken)
        if backwards is not None:
            return backwards
        if found.stop > position or found.damage is not None:
            continue
        whole = _claimed_bytes(chunk)
        if len(chunk) < whole <= size - position and whole <= BATCH_BYTES_MAX:
            _take_batches(found, read(whole, position))
        if found.stop == position and found.damage is None:
            found.damage = f"{size - position} bytes are no whole batch"
            found.is_torn = True
    return None


def _before_jump(found: ScanResult, offset: int, read: Read, *, in_core: bool) -> ScanResult:
    """
    Judge a base offset *offset* that lies below the batches before it.

    No CRC covers base offsets. If the offsets had jumped over it, or if it fits without the jump
    just before it, then it is the jump that was wrong.
    """
    found.damage = f"base offset {offset}, expected {found.next_offset} or more"
    jumps = [hole for hole in found.holes if hole.next_offset > offset]
    if found.holes:
        last = found.holes[-1]
        if found.next_offset - (last.next_offset - last.first_offset) <= offset:
            jumps.append(last)
    if not jumps:
        return found
    position, first_offset, next_offset = jumps[0]
    index = found.index
    found = scan_file(read, position, index.base_offset, index.interval_bytes, in_core=in_core)
    found.damage = f"base offset {next_offset}, expected {first_offset}"
    return found


def _claimed_bytes(chunk: bytes) -> int:
    """Return how many bytes the batch at the start of *chunk* claims; 0 when it does not say."""
    if len(chunk) < LENGTH_FROM:
        return 0
    length: int = _LENGTH.unpack_from(chunk, _LENGTH_AT)[0]
    return LENGTH_FROM + length if length >= LENGTH_MIN else 0


def _take_runs(found: ScanResult, chunk: bytes) -> int:
    """
    Take runs of sound batches at the scan's position, up to one that has to be judged; return how
    many bytes of *chunk* they are.
    """
    from rlmm.records.native_walk import batch_runs  # noqa: PLC0415  # it may not be installed

    position, index = found.stop, found.index
    mark = index.last_indexed - position
    for run in batch_runs(chunk, 0, mark, index.interval_bytes):
        last_offset = run.next_offset - 1
        is_falling = run.base_offset < found.next_offset
        if is_falling or last_offset - index.base_offset > RELATIVE_OFFSET_MAX:
            break
        if found.stop == 0:
            found.born_ms = HEADER.unpack_from(chunk)[8]
        found.enter(found.stop, run.base_offset, run.leader_epoch)
        index.note_run(
            position + run.last_start, last_offset, run.max_timestamp_ms, run.max_timestamp_offset
        )
        found.stop = position + run.stop
        found.next_offset = run.next_offset
    return found.stop - position


def _take_batches(found: ScanResult, chunk: bytes, start: int = 0) -> int | None:
    """
    Take the whole batches of *chunk*, the first at byte *start* and at the scan's position; return
    an offset that falls.
    """
    position = found.stop - start
    note = found.index.note
    epoch = found.latest_epoch
    for batch in walk(chunk, start):
        if not isinstance(batch, Batch):
            if isinstance(batch, DamagedBatch):
                found.damage = f"{batch.reason}: {batch.detail}"
            return None
        if batch.base_offset < found.next_offset:
            return batch.base_offset
        if batch.last_offset - found.index.base_offset > RELATIVE_OFFSET_MAX:
            found.damage = f"base offset {batch.base_offset} cannot be in this segment"
            return None
        if batch.base_offset > found.next_offset or batch.leader_epoch > epoch:
            found.enter(position + batch.start, batch.base_offset, batch.leader_epoch)
            epoch = found.latest_epoch
        if position + batch.start == 0:
            found.born_ms = batch.max_timestamp_ms
        note(position + batch.start, batch.last_offset, batch.max_timestamp_ms)
        found.stop = position + batch.stop
        found.next_offset = batch.next_offset
    return None
