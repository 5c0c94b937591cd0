"""
The compression of record batches, by four codecs; no output of reading passes its limit.

gzip is bounded through zlib; snappy by its length preamble, checked against the limit and the most
that the block can stand for; lz4 and zstd by a buffer of ours that grows up to the limit, whatever
size their frames announce. zstd's own window, at most 128 MiB of address space, comes on top.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import cramjam

from rlmm.records.damage import DamageReason

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

INFLATED_BYTES_MAX = 64 * 1024 * 1024
"""
Largest records part that a reader inflates by default; usual batches stay below a tenth of it.
Values as objects can take seven times as much.
"""

_T = TypeVar("_T")

_GZIP_WBITS = 31
# Producers write one; the bound keeps a batch of tiny members from costing their square.
_GZIP_MEMBERS_MAX = 64

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
# A copy of 64 bytes takes 3: no block stands for more than 64/3 times its size.
_SNAPPY_RATIO_MAX = 22

_GZIP_STEP_BYTES = 1024 * 1024
"""Inflated in some 3 ms; the other codecs inflate all that is allowed within 12 ms."""

_GROWTH_FIRST = 8
_GROWTH = 4
_BUFFER_BYTES_MIN = 4096


class Compression(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True)
class DecompressionFault:
    reason: DamageReason
    detail: str


def inflate(
    compression: Compression, section: memoryview, inflated_bytes_max: int = INFLATED_BYTES_MAX
) -> bytes | bytearray | memoryview | DecompressionFault:
    """Decompress *section* into at most *inflated_bytes_max* bytes; a failure is a value."""
    return last_of(inflating(compression, section, inflated_bytes_max))


def inflating(
    compression: Compression, section: memoryview, inflated_bytes_max: int
) -> Generator[None, None, bytes | bytearray | memoryview | DecompressionFault]:
    """Decompress as `inflate` does, and pause between steps of some milliseconds."""
    if compression is Compression.NONE:
        return section
    if compression is Compression.GZIP:
        return (yield from _inflating_gzip(section, inflated_bytes_max))
    return _INFLATE[compression](section, inflated_bytes_max)


def last_of(steps: Generator[None, None, _T]) -> _T:
    """Take all *steps* at once; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: _T = end.value
            return result


def deflate(compression: Compression, section: bytes) -> bytes:
    """Compress *section* as Kafka's producers do, equal input to equal bytes."""
    if compression is Compression.NONE:
        return section
    return _DEFLATE[compression](section)


def _too_large(inflated_bytes_max: int) -> DecompressionFault:
    return DecompressionFault(
        DamageReason.INFLATED_TOO_LARGE, f"inflates beyond the limit of {inflated_bytes_max} bytes"
    )


def _bad(detail: str) -> DecompressionFault:
    return DecompressionFault(DamageReason.BAD_COMPRESSION, detail)


def _inflating_gzip(
    section: memoryview, limit: int
) -> Generator[None, None, bytearray | DecompressionFault]:
    inflated = bytearray()
    rest: bytes | memoryview = section
    for _ in range(_GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(_GZIP_WBITS)
        while not member.eof:
            before = len(inflated)
            try:
                inflated += member.decompress(rest, min(limit - before + 1, _GZIP_STEP_BYTES))
            except zlib.error as error:
                return _bad(f"gzip: {error}")
            if len(inflated) > limit:
                return _too_large(limit)
            rest = member.unconsumed_tail
            if len(inflated) == before and not rest and not member.eof:
                return _bad("gzip: cut off")
            yield
        rest = member.unused_data
        if not rest:
            return inflated
    return _bad(f"gzip: more than {_GZIP_MEMBERS_MAX} members")


def _inflate_snappy(section: memoryview, limit: int) -> bytes | bytearray | DecompressionFault:
    if section[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _inflate_snappy_block(section, limit)
    inflated = bytearray()
    position = len(_XERIAL_HEADER)
    if position > len(section):
        return _bad(f"snappy: cut off in the stream header, {len(section)} bytes")
    while position < len(section):
        if position + 4 > len(section):
            return _bad("snappy: cut off in a block length")
        size = int.from_bytes(section[position : position + 4], "big", signed=True)
        start, position = position + 4, position + 4 + size
        if size < 0 or position > len(section):
            return _bad(f"snappy: block of {size} bytes at {start} of {len(section)}")
        block = _inflate_snappy_block(section[start:position], limit - len(inflated))
        if isinstance(block, DecompressionFault):
            return block
        inflated += block
    return inflated


def _inflate_snappy_block(block: memoryview, limit: int) -> bytes | DecompressionFault:
    try:
        claimed = cramjam.snappy.decompress_raw_len(block)
        if claimed > len(block) * _SNAPPY_RATIO_MAX:
            return _bad(f"snappy: block of {len(block)} bytes claims to hold {claimed}")
        if claimed > limit:
            return _too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        return _bad(str(error))


def _inflate_lz4(section: memoryview, limit: int) -> memoryview | DecompressionFault:
    return _inflate_growing(cramjam.lz4.decompress_into, section, limit)


def _inflate_zstd(section: memoryview, limit: int) -> memoryview | DecompressionFault:
    return _inflate_growing(cramjam.zstd.decompress_into, section, limit)


def _inflate_growing(
    decompress_into: Callable[[memoryview, bytearray], int], section: memoryview, limit: int
) -> memoryview | DecompressionFault:
    size = min(max(_BUFFER_BYTES_MIN, _GROWTH_FIRST * len(section)), limit)
    while True:
        buffer = bytearray(size)
        try:
            return memoryview(buffer)[: decompress_into(section, buffer)]
        except cramjam.DecompressionError as error:
            # The one message that means "the buffer is full"; the library has no type for it.
            if "write whole buffer" not in str(error):
                return _bad(str(error))
        if size >= limit:
            return _too_large(limit)
        size = min(size * _GROWTH, limit)


def _deflate_gzip(section: bytes) -> bytes:
    member = zlib.compressobj(wbits=_GZIP_WBITS)
    return member.compress(section) + member.flush()


def _deflate_snappy(section: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(section), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(section[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _deflate_lz4(section: bytes) -> bytes:
    """Independent blocks: Kafka's reader refuses linked ones."""
    frame = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=False)
    frame.compress(section)
    return bytes(frame.finish())


def _deflate_zstd(section: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(section, level=3))


_INFLATE: dict[
    Compression, Callable[[memoryview, int], bytes | bytearray | memoryview | DecompressionFault]
] = {
    Compression.SNAPPY: _inflate_snappy,
    Compression.LZ4: _inflate_lz4,
    Compression.ZSTD: _inflate_zstd,
}

_DEFLATE: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: _deflate_gzip,
    Compression.SNAPPY: _deflate_snappy,
    Compression.LZ4: _deflate_lz4,
    Compression.ZSTD: _deflate_zstd,
}
