"""The codecs: their input, and the limit of their output."""

from __future__ import annotations

import gzip

import cramjam
import pytest

from rlmm.records import compression as compression_module
from rlmm.records.compression import Compression, DecompressionFault, deflate, inflate
from rlmm.records.damage import DamageReason

CODECS = [pytest.param(codec, id=codec.name.lower()) for codec in Compression if codec]
TEXT = bytes(range(256)) * 40 + bytes(30_000)


def inflated(compression: Compression, section: bytes, limit: int = 1_000_000) -> bytes:
    found = inflate(compression, memoryview(section), limit)
    assert not isinstance(found, DecompressionFault), found
    return bytes(found)


def refused(
    compression: Compression, section: bytes, limit: int = 1_000_000
) -> tuple[DamageReason, str]:
    found = inflate(compression, memoryview(section), limit)
    assert isinstance(found, DecompressionFault)
    return found.reason, found.detail


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("text", [b"", b"x", TEXT, bytes(300_000)], ids=["0", "1", "some", "much"])
def test_inflate_of_what_deflate_made_then_gives_it_back(codec: Compression, text: bytes) -> None:
    """Every codec is its own inverse, at whatever ratio, and equal input gives equal bytes."""
    assert inflated(codec, deflate(codec, text)) == text
    assert deflate(codec, text) == deflate(codec, text)


@pytest.mark.parametrize("text", [TEXT, bytes(900_000)], ids=["usual", "densest"])
def test_snappy_when_one_raw_block_then_is_read(text: bytes) -> None:
    """Some clients write snappy without xerial's framing; the densest honest block is accepted."""
    assert inflated(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(text))) == text
    assert inflated(Compression.SNAPPY, deflate(Compression.SNAPPY, text)) == text


@pytest.mark.parametrize("codec", CODECS)
def test_inflate_at_the_limit_then_passes_and_beyond_is_too_large(codec: Compression) -> None:
    """The limit is the largest size that is still read."""
    section = deflate(codec, TEXT)
    assert inflated(codec, section, len(TEXT)) == TEXT
    assert refused(codec, section, len(TEXT) - 1)[0] is DamageReason.INFLATED_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_inflate_when_cut_anywhere_then_is_refused_or_shorter(codec: Compression) -> None:
    """A cut section is refused or shorter, and never raises another error."""
    section = deflate(codec, TEXT)
    for size in range(0, len(section), 7):
        found = inflate(codec, memoryview(section)[:size], 1_000_000)
        assert isinstance(found, DecompressionFault) or len(found) < len(TEXT)


@pytest.mark.parametrize("codec", CODECS)
def test_inflate_of_another_codecs_bytes_then_is_bad_compression(codec: Compression) -> None:
    """Bytes of the wrong codec are damage, not an exception."""
    for other in Compression:
        if other is not codec:
            reason, detail = refused(codec, deflate(other, TEXT))
            assert reason is DamageReason.BAD_COMPRESSION
            assert detail


def test_inflate_when_not_compressed_then_is_the_section_itself() -> None:
    """Codec none copies nothing."""
    section = memoryview(TEXT)
    assert inflate(Compression.NONE, section) is section
    assert deflate(Compression.NONE, TEXT) is TEXT


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\x00", id="cut-length"),
        pytest.param(b"\xff\xff\xff\xff", id="negative-length"),
        pytest.param(b"\x00\x00\x00\x00", id="empty-block"),
        pytest.param(b"\x7f\xff\xff\xff\x00", id="absurd-length"),
        pytest.param(b"\x00\x00\x00\x05\xff\xff\xff\xff\x0f", id="claims-4-gib"),
        pytest.param(b"\x00\x00\x00\x01\x80", id="cut-preamble"),
    ],
)
def test_snappy_when_a_block_lies_then_is_bad_compression(tail: bytes) -> None:
    """Lengths of blocks and in blocks are checked before they are used."""
    section = deflate(Compression.SNAPPY, b"good") + tail
    assert refused(Compression.SNAPPY, section)[0] is DamageReason.BAD_COMPRESSION
    header = deflate(Compression.SNAPPY, b"")  # half a stream header is not an empty stream
    assert inflated(Compression.SNAPPY, header) == b""
    assert refused(Compression.SNAPPY, header[:-1])[0] is DamageReason.BAD_COMPRESSION


def test_gzip_joins_its_members_and_checks_its_checksum() -> None:
    """A gzip stream may be a sequence of members, up to a bound, each with a right checksum."""
    member = gzip.compress(b"x", mtime=0)
    most = compression_module._GZIP_MEMBERS_MAX
    assert inflated(Compression.GZIP, member * most) == b"x" * most
    assert refused(Compression.GZIP, member * (most + 1))[0] is DamageReason.BAD_COMPRESSION
    assert refused(Compression.GZIP, member * 2, 1)[0] is DamageReason.INFLATED_TOO_LARGE
    section = bytearray(deflate(Compression.GZIP, TEXT))
    section[-5] ^= 1
    assert refused(Compression.GZIP, bytes(section))[0] is DamageReason.BAD_COMPRESSION


def test_lz4_when_written_then_blocks_are_independent() -> None:
    """Kafka's own reader refuses linked blocks: bit 5 of the frame's flags must be set."""
    assert deflate(Compression.LZ4, TEXT)[4] & 0x20


def test_zstd_when_the_frame_announces_a_huge_size_then_only_what_is_there_counts() -> None:
    """A content size in a frame is a claim like any other."""
    frame = b"\x28\xb5\x2f\xfd" + b"\xc0" + b"\x58" + (2**62).to_bytes(8, "little")
    frame += (1 | 4 << 3).to_bytes(3, "little") + b"data"
    assert refused(Compression.ZSTD, frame)[0] is DamageReason.BAD_COMPRESSION
