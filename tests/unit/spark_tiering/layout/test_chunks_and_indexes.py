"""Where chunks and indexes lie in their objects, by the plugin's rules and vectors."""

from __future__ import annotations

import base64
from array import array

import pytest
import zstandard

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import (
    CHUNK_BYTES,
    FixedChunks,
    VariableChunks,
    chunk_bytes_for,
    is_stored_plain,
    plain_chunks,
)
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
from spark_tiering.layout.segment_indexes import IndexPlace, lay_out_indexes
from spark_tiering.segments.findings import SegmentPart
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import PART_SIZES


@pytest.mark.parametrize(
    ("chunks", "stored"),
    [
        (FixedChunks(100, 250, 110, 30), [(0, 110), (110, 110), (220, 30)]),
        (VariableChunks(100, 250, [10, 20, 30]), [(0, 10), (10, 20), (30, 30)]),
    ],
    ids=["fixed", "variable"],
)
def test_chunk_places(chunks: FixedChunks | VariableChunks, stored: list[tuple[int, int]]) -> None:
    """Chunks of the plugin's examples: 250 bytes by 100, stored in three."""
    places = [(0, 0, 100), (1, 100, 100), (2, 200, 50)]
    found = [tuple(chunks.chunk(number)) for number in range(chunks.count)]
    assert found == [place + one for place, one in zip(places, stored, strict=True)]
    assert chunks.stored_bytes == sum(size for _, size in stored)


@pytest.mark.parametrize(
    ("original_bytes", "last_bytes", "count"),
    [
        pytest.param(0, 0, 0, id="nothing"),
        pytest.param(1, 1, 1, id="a byte"),
        pytest.param(99, 99, 1, id="less than a chunk"),
        pytest.param(100, 100, 1, id="one chunk"),
        pytest.param(101, 1, 2, id="one and a byte"),
        pytest.param(300, 100, 3, id="three full ones"),
    ],
)
def test_plain_chunks_end_with_the_rest(original_bytes: int, last_bytes: int, count: int) -> None:
    """The last chunk of an uncompressed log holds the rest, or is a full one."""
    chunks = plain_chunks(original_bytes, 100)
    assert chunks == FixedChunks(100, original_bytes, 100, last_bytes)
    assert (chunks.count, chunks.stored_bytes) == (count, original_bytes)
    assert is_stored_plain(chunks)


@pytest.mark.parametrize(
    ("chunks", "is_plain"),
    [
        pytest.param(FixedChunks(100, 250, 110, 30), False, id="other sizes, same sum"),
        pytest.param(FixedChunks(100, 50, 110, 50), True, id="one chunk"),
        pytest.param(FixedChunks(100, 250, 100, 51), False, id="a byte more"),
        pytest.param(VariableChunks(100, 250, [100, 100, 50]), True, id="variable, as it is"),
        pytest.param(VariableChunks(100, 250, [100, 99, 51]), False, id="variable, same sum"),
    ],
)
def test_chunks_stored_plain_are_seen(chunks: FixedChunks | VariableChunks, is_plain: bool) -> None:
    """Chunks stored uncompressed are those whose positions follow from the chunk size."""
    assert is_stored_plain(chunks) is is_plain


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: FixedChunks(0, 10, 1, 1), id="chunks of nothing"),
        pytest.param(lambda: FixedChunks(1, -1, 1, 1), id="a log below zero"),
        pytest.param(lambda: FixedChunks(10, 2**31, 10, 10), id="a log above int"),
        pytest.param(lambda: FixedChunks(10, 10, -1, 1), id="a stored size below zero"),
        pytest.param(lambda: FixedChunks(10, 100, 2**30, 1), id="an object above int"),
        pytest.param(lambda: VariableChunks(100, 250, [1, 2]), id="a chunk too few"),
        pytest.param(lambda: VariableChunks(100, 250, [1, 2, 3, 4]), id="a chunk too many"),
        pytest.param(lambda: VariableChunks(100, 0, []), id="none at all"),
        pytest.param(lambda: VariableChunks(100, 250, [5, -1, 5]), id="a size below zero"),
        pytest.param(lambda: VariableChunks(100, 250, [2**30] * 3), id="sizes above int"),
        pytest.param(lambda: plain_chunks(250, 100).chunk(3), id="a chunk behind the last"),
        pytest.param(lambda: VariableChunks(100, 50, [5]).chunk(-1), id="a chunk before all"),
    ],
)
def test_chunks_that_contradict_themselves_are_refused(make: object) -> None:
    """A chunk index that does not cover its log, or ends beyond Java's int, is refused."""
    assert callable(make)
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize(
    "original_bytes",
    [
        pytest.param(2**31 - CHUNK_BYTES, id="the last that fits"),
        pytest.param(2**31 - CHUNK_BYTES + 1, id="one byte beyond it"),
        pytest.param(2**31 - 1000, id="a thousand below the end"),
        pytest.param(INT32_MAX - 1, id="the largest that can be cut"),
    ],
)
def test_chunk_size_for_a_long_log_lets_the_plugin_read_its_end(original_bytes: int) -> None:
    """The plugin's computed end of a long log's last chunk stays within 32 bits."""
    chunk_bytes = chunk_bytes_for(original_bytes)
    assert isinstance(chunk_bytes, int)
    assert CHUNK_BYTES // 2 < chunk_bytes <= CHUNK_BYTES
    assert plain_chunks(original_bytes, chunk_bytes).count * chunk_bytes <= INT32_MAX
    assert (chunk_bytes == CHUNK_BYTES) == (original_bytes <= 2**31 - CHUNK_BYTES)


@pytest.mark.parametrize("original_bytes", [INT32_MAX, 2**31, 2**40])
def test_log_that_the_plugin_could_not_read_whole_is_a_finding(original_bytes: int) -> None:
    """A log that no chunk size makes readable for the plugin is a finding."""
    assert_finding(chunk_bytes_for(original_bytes), LayoutFault.TOO_LARGE)
    assert chunk_bytes_for(100, 7) == 7


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


def test_indexes_when_laid_out_follow_one_another() -> None:
    """Index positions are running sums; an absent index and the log have no place."""
    places = lay_out_indexes(PART_SIZES)
    assert list(places) == [(0, 2400), (2400, 3612), (6012, 10), (6022, 12), None]
    assert (places.size_bytes, places.is_gapless) == (6034, True)
    assert places.place(SegmentPart.LEADER_EPOCHS) == (6022, 12)
    assert places.place(SegmentPart.TXN_INDEX) is None
    assert lay_out_indexes({SegmentPart.TXN_INDEX: 34} | PART_SIZES).transaction == (6034, 34)
    empty = lay_out_indexes(PART_SIZES | {SegmentPart.OFFSET_INDEX: 0, SegmentPart.TIME_INDEX: 0})
    assert empty[:3] == ((0, 0), (0, 0), (0, 10))
    assert not places._replace(leader_epoch=IndexPlace(6023, 12)).is_gapless
    assert not places._replace(transaction=IndexPlace(6033, 34)).is_gapless
    with pytest.raises(InvalidArgument, match="log"):
        places.place(SegmentPart.LOG)


@pytest.mark.parametrize("part", PART_SIZES)
def test_segment_that_lacks_an_index_when_laid_out_is_refused(part: SegmentPart) -> None:
    """A segment that lacks another index than the transaction index is refused."""
    sizes = {other: size for other, size in PART_SIZES.items() if other is not part}
    with pytest.raises(InvalidArgument, match=part):
        lay_out_indexes(sizes)


@pytest.mark.parametrize("size_bytes", [-1, 2**31 - 2400])
def test_index_of_a_size_that_cannot_be_when_laid_out_is_refused(size_bytes: int) -> None:
    """An index whose place or size exceeds Java's int is refused."""
    with pytest.raises(InvalidArgument, match=str(size_bytes)):
        lay_out_indexes(PART_SIZES | {SegmentPart.TIME_INDEX: size_bytes})
