"""The list of stored sizes: the plugin's own vectors, and nothing lenient."""

from __future__ import annotations

import base64
from array import array

import pytest
import zstandard

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_sizes import (
    CHUNKS_MAX,
    ENCODED_BYTES_MAX,
    TEXT_CHARACTERS_MAX,
    decode_sizes,
    encode_sizes,
    format_sizes,
    parse_sizes,
)
from spark_tiering.layout.findings import LayoutFault
from tests.support.stores.findings import assert_finding

VECTORS = {
    "none": ([], "00000000"),
    "one": ([213], "00000001 000000d5"),
    "one byte each": (
        [1_000_000, 1_000_010, 1_000_020, 777],
        "00000004 000f4240 01 00 0a 14 00000309",
    ),
    "two bytes each": (
        [0, 1000, 2, 44_002, 369],
        "00000005 00000000 02 0000 03e8 0002 abe2 00000171",
    ),
    "equal": ([5, 5, 5, 9], "00000004 00000005 01 00 00 00 00000009"),
    "one byte at its end": ([1, 256, 2], "00000003 00000001 01 00 ff 00000002"),
    "two bytes at their start": ([1, 257, 2], "00000003 00000001 02 0000 0100 00000002"),
    "three bytes": ([0, 0x10000, 0], "00000003 00000000 03 000000 010000 00000000"),
    "four bytes": ([0, 0x7FFFFFFF, 0], "00000003 00000000 04 00000000 7fffffff 00000000"),
}


@pytest.mark.parametrize(("sizes", "encoded"), VECTORS.values(), ids=VECTORS)
def test_sizes_when_encoded_are_the_plugins_bytes_and_back(sizes: list[int], encoded: str) -> None:
    """Encoded chunk sizes equal the plugin's bytes, and decode to the same sizes."""
    assert encode_sizes(sizes) == bytes.fromhex(encoded)
    assert decode_sizes(bytes.fromhex(encoded)) == array("q", sizes)


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([10, 20, 30], "KLUv/SAPeQAAAAAAAwAAAAoBAAoAAAAe"),
        ([1_000_000, 1_000_010, 1_000_020, 777], "KLUv/SAQgQAAAAAABAAPQkABAAoUAAADCQ=="),
    ],
)
def test_text_of_sizes_when_written_is_the_plugins_and_back(sizes: list[int], text: str) -> None:
    """The text of sizes equals the plugin's base64 byte for byte, and reads back."""
    assert format_sizes(sizes) == text
    assert parse_sizes(text) == array("q", sizes)


@pytest.mark.parametrize("sizes", [[-1], [1, -1, 1], [2**31], [1, 2**31, 1]])
def test_sizes_when_no_chunk_has_them_or_they_are_too_many_are_refused(sizes: list[int]) -> None:
    """Chunk sizes outside the plugin's range, or more than the reader takes, are refused."""
    with pytest.raises(InvalidArgument, match="chunk"):
        encode_sizes(sizes)
    with pytest.raises(InvalidArgument, match=f"at most {CHUNKS_MAX}"):
        format_sizes(range(CHUNKS_MAX + 1))


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param("", id="nothing"),
        pytest.param("000000", id="cut in the count"),
        pytest.param("ffffffff", id="count below zero"),
        pytest.param("0000ffff 00000000 01", id="count without values"),
        pytest.param("0000ffff 00000000 00 00000000", id="count of values without bytes"),
        pytest.param("00000000 00", id="a byte behind no sizes"),
        pytest.param("00000001 000000d5 00", id="a byte behind one"),
        pytest.param("00000001 ffffffff", id="one below zero"),
        pytest.param("00000002", id="cut in the head"),
        pytest.param("00000003 00000001 00 00000002", id="values of no bytes"),
        pytest.param(
            "00000003 00000001 05 0000000000 0000000000 00000002", id="values of five bytes"
        ),
        pytest.param("00000003 ffffffff 01 00 00 00000002", id="base below zero"),
        pytest.param("00000003 00000001 01 00 ff 000002", id="cut in the last"),
        pytest.param("00000003 00000001 01 00 ff 00000002 00", id="a byte behind all"),
        pytest.param("00000003 7fffffff 04 00000000 00000001 00000002", id="a sum above int"),
        pytest.param("00000003 00000000 04 00000000 ffffffff 00000002", id="a value above int"),
    ],
)
def test_sizes_that_nobody_wrote_when_decoded_are_a_finding(encoded: str) -> None:
    """Sizes with a wrong count, length or value are a finding."""
    assert_finding(decode_sizes(bytes.fromhex(encoded)), LayoutFault.DAMAGED)


def text_of(frame: bytes) -> str:
    return base64.b64encode(frame).decode()


UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(4))
LONG = zstandard.ZstdCompressor().compress(bytes(ENCODED_BYTES_MAX + 1))
NO_SIZES = {
    "nothing": ("", LayoutFault.DAMAGED),
    "cut": ("KLUv/SAPeQAA", LayoutFault.DAMAGED),
    "another base64": ("KLUv_SAPeQAAAAAAAwAAAAoBAAoAAAAe", LayoutFault.DAMAGED),
    "in two lines": ("KLUv/SAPeQAA\nAAAAAwAAAAoBAAoAAAAe", LayoutFault.DAMAGED),
    "no ASCII": ("größe", LayoutFault.DAMAGED),
    "size not said": (text_of(UNSIZED), LayoutFault.DAMAGED),
    "a byte more than the longest list": (text_of(LONG), LayoutFault.TOO_LARGE),
    "a text too long": ("A" * (TEXT_CHARACTERS_MAX + 1), LayoutFault.TOO_LARGE),
}


@pytest.mark.parametrize(("text", "kind"), NO_SIZES.values(), ids=NO_SIZES)
def test_text_that_nobody_wrote_when_parsed_is_a_finding(text: str, kind: LayoutFault) -> None:
    """Text that the plugin never wrote is a finding, and oversized text is not inflated."""
    assert_finding(parse_sizes(text), kind)


def test_longest_list_that_is_read_when_parsed_is_whole() -> None:
    """Lists up to the limit read back whole, and a longer one is refused by its count."""
    sizes = array("q", (size * 2_654_435_761 % INT32_MAX for size in range(CHUNKS_MAX)))
    text = format_sizes(sizes)
    assert len(text) <= TEXT_CHARACTERS_MAX
    assert parse_sizes(text) == sizes
    assert_finding(decode_sizes((CHUNKS_MAX + 1).to_bytes(4) + bytes(9)), LayoutFault.TOO_LARGE)
