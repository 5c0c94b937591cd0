"""The batches of a log file, every CRC checked, in bounded memory. No I/O of its own."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from rlmm.records.batch import Batch, walk
from rlmm.records.control import ControlType, control_type
from rlmm.records.damage import DamagedBatch, DamageReason, PartialTail
from rlmm.records.header import (
    CONTROL_BIT,
    CRC_FROM,
    HEADER,
    LENGTH_FROM,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from rlmm.records.records import Record
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.segments.partition_files import FileStream

LOG_BYTES_MAX = 2**31 - 1
"""Positions in an index are int32, and so is a segment's size in its metadata."""

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_MARKER_VALUE = struct.Struct(">hi")
_MARKER_BYTES_MAX = 64 * 1024
"""A marker has 78 bytes; one that claims to be much more is none."""


class TransactionMarker(NamedTuple):
    """The end of a transaction; *kind* is OTHER where the record is no marker that can be read."""

    kind: ControlType
    coordinator_epoch: int
    timestamp_ms: int


class LogBatch(NamedTuple):
    """A sound batch at bytes [position, position + size) of its file."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    marker: TransactionMarker | None
    """What a control batch says; None where compaction left it empty, and for data."""


class LogWalk:
    """
    Iterates once over a log file; `stop` is the byte behind the last sound batch, `finding` the
    fault there. Offsets lie outside the CRC: each reader compares them with its own position.
    """

    def __init__(self, stream: FileStream) -> None:
        self.stop = 0
        self.finding: SegmentFinding | None = None
        self._stream = stream

    def __iter__(self) -> Iterator[LogBatch]:
        if self._stream.size > LOG_BYTES_MAX:
            self._found(SegmentFindingKind.TOO_LARGE, f"at most {LOG_BYTES_MAX} bytes are read")
        held = b""
        while self.finding is None:
            piece = self._stream.next_piece()
            if not piece:
                self._end(held)
                return
            start = self.stop
            held += piece
            for found in walk(held):
                if not isinstance(found, Batch):
                    self._judge(found)
                    break
                self.stop = start + found.stop
                yield _of_batch(found, start + found.start)
            held = held[self.stop - start :]
            if self._claimed_bytes(held) > self._stream.piece_bytes and self.finding is None:
                large = self._large_batch(held)
                held = b""
                if large is not None:
                    yield large

    def _end(self, held: bytes) -> None:
        if self._stream.finding is not None:
            self.finding = self._stream.finding
        elif held:
            self._found(SegmentFindingKind.TORN, f"the last {len(held)} bytes are no whole batch")

    def _judge(self, found: DamagedBatch | PartialTail) -> None:
        if isinstance(found, DamagedBatch):
            is_old = found.reason is DamageReason.OLD_FORMAT
            kind = SegmentFindingKind.OLD_FORMAT if is_old else SegmentFindingKind.DAMAGED
            self._found(kind, f"{found.reason}: {found.detail}")
        elif found.is_zeros and found.size >= LENGTH_FROM:
            self._judge_zeros()

    def _judge_zeros(self) -> None:
        piece = self._stream.next_piece()
        while piece and piece.count(0) == len(piece):
            piece = self._stream.next_piece()
        if self._stream.finding is not None:
            self.finding = self._stream.finding
        elif piece:
            self._found(SegmentFindingKind.DAMAGED, "zeros where a batch should begin")
        else:
            size = self._stream.size - self.stop
            self._found(SegmentFindingKind.UNTRIMMED, f"the last {size} bytes are zeros")

    def _claimed_bytes(self, held: bytes) -> int:
        if len(held) < self._stream.piece_bytes and self._stream.left:
            # Either it is whole with the next piece, or there is enough of it to be judged then.
            return 0
        if len(held) < HEADER.size:
            return 0
        length: int = _LENGTH.unpack_from(held, _LENGTH_AT)[0]
        return LENGTH_FROM + length

    def _large_batch(self, held: bytes) -> LogBatch | None:
        header = HEADER.unpack_from(held)
        size = LENGTH_FROM + header[1]
        if header[3] != MAGIC:
            # A message of an old format that is not whole here was not judged for that.
            detail = f"{DamageReason.OLD_FORMAT}: magic {header[3]}, expected {MAGIC}"
            self._found(SegmentFindingKind.OLD_FORMAT, detail)
            return None
        if size > self._stream.size - self.stop:
            left = self._stream.size - self.stop
            self._found(SegmentFindingKind.TORN, f"a batch of {size} bytes, {left} are there")
            return None
        crc, left = google_crc32c.value(held[CRC_FROM:]), size - len(held)
        piece_bytes = self._stream.piece_bytes
        while left:
            self._stream.piece_bytes = min(piece_bytes, left)
            piece = self._stream.next_piece()
            if not piece:
                self.finding = self._stream.finding
                return None
            crc = google_crc32c.extend(crc, piece)
            left -= len(piece)
        self._stream.piece_bytes = piece_bytes
        if crc != header[4]:
            self._found(
                SegmentFindingKind.DAMAGED, f"{DamageReason.CRC_MISMATCH}: batch of {size} bytes"
            )
            return None
        position, self.stop = self.stop, self.stop + size
        return _of_header(header, position, size)

    def _found(self, kind: SegmentFindingKind, detail: str) -> None:
        where = f"{self._stream.name}: byte {self.stop} of {self._stream.size}"
        self.finding = SegmentFinding(self._stream.part, kind, f"{where}: {detail}")


def _of_batch(batch: Batch, position: int) -> LogBatch:
    return LogBatch(
        position,
        batch.stop - batch.start,
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.max_timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.is_control,
        _marker(batch) if batch.is_control else None,
    )


def _of_header(header: tuple[int, ...], position: int, size: int) -> LogBatch:
    base_offset, _, leader_epoch, _, _, attributes, last_delta, _, max_ms, *producer, _ = header
    is_control = attributes & CONTROL_BIT != 0
    return LogBatch(
        position,
        size,
        base_offset,
        base_offset + last_delta,
        leader_epoch,
        max_ms,
        producer[0],
        producer[1],
        producer[2],
        attributes & TRANSACTIONAL_BIT != 0,
        is_control,
        TransactionMarker(ControlType.OTHER, -1, max_ms) if is_control else None,
    )


def _marker(batch: Batch) -> TransactionMarker | None:
    unreadable = TransactionMarker(ControlType.OTHER, -1, batch.max_timestamp_ms)
    if batch.stop - batch.start > _MARKER_BYTES_MAX:
        return unreadable
    record = next(batch.records(inflated_bytes_max=_MARKER_BYTES_MAX), None)
    if record is None:
        return None
    if not isinstance(record, Record) or len(record.value or b"") < _MARKER_VALUE.size:
        return unreadable
    kind = control_type(record.key)
    version, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    if version < 0:
        return unreadable
    return TransactionMarker(kind, coordinator_epoch, record.timestamp_ms)
