"""Frames: written with size and checksum, and never read beyond their limit."""

from __future__ import annotations

import pytest
import zstandard

from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.frames import FrameWriter, inflate_frame, inflate_frame_up_to
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


def test_frame_of_nothing_when_written_still_says_its_size() -> None:
    """A frame of no bytes states its size."""
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


def test_frame_of_a_byte_less_than_was_stored_is_a_finding() -> None:
    """A frame of another content size than expected is a finding that names the chunk."""
    shorter = FrameWriter().frame(CONTENT[:-1])
    assert_finding(inflate_frame(shorter, len(CONTENT), "chunk 7"), LayoutFault.LENGTH, "chunk 7")


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
