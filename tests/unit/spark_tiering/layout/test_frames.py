"""Frames and digests: written and read, ours or others', never beyond a limit."""

from __future__ import annotations

import hashlib
import random

import cramjam
import pytest
import zstandard

from rlmm.records.compression import Compression, DecompressionFault, inflate
from spark_tiering.layout.digests import (
    StreamDigest,
    continued_crc64nvme,
    crc64nvme_text,
    digest_of,
    parse_crc64nvme,
)
from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.frames import (
    FrameWriter,
    ZstdFrameReader,
    inflate_frame,
    inflate_frame_up_to,
)
from tests.support.memory import memory_below
from tests.support.stores.findings import assert_finding

CONTENT = b"record batches, record batches, record batches" * 100
FRAME = FrameWriter().frame(CONTENT)


def test_frame_when_written_says_its_size_and_has_a_checksum() -> None:
    """A frame states its size, without which the plugin refuses it, and has a checksum."""
    parameters = zstandard.get_frame_parameters(FRAME)
    assert parameters.content_size == len(CONTENT)
    assert parameters.has_checksum
    assert FrameWriter().frame(memoryview(CONTENT)) == FRAME
    assert inflate_frame(FRAME, len(CONTENT), "chunk 0") == CONTENT
    assert inflate_frame_up_to(FRAME, len(CONTENT), "chunk 0") == CONTENT
    assert inflate_frame(FrameWriter().frame(b""), 0, "chunk 0") == b""


UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(CONTENT)
DAMAGED = {
    "nothing": b"",
    "no frame": b"not a frame of zstd",
    "cut in its header": FRAME[:5],
    "cut at its end": FRAME[:-1],
    "a byte behind it": FRAME + b"\0",
    "two frames": FRAME + FRAME,
    "another checksum": FRAME[:-1] + b"\0",
    "size not said": UNSIZED,
    "a frame to be skipped": b"\x50\x2a\x4d\x18" + len(CONTENT).to_bytes(4, "little") + CONTENT,
}


@pytest.mark.parametrize("frame", DAMAGED.values(), ids=DAMAGED)
def test_frame_that_is_not_what_was_stored_is_a_finding(frame: bytes) -> None:
    """A read of any bytes as a frame gives the stored content or a finding that names the chunk."""
    assert_finding(inflate_frame(frame, len(CONTENT), "chunk 7"), LayoutFault.DAMAGED, "chunk 7")
    assert_finding(inflate_frame(FRAME, len(CONTENT) + 1, "chunk 7"), LayoutFault.LENGTH, "chunk 7")


def test_frame_that_holds_too_much_is_not_inflated() -> None:
    """A frame whose header declares more than the limit is refused before it is inflated."""
    bomb = FrameWriter().frame(bytes(64 * 1024 * 1024))
    assert len(bomb) < 10_000
    with memory_below(1024 * 1024):
        exact = inflate_frame(bomb, 1000, "chunk 0")
        most = inflate_frame_up_to(bomb, 10 * 1024 * 1024, "sizes")
    assert_finding(exact, LayoutFault.LENGTH)
    assert_finding(most, LayoutFault.TOO_LARGE)


def test_frame_that_says_less_than_it_holds_is_not_inflated_beyond_it() -> None:
    """A frame with a false header is not inflated beyond its declared size."""
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(60_000)))
    at = frame.index((60_000 - 256).to_bytes(2, "little"))
    frame[at : at + 2] = (1000 - 256).to_bytes(2, "little")
    assert_finding(inflate_frame(bytes(frame), 1000, "chunk 0"), LayoutFault.DAMAGED)


SAMPLE = random.Random(1).randbytes(3_000) + b"again and again " * 20_000
WRITERS = {
    "with its size": zstandard.ZstdCompressor(),
    "without": zstandard.ZstdCompressor(write_content_size=False),
    "with a checksum": zstandard.ZstdCompressor(write_content_size=False, write_checksum=True),
}
FRAMES = {name: writer.compress(SAMPLE) for name, writer in WRITERS.items()}
FRAMES["of a stream"] = bytes(cramjam.zstd.compress(SAMPLE))
LIMIT = 1 << 20


@pytest.mark.parametrize("name", FRAMES)
def test_frame_when_it_is_whole_then_its_content_is_read(name: str) -> None:
    """A whole frame is read, however it was written, by a reader that is used again."""
    reader = ZstdFrameReader()
    for _ in range(2):
        assert reader.content(memoryview(FRAMES[name]), LIMIT) == SAMPLE


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
    assert reader.content(memoryview(frame), LIMIT) == SAMPLE


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


CHECK = b"123456789"
CHECK_CRC = 0xAE8B14860A799888
"""The check value of CRC-64/NVME in the catalogues."""


def test_digest_of_the_check_text_when_asked_is_the_known_one() -> None:
    """The digest of the check text is the known value in the stores' form."""
    digest = digest_of(CHECK)
    assert digest == (9, hashlib.sha256(CHECK).digest(), CHECK_CRC)
    assert digest.crc64nvme_text == "rosUhgp5mIg="
    assert digest_of(b"").crc64nvme == 0


def test_digest_when_bytes_come_in_pieces_is_that_of_the_whole() -> None:
    """A digest does not depend on the pieces of its source."""
    stream = StreamDigest()
    for piece in (CHECK[:1], b"", memoryview(CHECK)[1:5], CHECK[5:]):
        stream.add(piece)
    assert stream.digest() == digest_of(CHECK)
    assert continued_crc64nvme(continued_crc64nvme(0, CHECK[:5]), CHECK[5:]) == CHECK_CRC


@pytest.mark.parametrize("text", ["", "rosUhgp5mI", "rosUhgp5mA==", "r sUhgp5mIg=", "é" * 12])
def test_sum_that_is_none_when_parsed_is_nothing(text: str) -> None:
    """A store's checksum in another form counts as no checksum."""
    assert parse_crc64nvme(text) is None
    assert parse_crc64nvme(crc64nvme_text(CHECK_CRC)) == CHECK_CRC
