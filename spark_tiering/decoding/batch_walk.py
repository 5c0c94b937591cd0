"""The batch walk over lengths and sums; all headers are judged at once, and no record is opened."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import google_crc32c
import numpy as np
import numpy.typing as npt

from rlmm.records.damage import DamagedBatch
from rlmm.records.header import (
    CRC_FROM,
    HEADER_BYTES,
    LENGTH_FROM,
    LENGTH_MIN,
    MAGIC,
    OFFSET_MAX,
    judge_start,
)
from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind

if TYPE_CHECKING:
    from spark_tiering.decoding.options import DecodingOptions

Int64s: TypeAlias = npt.NDArray[np.int64]

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17

_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("base_time", ">i8"),
        ("max_time", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_HEADER_AT: Final = np.arange(HEADER_BYTES, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Batches at bytes [start, stop) of a window, one row each, in the order of the log."""

    start: Int64s
    stop: Int64s
    base_offset: Int64s
    last_offset: Int64s
    attributes: Int64s
    base_time: Int64s
    max_time: Int64s
    producer_id: Int64s
    count: Int64s

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: npt.NDArray[np.bool_] | slice) -> BatchTable:
        return BatchTable(
            self.start[mask],
            self.stop[mask],
            self.base_offset[mask],
            self.last_offset[mask],
            self.attributes[mask],
            self.base_time[mask],
            self.max_time[mask],
            self.producer_id[mask],
            self.count[mask],
        )


@dataclass(frozen=True, slots=True)
class WalkedBatches:
    """The batches of a window up to byte *stop*: its end, an incomplete batch, or a fault."""

    table: BatchTable
    stop: int
    fault: DecodingFault | None
    is_zeros: bool
    """Nothing but zeros from *stop* on: no batch begins so."""


def walk_window(
    data: bytes, size: int, wanted: DecodingOptions, position: int, previous_offset: int
) -> WalkedBatches:
    """Walk *size* bytes of *data*, at byte *position* of the log, behind *previous_offset*."""
    starts, stop, fault, is_zeros = _find_starts(data, size, wanted, position)
    start = np.array(starts, dtype=np.int64)
    table = _table_of(data, start, stop)
    judged = _judge(table, wanted, position, previous_offset)
    if judged is None:
        return WalkedBatches(table, stop, fault, is_zeros)
    good, fault = judged
    return WalkedBatches(table.where(slice(0, good)), int(table.start[good]), fault, is_zeros=False)


def _find_starts(
    data: bytes, size: int, wanted: DecodingOptions, position: int
) -> tuple[list[int], int, DecodingFault | None, bool]:
    starts: list[int] = []
    length_max = wanted.batch_bytes_max - LENGTH_FROM
    checks_crc, crc32c = wanted.checks_crc, google_crc32c.value
    length_of, crc_of = _LENGTH.unpack_from, _CRC.unpack_from
    start, last = 0, size - HEADER_BYTES
    while start <= last:
        length: int = length_of(data, start + _LENGTH_AT)[0]
        if data[start + _MAGIC_AT] != MAGIC or not LENGTH_MIN <= length <= length_max:
            fault = _no_batch(data[start:size], wanted, position + start)
            return starts, start, fault, fault is None
        stop = start + LENGTH_FROM + length
        if stop > size:
            break
        if checks_crc and crc32c(data[start + CRC_FROM : stop]) != crc_of(data, start + _CRC_AT)[0]:
            return starts, start, _crc_fault(data, start, stop, position), False
        starts.append(start)
        start = stop
    return starts, start, None, False


def _crc_fault(data: bytes, start: int, stop: int, position: int) -> DecodingFault:
    (crc,) = _CRC.unpack_from(data, start + _CRC_AT)
    detail = f"CRC-32C of {stop - start - CRC_FROM} bytes is not {crc:08x}"
    offset = int.from_bytes(data[start : start + _LENGTH_AT], "big", signed=True)
    return DecodingFault(DecodingFaultKind.CRC_MISMATCH, position + start, max(offset, -1), detail)


def _no_batch(rest: bytes, wanted: DecodingOptions, position: int) -> DecodingFault | None:
    found = judge_start(rest, 0, wanted.batch_bytes_max)
    if isinstance(found, DamagedBatch):
        kind = DecodingFaultKind(found.reason.value)
        return DecodingFault(kind, position, max(found.base_offset, -1), found.detail)
    if found.is_zeros:
        return None
    detail = f"magic {rest[_MAGIC_AT]}, expected {MAGIC}"
    return DecodingFault(DecodingFaultKind.OLD_FORMAT, position, -1, detail)


def _table_of(data: bytes, start: Int64s, stop: int) -> BatchTable:
    window = np.frombuffer(data, dtype=np.uint8)
    header = window[start[:, None] + _HEADER_AT].view(_HEADER)[:, 0]
    base_offset = _int64(header["base_offset"])
    return BatchTable(
        start,
        np.append(start[1:], stop)[: len(start)],
        base_offset,
        base_offset + _int64(header["last_delta"]),
        _int64(header["attributes"]),
        _int64(header["base_time"]),
        _int64(header["max_time"]),
        _int64(header["producer_id"]),
        _int64(header["count"]),
    )


def _int64(column: npt.NDArray[np.generic]) -> Int64s:
    return column.astype(np.int64)


def _judge(
    table: BatchTable, wanted: DecodingOptions, position: int, previous_offset: int
) -> tuple[int, DecodingFault] | None:
    base, last = table.base_offset, table.last_offset
    # A last offset beyond int64 has wrapped round, and lies below the base offset.
    unsound = (base < 0) | (last < base) | (last > OFFSET_MAX)
    unordered = base <= np.append(previous_offset, last[:-1])[: len(base)]
    outside = np.zeros(len(base), dtype=np.bool_)
    if wanted.log_offsets is not None:
        first, end = wanted.log_offsets
        outside = (base < first) | (last > end)
    bad = unsound | (table.count < 0) | unordered | outside
    if not bad.any():
        return None
    at = int(bad.argmax())
    offsets = f"offsets {base[at]} to {last[at]}"
    if unsound[at]:
        kind, detail = DecodingFaultKind.BAD_OFFSETS, f"{offsets} are no range"
    elif table.count[at] < 0:
        kind, detail = DecodingFaultKind.BAD_RECORD_COUNT, f"{table.count[at]} records"
    elif outside[at]:
        kind, detail = (
            DecodingFaultKind.BATCH_OUTSIDE,
            f"{offsets}, the log has {wanted.log_offsets}",
        )
    else:
        before = last[at - 1] if at else previous_offset
        kind, detail = DecodingFaultKind.BATCH_OUT_OF_ORDER, f"{offsets} behind offset {before}"
    offset = int(base[at]) if base[at] >= 0 else -1
    return at, DecodingFault(kind, position + int(table.start[at]), offset, detail)
