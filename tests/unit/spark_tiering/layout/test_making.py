"""Making of objects from streams, and sources that differ from their announcement."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import CHUNK_BYTES_MAX, VariableChunks, plain_chunks
from spark_tiering.layout.digests import digest_of
from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.frames import FrameWriter, inflate_frame
from spark_tiering.layout.object_making import IndexesObject, LogObject
from spark_tiering.layout.segment_indexes import lay_out_indexes
from spark_tiering.segments.findings import SegmentPart
from tests.support.memory import memory_below
from tests.support.stores.findings import assert_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = random.Random(7).randbytes(700) + b"offset and time " * 100
CHUNK = 512


def pieces(content: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.parametrize("piece_bytes", [1, 511, 512, 513, 10_000])
def test_log_when_stored_as_it_is_stays_byte_by_byte(piece_bytes: int) -> None:
    """An uncompressed log object equals the file, as do both digests."""
    log = LogObject(pieces(LOG, piece_bytes), len(LOG), is_compressed=False, chunk_bytes=CHUNK)
    assert log.made is None
    assert b"".join(log) == LOG
    assert log.finding is None
    assert log.made == (plain_chunks(len(LOG), CHUNK), digest_of(LOG), digest_of(LOG))


@pytest.mark.parametrize("piece_bytes", [1, 511, 512, 513, 10_000])
def test_log_when_compressed_is_one_frame_for_each_chunk(piece_bytes: int) -> None:
    """A compressed log has one frame for each chunk, however its source is cut."""
    log = LogObject(pieces(LOG, piece_bytes), len(LOG), is_compressed=True, chunk_bytes=CHUNK)
    frames = list(log)
    assert frames == [FrameWriter().frame(chunk) for chunk in pieces(LOG, CHUNK)]
    assert log.made is not None
    chunks, source, stored = log.made
    assert chunks == VariableChunks(CHUNK, len(LOG), [len(frame) for frame in frames])
    assert (source, stored) == (digest_of(LOG), digest_of(b"".join(frames)))
    assert source.sha256 == hashlib.sha256(LOG).digest()


def test_log_when_its_size_divides_evenly_has_no_empty_chunk() -> None:
    """A log that divides evenly ends with a full chunk and no empty one."""
    log = LogObject([LOG[: 2 * CHUNK]], 2 * CHUNK, is_compressed=True, chunk_bytes=CHUNK)
    frames = list(log)
    assert len(frames) == 2
    assert inflate_frame(frames[1], CHUNK, "chunk 1") == LOG[CHUNK : 2 * CHUNK]


@pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "zstd"])
@pytest.mark.parametrize(
    ("content", "detail"),
    [
        pytest.param(b"", "0 of the 2300 bytes", id="nothing"),
        pytest.param(LOG[:-1], "2299 of the 2300 bytes", id="a byte too few"),
        pytest.param(LOG[:CHUNK], "512 of the 2300 bytes", id="a chunk only"),
        pytest.param(LOG + b"x", "more than the 2300 bytes", id="a byte too many"),
        pytest.param(LOG * 1000, "more than the 2300 bytes", id="very many"),
    ],
)
def test_log_that_is_not_as_long_as_told_is_a_finding(
    content: bytes, detail: str, *, is_compressed: bool
) -> None:
    """A log with another length than announced becomes no object, and no byte beyond it is sent."""
    log = LogObject(pieces(content, 100), len(LOG), is_compressed=is_compressed, chunk_bytes=CHUNK)
    sent = b"".join(log)
    assert len(sent) <= 3000
    assert log.made is None
    assert_finding(log.finding, LayoutFault.LENGTH, detail)


@pytest.mark.parametrize("size_bytes", [INT32_MAX, 2**40])
def test_log_when_the_plugin_cannot_read_it_whole_is_a_finding_at_once(size_bytes: int) -> None:
    """A log beyond Java's int is refused before a byte is read."""
    for is_compressed in (False, True):
        log = LogObject(iter(lambda: b"x", b""), size_bytes, is_compressed=is_compressed)
        assert list(log) == []
        assert_finding(log.finding, LayoutFault.TOO_LARGE)


@pytest.mark.parametrize(
    ("size_bytes", "chunk_bytes"),
    [(0, 1), (-1, 1), (1, 0), (1, CHUNK_BYTES_MAX + 1), (2**30, 2047)],
)
def test_log_object_of_impossible_sizes_is_refused(size_bytes: int, chunk_bytes: int) -> None:
    """An empty log, or a chunk size that is impossible or too large for memory, is refused."""
    with pytest.raises(InvalidArgument, match=f"{size_bytes} bytes in chunks of {chunk_bytes}"):
        LogObject([], size_bytes, is_compressed=True, chunk_bytes=chunk_bytes)


@pytest.mark.parametrize("is_compressed", [False, True], ids=["plain", "zstd"])
def test_f123_long_log_when_made_takes_the_memory_of_two_chunks(*, is_compressed: bool) -> None:
    """A long log takes the memory of two chunks and the source's piece while it is copied."""
    piece = random.Random(3).randbytes(64 * 1024)
    size_bytes = 64 * 1024 * 1024
    source = (piece for _ in range(size_bytes // len(piece)))
    log = LogObject(source, size_bytes, is_compressed=is_compressed, chunk_bytes=1024 * 1024)
    with memory_below(4 * 1024 * 1024):
        stored_bytes = sum(map(len, log))
    assert log.made is not None
    assert log.made.stored.size_bytes == stored_bytes
    assert log.made.source.size_bytes == size_bytes


PARTS = {
    SegmentPart.OFFSET_INDEX: b"",
    SegmentPart.TIME_INDEX: b"timestamp.12",
    SegmentPart.PRODUCER_SNAPSHOT: bytes.fromhex("000148674bc700000000"),
    SegmentPart.LEADER_EPOCHS: b"0\n1\n4 1500\n",
    SegmentPart.TXN_INDEX: b"aborted",
}


def parts_object(parts: dict[SegmentPart, bytes], **wrong: int) -> IndexesObject:
    sizes = {part: len(content) + wrong.get(part.name, 0) for part, content in parts.items()}
    return IndexesObject({part: pieces(parts[part], 5) for part in parts}, sizes)


@pytest.mark.parametrize("has_aborted", [False, True])
def test_indexes_when_made_follow_one_another_in_the_plugins_order(*, has_aborted: bool) -> None:
    """The index object is its parts in the plugin's order, each found at its place."""
    parts = {part: PARTS[part] for part in reversed(PARTS)}
    if not has_aborted:
        del parts[SegmentPart.TXN_INDEX]
    made = parts_object(parts)
    stored = b"".join(made)
    assert made.made == (
        lay_out_indexes({part: len(content) for part, content in parts.items()}),
        digest_of(stored),
    )
    for part, content in parts.items():
        place = made.made.places.place(part)
        assert place is not None
        assert stored[place.position : place.next_position] == content


@pytest.mark.parametrize("difference", [-1, 1], ids=["longer", "shorter"])
@pytest.mark.parametrize("part", [part for part in PARTS if PARTS[part]])
def test_index_that_is_not_as_long_as_told_is_a_finding(part: SegmentPart, difference: int) -> None:
    """An index with another length than announced is a finding that names it."""
    made = parts_object(PARTS, **{part.name: difference})
    assert len(b"".join(made)) <= sum(map(len, PARTS.values()))
    assert made.made is None
    assert str(made.finding).startswith(f"{LayoutFault.LENGTH}: {part}")


def test_indexes_with_a_part_that_lacks_its_bytes_are_refused() -> None:
    """Index parts whose sizes and bytes do not match are refused, except for an absent last one."""
    sizes = {part: len(content) for part, content in PARTS.items()}
    with pytest.raises(InvalidArgument, match="bytes of"):
        IndexesObject({SegmentPart.OFFSET_INDEX: []}, sizes)
    with pytest.raises(InvalidArgument, match="producerSnapshot"):
        parts_object({SegmentPart.OFFSET_INDEX: b"", SegmentPart.TIME_INDEX: b""})
