"""
Incoming appends: whole batches, checked before any of them is written. Pure.

Base offset and leader epoch lie outside a batch's CRC: the log writes the first 16 bytes of each
batch anew, and everything behind as it came, uncopied.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.records.batch import Batch, walk
from rlmm.records.header import LENGTH_FROM, OFFSET_MAX

if TYPE_CHECKING:
    from rlmm.partition_log.index import SegmentIndex

_START = struct.Struct(">qii")
_START_BYTES = _START.size


class IncomingBatch(NamedTuple):
    """Holds one checked batch at bytes [start, stop); its own base offset does not matter."""

    start: int
    stop: int
    offset_count: int
    max_timestamp_ms: int


def check_batches(
    record_set: bytes, *, batch_bytes_max: int, verify_crc: bool = True
) -> list[IncomingBatch]:
    """Check that *record_set* is sound batches without holes; else raise `InvalidArgument`."""
    batches: list[IncomingBatch] = []
    for found in walk(record_set, verify_crc=verify_crc):
        if not isinstance(found, Batch):
            msg = f"batch {len(batches)} of the append, at byte {found.start}: {found}"
            raise InvalidArgument(msg)
        offset_count = found.last_offset - found.base_offset + 1
        if found.stop - found.start > batch_bytes_max:
            size = found.stop - found.start
            msg = f"batch {len(batches)} of the append has {size} bytes, allowed {batch_bytes_max}"
            raise InvalidArgument(msg)
        if found.record_count != offset_count:
            raise InvalidArgument(
                f"batch {len(batches)} of the append has {found.record_count} records "
                f"for {offset_count} offsets"
            )
        batches.append(IncomingBatch(found.start, found.stop, offset_count, found.max_timestamp_ms))
    if not batches:
        raise InvalidArgument("an append needs a batch, got 0 bytes")
    return batches


class PlacedBatches(NamedTuple):
    """Batches with the offsets they get; *buffers* together are the bytes to write."""

    buffers: list[bytes | memoryview]
    next_offset: int


def place(
    record_set: bytes, batches: list[IncomingBatch], base_offset: int, leader_epoch: int
) -> PlacedBatches:
    """Give *batches* the offsets from *base_offset* on; only their first 16 bytes are new."""
    view = memoryview(record_set)
    buffers: list[bytes | memoryview] = []
    for start, stop, offset_count, _ in batches:
        buffers.append(_START.pack(base_offset, stop - start - LENGTH_FROM, leader_epoch))
        buffers.append(view[start + _START_BYTES : stop])
        base_offset += offset_count
    if base_offset > OFFSET_MAX + 1:
        msg = f"the last offset would be {base_offset - 1}, the largest is {OFFSET_MAX}"
        raise InvalidArgument(msg)
    return PlacedBatches(buffers, base_offset)


def index_batches(
    index: SegmentIndex, batches: list[IncomingBatch], base_offset: int, position: int
) -> None:
    """Note in *index* the batches that were written at *position*, the first at *base_offset*."""
    for start, stop, offset_count, max_timestamp_ms in batches:
        base_offset += offset_count
        index.note(position, base_offset - 1, max_timestamp_ms)
        position += stop - start
