"""Frames of others: whole ones alone, whether they say their size or not, and within a limit."""

from __future__ import annotations

import random

import cramjam
import pytest
import zstandard

from rlmm.records.compression import Compression, DecompressionFault, inflate
from spark_tiering.layout.frames import ZstdFrameReader
from tests.support.memory import memory_below

CONTENT = random.Random(1).randbytes(3_000) + b"again and again " * 20_000
WRITERS = {
    "with its size": zstandard.ZstdCompressor(),
    "without": zstandard.ZstdCompressor(write_content_size=False),
    "with a checksum": zstandard.ZstdCompressor(write_content_size=False, write_checksum=True),
}
FRAMES = {name: writer.compress(CONTENT) for name, writer in WRITERS.items()}
FRAMES["of a stream"] = bytes(cramjam.zstd.compress(CONTENT))
LIMIT = 1 << 20


@pytest.mark.parametrize("name", FRAMES)
def test_frame_when_it_is_whole_then_its_content_is_read(name: str) -> None:
    """A whole frame is read, however it was written, by a reader that is used again."""
    reader = ZstdFrameReader()
    for _ in range(2):
        assert reader.content(memoryview(FRAMES[name]), LIMIT) == CONTENT


@pytest.mark.parametrize("name", FRAMES)
def test_frame_when_anything_is_unusual_then_nothing_is_read(name: str) -> None:
    """A frame that is cut, followed by more bytes or preceded by others is not read."""
    reader, frame = ZstdFrameReader(), FRAMES[name]
    for size in {0, 1, 3, 4, 5, 9, 12, 13, *range(0, len(frame), 97), len(frame) - 1}:
        assert reader.content(memoryview(frame[:size]), LIMIT) is None
    for behind in (b"\x00", b"12345", frame):
        assert reader.content(memoryview(frame + behind), LIMIT) is None
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert reader.content(memoryview(skippable + frame), LIMIT) is None
    assert reader.content(memoryview(frame), LIMIT) == CONTENT


def test_frame_when_it_says_that_it_is_empty_and_is_not_then_nothing_is_read() -> None:
    """A frame with a wrong empty size, or a dictionary, is not read."""
    frame = bytearray(WRITERS["with its size"].compress(b"0123456789" * 9))
    assert frame[4:6] == bytes((0x20, 90))
    assert ZstdFrameReader().content(memoryview(frame), LIMIT) == b"0123456789" * 9
    with_dictionary = frame[:4] + bytes((0x21, 7)) + frame[5:]
    assert ZstdFrameReader().content(memoryview(with_dictionary), LIMIT) is None
    frame[5] = 0
    assert ZstdFrameReader().content(memoryview(frame), LIMIT) is None


def test_frame_when_it_might_hold_more_than_the_limit_then_nothing_is_allocated() -> None:
    """A frame that may inflate beyond the limit is refused without memory for it."""
    reader = ZstdFrameReader()
    bombs = [writer.compress(bytes(100 << 20)) for writer in WRITERS.values()]
    lying = bytearray(FRAMES["with its size"])
    lying[6:9] = b"\xff\xff\xff"
    with memory_below(100_000):
        for bomb in (*bombs, bytes(lying)):
            assert reader.content(memoryview(bomb), LIMIT) is None


def test_frame_when_bytes_are_damaged_then_content_is_what_the_other_library_reads() -> None:
    """The content of a damaged frame is refused or equals the other library's."""
    chance, reader, read = random.Random(5), ZstdFrameReader(), 0
    small = [writer.compress(b"x" * 300 + bytes(range(200))) for writer in WRITERS.values()]
    for _ in range(6_000):
        frame = bytearray(chance.choice(small))
        for _ in range(chance.choice((0, 1, 1, 2))):
            frame[chance.randrange(len(frame))] = chance.choice((0, 255, chance.randrange(256)))
        frame += chance.choice((b"", b"", b"", b"\x00", small[0]))
        found = reader.content(memoryview(bytes(frame)), LIMIT)
        if found is not None:
            read += 1
            other = inflate(Compression.ZSTD, memoryview(bytes(frame)), LIMIT)
            assert not isinstance(other, DecompressionFault)
            assert bytes(other) == found
    assert read > 500
