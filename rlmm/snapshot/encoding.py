"""Encoding of a header and images into a file, one image and one block at a time. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import cramjam

from rlmm.errors import SnapshotError
from rlmm.snapshot.format import (
    BLOCK,
    BLOCK_BYTES_MAX,
    IMAGE_BYTES_MAX,
    INFLATION_MAX,
    KIND_END,
    KIND_STORED,
    KIND_ZSTD,
    LENGTH,
    TRAILER,
    encode_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlmm.snapshot.format import SnapshotHeader

BLOCK_BYTES: Final = 256 * 1024
"""Inflated size of a block, below a millisecond of work; larger ones compress no better."""
LEVEL: Final = 1
"""Of zstd. Ids of segments do not compress, and level 3 saves nothing."""


def encode(
    header: SnapshotHeader, parts: Iterable[Callable[[], bytes]], block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    """
    Yield the file in pieces, each to be written before the next is made. Raises `SnapshotError`
    when there are fewer parts than the header says, or an image is too long for the format.
    """
    assert 0 < block_bytes <= BLOCK_BYTES_MAX, block_bytes
    digest = hashlib.sha256()
    for piece in _undigested(header, parts, block_bytes):
        digest.update(piece)
        yield piece
    yield digest.digest()


def _undigested(
    header: SnapshotHeader, parts: Iterable[Callable[[], bytes]], block_bytes: int
) -> Iterator[bytes]:
    yield encode_header(header)
    blocks = inflated = 0
    for content in _cut(_content(header, parts), block_bytes):
        blocks += 1
        inflated += len(content)
        yield _block(content)
    yield TRAILER.pack(KIND_END, blocks, inflated)


def _content(header: SnapshotHeader, parts: Iterable[Callable[[], bytes]]) -> Iterator[bytes]:
    count = 0
    for part in parts:
        image = part()
        if not 0 < len(image) <= IMAGE_BYTES_MAX:
            msg = (
                f"metadata partition {header.partition}, user partition {count}: an image of "
                f"{len(image)} bytes cannot be stored, the longest has {IMAGE_BYTES_MAX}"
            )
            raise SnapshotError(msg)
        count += 1
        yield LENGTH.pack(len(image))
        yield image
    if count != header.user_partitions:
        msg = (
            f"metadata partition {header.partition}: {count} user partitions, expected are "
            f"{header.user_partitions}"
        )
        raise SnapshotError(msg)


def _cut(content: Iterable[bytes], block_bytes: int) -> Iterator[bytes | bytearray]:
    """Cut pieces into blocks of equal size; only the last may be smaller."""
    block = bytearray()
    for piece in content:
        rest = memoryview(piece)
        while rest:
            taken = rest[: block_bytes - len(block)]
            block += taken
            rest = rest[len(taken) :]
            if len(block) == block_bytes:
                yield block
                block = bytearray()
    if block:
        yield block


def _block(content: bytes | bytearray) -> bytes:
    packed = bytes(cramjam.zstd.compress(content, level=LEVEL))
    if len(packed) < len(content) <= INFLATION_MAX * len(packed):
        return BLOCK.pack(KIND_ZSTD, len(content), len(packed)) + packed
    return BLOCK.pack(KIND_STORED, len(content), len(content)) + content
