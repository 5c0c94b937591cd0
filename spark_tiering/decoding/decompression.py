"""
The decompression of batches into one buffer, no more at a time than a limit, used again.
Uncompressed batches stay where they are in the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import cramjam
import numpy as np

from rlmm.records.compression import Compression, DecompressionFault, inflate
from rlmm.records.header import CODEC_MASK, HEADER_BYTES
from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind
from spark_tiering.decoding.varints import PADDING, VarintBuffer

try:
    # An extra of ours; without it zstd takes the slower way that the service has.
    from spark_tiering.layout.frames import ZstdFrameReader
except ImportError:
    ZstdFrameReader = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spark_tiering.decoding.batch_walk import BatchTable, Int64s

PORTION_BYTES: Final = 8 * 1024 * 1024
"""Enough for a buffer; a batch that is larger by itself has one of its own."""
_BUFFER_BYTES: Final = PORTION_BYTES + 1024 * 1024
_ROOM_BYTES_MIN: Final = 256 * 1024
"""With less room than this a batch that fails is more likely too large than damaged."""

_CODECS: Final = {codec.value: codec for codec in Compression}


class BatchPortion(NamedTuple):
    """Some batches, their records at bytes [start, stop) of the buffer, until the next ones."""

    buffer: VarintBuffer
    table: BatchTable
    first: Int64s
    stop: Int64s


class BatchDecompressor:
    """Makes portions out of batches; one decoder has it, with the buffer that it keeps."""

    def __init__(self, inflated_bytes_max: int) -> None:
        self._limit = inflated_bytes_max
        self._kept = bytearray(0)
        self._frames = None if ZstdFrameReader is None else ZstdFrameReader()

    def portions(
        self, data: bytes, table: BatchTable, position: int
    ) -> Iterator[BatchPortion | DecodingFault]:
        """Yield batches up to one that cannot be inflated; *data* ends with `PADDING`."""
        codecs = (table.attributes & CODEC_MASK).tolist()
        begin = 0
        while begin < len(codecs):
            if codecs[begin] == Compression.NONE:
                end = _end_of_plain(table, codecs, begin)
                yield _plain(data, table.where(slice(begin, end)))
                begin = end
                continue
            stops, fault = self._fill(memoryview(data), table, codecs, begin)
            if stops:
                part = table.where(slice(begin, begin + len(stops)))
                stop = np.array(stops, dtype=np.int64)
                size = stops[-1] + len(PADDING)
                # What stands behind the last batch is looked at and never believed.
                buffer = VarintBuffer(memoryview(self._kept)[:size])
                yield BatchPortion(buffer, part, np.append(0, stop[:-1]), stop)
            if fault is not None:
                at = begin + len(stops)
                where, offset = position + int(table.start[at]), int(table.base_offset[at])
                yield DecodingFault(fault[0], where, offset, fault[1])
                return
            begin += len(stops)

    def _fill(
        self, data: memoryview, table: BatchTable, codecs: list[int], begin: int
    ) -> tuple[list[int], tuple[DecodingFaultKind, str] | None]:
        """Inflate batches from one on until there are enough; return their ends, and a fault."""
        if len(self._kept) < _BUFFER_BYTES:
            self._kept = bytearray(_BUFFER_BYTES)
        ends: list[int] = []
        size = 0
        starts, stops = table.start[begin:].tolist(), table.stop[begin:].tolist()
        for start, stop, number, count in zip(
            starts, stops, codecs[begin:], table.count[begin:].tolist(), strict=True
        ):
            if size >= PORTION_BYTES:
                break
            section = data[start + HEADER_BYTES : stop]
            codec = _CODECS.get(number)
            if codec is None:
                return ends, (DecodingFaultKind.UNKNOWN_COMPRESSION, f"codec id {number}")
            if section or count:
                put = self._put(codec, section, size, is_first=not ends)
                if isinstance(put, DecompressionFault):
                    return ends, (DecodingFaultKind(put.reason.value), put.detail)
                if put is None:
                    break
                size += put
            ends.append(size)
        return ends, None

    def _put(
        self, codec: Compression, section: memoryview, at: int, *, is_first: bool
    ) -> int | DecompressionFault | None:
        """Inflate a batch into the free end of the buffer; None where it has no room for it."""
        room = memoryview(self._kept)[at : len(self._kept) - len(PADDING)][: self._limit]
        quickly = _INTO.get(codec)
        if quickly is not None:
            try:
                return quickly(section, room)
            except cramjam.DecompressionError:
                if not is_first and len(room) < _ROOM_BYTES_MIN:
                    return None
        inflated: bytes | bytearray | memoryview | DecompressionFault | None = None
        if codec is Compression.ZSTD and self._frames is not None:
            inflated = self._frames.content(section, self._limit)
        if inflated is None:
            inflated = inflate(codec, section, self._limit)
        if isinstance(inflated, DecompressionFault):
            return inflated
        if len(inflated) > len(room):
            if not is_first:
                return None
            del room
            self._kept = bytearray(len(inflated) + len(PADDING))
        self._kept[at : at + len(inflated)] = inflated
        return len(inflated)


def _into_gzip(section: memoryview, room: memoryview) -> int:
    return cramjam.gzip.decompress_into(section, room)


def _into_lz4(section: memoryview, room: memoryview) -> int:
    return cramjam.lz4.decompress_into(section, room)


_INTO: Final[dict[Compression, Callable[[memoryview, memoryview], int]]] = {
    Compression.GZIP: _into_gzip,
    Compression.LZ4: _into_lz4,
}


def _end_of_plain(table: BatchTable, codecs: list[int], begin: int) -> int:
    limit = int(table.start[begin]) + PORTION_BYTES
    within = int(np.searchsorted(table.stop, limit, side="right"))
    end = begin + 1
    while end < within and codecs[end] == Compression.NONE:
        end += 1
    return end


def _plain(data: bytes, table: BatchTable) -> BatchPortion:
    begin = int(table.start[0])
    buffer = VarintBuffer(memoryview(data)[begin : int(table.stop[-1]) + len(PADDING)])
    return BatchPortion(buffer, table, table.start + (HEADER_BYTES - begin), table.stop - begin)
