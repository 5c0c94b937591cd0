"""Blocks, images and trailer of a snapshot: writing and refusals."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import tracemalloc
from typing import TYPE_CHECKING

import cramjam
import pytest

from rlmm.errors import SnapshotCorrupt, SnapshotError
from rlmm.metadata.varint import encode_varint
from rlmm.snapshot.decoding import SnapshotReader, verify
from rlmm.snapshot.encoding import encode
from rlmm.snapshot.format import BLOCK_BYTES_MAX, SnapshotHeader, encode_header
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engine.snapshots import (
    HISTORY,
    IDENTITY,
    file_of,
    header_of,
    images_of,
    read_back,
    segments,
    shard_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.metadata.events import Event

SHARD_EVENTS = segments(5)
STORED, ZSTD = 1, 2


def block(kind: int, content: bytes, inflated: int | None = None, size: int | None = None) -> bytes:
    head = struct.pack(
        ">BII",
        kind,
        len(content) if inflated is None else inflated,
        len(content) if size is None else size,
    )
    return head + content


def zstd(content: bytes) -> bytes:
    packed = bytes(cramjam.zstd.compress(content, level=1))
    return block(ZSTD, packed, len(content))


def image(key: bytes, body: bytes = b"body") -> bytes:
    content = encode_varint(len(key)) + key + body
    return struct.pack(">I", len(content)) + content


def sealed(body: bytes, users: int, trailer: tuple[int, int] | None = None) -> bytes:
    content = encode_header(SnapshotHeader(IDENTITY, 3, 10, HISTORY, users, 0)) + body
    if trailer is not None:
        content += struct.pack(">BIQ", 0, *trailer)
    return content + hashlib.sha256(content).digest()


def of_blocks(*blocks: bytes, users: int, inflated: int) -> bytes:
    return sealed(b"".join(blocks), users, (len(blocks), inflated))


def stored(content: bytes, users: int) -> bytes:
    return of_blocks(block(STORED, content), users=users, inflated=len(content))


def test_file_when_the_shard_is_empty_then_has_no_blocks() -> None:
    """A metadata partition without an event has a snapshot, too."""
    shard = shard_of([])
    content = file_of(shard)
    assert read_back(content) == (header_of(shard), [])
    assert len(content) == len(encode_header(header_of(shard))) + 13 + 32


def test_file_when_an_image_is_larger_than_a_block_then_goes_on_in_the_next() -> None:
    """The size of a user partition is not bounded by that of a block."""
    user = tp()
    events: list[Event] = [
        started(segment_id(1, user), custom_metadata=os.urandom(3_000_000)),
        finished(segment_id(1, user), custom_metadata=os.urandom(3_000_000)),
    ]
    shard = shard_of(events)
    content = file_of(shard)
    assert len(content) > 2 * BLOCK_BYTES_MAX
    assert read_back(content)[1] == images_of(shard)


def test_file_when_images_compress_then_is_smaller_than_they_are() -> None:
    """Blocks are compressed."""
    shard = shard_of(segments(2_000))
    assert len(file_of(shard)) < 0.6 * sum(map(len, images_of(shard)))


def test_file_when_an_image_would_shrink_to_nothing_then_stays_readable() -> None:
    """An image that compresses beyond the reader's limit is stored uncompressed."""
    shard = shard_of([started(segment_id(1), custom_metadata=bytes(2_000_000))])
    content = file_of(shard)
    assert len(content) > 1_000_000
    assert read_back(content)[1] == images_of(shard)


def test_file_when_it_is_written_then_images_are_made_one_at_a_time() -> None:
    """The next image is made when the one before it is written, so they are never all there."""
    made: list[int] = []

    def part(number: int) -> Callable[[], bytes]:
        def make() -> bytes:
            made.append(number)
            return image(bytes([number]), os.urandom(2_000))[4:]

        return make

    chunks = encode(
        SnapshotHeader(IDENTITY, 3, 0, HISTORY, 50, 0),
        [part(number) for number in range(50)],
        1_000,
    )
    next(chunks)
    assert made == []
    for _ in range(10):
        next(chunks)
    assert len(made) == 5


@pytest.mark.parametrize("count", [2, 4], ids=["too few", "too many"])
def test_file_when_there_are_not_as_many_images_as_said_then_is_not_written(count: int) -> None:
    """A header that does not tell the truth is not sealed."""
    parts = [lambda: image(b"a")[4:], lambda: image(b"b")[4:], lambda: image(b"c")[4:]]
    with pytest.raises(SnapshotError, match=r"3 user partitions, expected are \d"):
        list(encode(SnapshotHeader(IDENTITY, 3, 0, HISTORY, count, 0), parts))


A, B = image(b"a"), image(b"b")
TWO = A + B


@pytest.mark.parametrize(
    ("content", "named"),
    [
        pytest.param(of_blocks(block(3, TWO), users=2, inflated=20), "kind 3", id="kind"),
        pytest.param(
            of_blocks(block(STORED, TWO, 19), users=2, inflated=19), "inflates to 19", id="stored"
        ),
        pytest.param(stored(b"", 0), "0 bytes", id="empty block"),
        pytest.param(
            sealed(block(STORED, TWO, 2**20 + 1), 2), "1048577", id="block above the limit"
        ),
        pytest.param(
            stored(bytes(2**20 + 1), 0), "1048577 bytes", id="whole block above the limit"
        ),
        pytest.param(
            sealed(block(STORED, TWO, 2**20, 2**20), 2), "1048576 bytes", id="block beyond the file"
        ),
        pytest.param(
            sealed(block(ZSTD, TWO, 2**32 - 1, 2**32 - 1), 2), "4294967295", id="largest numbers"
        ),
        pytest.param(
            of_blocks(block(ZSTD, b"nothing that zstd made", 64), users=1, inflated=64),
            "cannot be inflated",
            id="no zstd",
        ),
        pytest.param(
            of_blocks(block(ZSTD, zstd(TWO)[9:], 40), users=2, inflated=40),
            "inflates to 20 bytes",
            id="inflates to less",
        ),
        pytest.param(
            of_blocks(block(ZSTD, zstd(bytes(200))[9:], 100), users=1, inflated=100),
            "cannot be inflated",
            id="inflates to more",
        ),
        pytest.param(
            of_blocks(zstd(bytes(100_000)), users=1, inflated=100_000),
            "that inflates to 100000",
            id="inflates too far",
        ),
        pytest.param(stored(B + A, 2), "behind the last", id="order"),
        pytest.param(stored(A + A, 2), "behind the last", id="twice"),
        pytest.param(stored(b"\x00\x00\x00\x02\x05a", 1), "no key", id="key beyond its image"),
        pytest.param(
            stored(b"\x00\x00\x00\x06" + b"\xff" * 6, 1), "no key", id="key without an end"
        ),
        pytest.param(stored(bytes(4), 1), "0 bytes", id="empty image"),
        pytest.param(
            stored(b"\xff\xff\xff\xff" + A, 1),
            "image of 4294967295 bytes",
            id="image above the limit",
        ),
        pytest.param(
            stored(b"\x7f\xff\xff\xff" + A, 1),
            "image of 2147483647 bytes",
            id="image beyond the file",
        ),
        pytest.param(stored(TWO, 1), "expected are 1", id="one too many"),
        pytest.param(stored(TWO, 3), "expected are 3", id="one missing"),
        pytest.param(
            stored(TWO + b"\x00\x00\x00\x05\x01", 2), "5 bytes of another", id="half an image"
        ),
        pytest.param(sealed(block(STORED, TWO), 2, (2, 20)), "trailer", id="blocks miscounted"),
        pytest.param(sealed(block(STORED, TWO), 2, (1, 21)), "trailer", id="bytes miscounted"),
        pytest.param(sealed(block(STORED, TWO), 2), "wants 9 bytes, 0 are left", id="no trailer"),
        pytest.param(
            sealed(block(STORED, TWO) + struct.pack(">BIQ", 0, 1, 20) + b"x", 2),
            "1 bytes behind the end",
            id="something behind the trailer",
        ),
    ],
)
def test_f10_file_when_its_content_cannot_be_then_is_corrupt(content: bytes, named: str) -> None:
    """Impossible contents with a fitting digest are refused by name."""
    verify(io.BytesIO(content).read, len(content))  # the digest alone does not tell
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotCorrupt, match=named):
            list(SnapshotReader(io.BytesIO(content).read, len(content)).images())
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


def test_f10_file_when_it_is_a_bomb_then_holds_little_before_it_is_refused() -> None:
    """An image that claims 2 GiB gets at most 64 times the bytes that are left, block by block."""
    content = of_blocks(
        *[zstd(b"\x7f\xff\xff\xff" + os.urandom(20_000) + bytes(80_000))] * 3,
        users=1,
        inflated=3 * 100_004,
    )
    with pytest.raises(SnapshotCorrupt, match="image of 2147483647 bytes"):
        list(SnapshotReader(io.BytesIO(content).read, len(content)).images())


WHOLE = file_of(shard_of(SHARD_EVENTS))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(WHOLE[:-3], id="last three bytes cut"),
        pytest.param(WHOLE[: len(WHOLE) // 2], id="half"),
        pytest.param(WHOLE + b"\x00", id="one byte more"),
        pytest.param(WHOLE + WHOLE, id="twice"),
        pytest.param(os.urandom(500), id="garbage"),
        pytest.param(bytes(10_000), id="zeros"),
        pytest.param(b"RLMMSNAP", id="magic alone"),
    ],
)
def test_f11_file_when_it_is_not_whole_then_is_corrupt(content: bytes) -> None:
    """Absence of bytes, bytes too many and other bytes are one named error, before any image."""
    with pytest.raises(SnapshotCorrupt):
        verify(io.BytesIO(content).read, len(content))


def test_file_when_it_shrinks_while_it_is_read_then_is_corrupt() -> None:
    """A size that was true when the file was opened is not believed afterwards."""
    with pytest.raises(SnapshotCorrupt, match="longer when it was opened"):
        verify(io.BytesIO(WHOLE[:-40]).read, len(WHOLE))


def test_f8_file_when_it_changes_between_the_passes_then_the_second_refuses_it() -> None:
    """The digest is checked again by the pass that reads the images."""
    changed = bytearray(WHOLE)
    changed[-40] ^= 1
    with pytest.raises(SnapshotCorrupt):
        list(SnapshotReader(io.BytesIO(bytes(changed)).read, len(changed)).images())
