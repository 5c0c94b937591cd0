"""Making of objects from streams, and ranges of a log read back from them."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import (
    CHUNK_BYTES_MAX,
    FixedChunks,
    VariableChunks,
    plain_chunks,
)
from spark_tiering.layout.digests import digest_of
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.frames import FrameWriter
from spark_tiering.layout.object_making import IndexesObject, LogObject
from spark_tiering.layout.range_reading import ObjectRangeRead, plan_index_fetch, plan_log_fetches
from spark_tiering.layout.segment_indexes import lay_out_indexes
from spark_tiering.segments.findings import SegmentPart
from tests.support.memory import memory_below
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import ENCRYPTION, plain_manifest, zstd_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.layout.manifest import Manifest


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
@pytest.mark.parametrize("content", [LOG, LOG[: 2 * CHUNK]], ids=["a rest", "whole chunks"])
def test_compressed_log_is_one_frame_for_each_chunk(content: bytes, piece_bytes: int) -> None:
    """A compressed log has one frame for each chunk, however cut, and no empty one at its end."""
    size = len(content)
    log = LogObject(pieces(content, piece_bytes), size, is_compressed=True, chunk_bytes=CHUNK)
    frames = list(log)
    assert frames == [FrameWriter().frame(chunk) for chunk in pieces(content, CHUNK)]
    assert log.made is not None
    chunks, source, stored = log.made
    assert chunks == VariableChunks(CHUNK, size, [len(frame) for frame in frames])
    assert (source, stored) == (digest_of(content), digest_of(b"".join(frames)))
    assert source.sha256 == hashlib.sha256(content).digest()


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
def test_log_of_another_length_is_one(content: bytes, detail: str, *, is_compressed: bool) -> None:
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


READ_LOG = random.Random(11).randbytes(900) + bytes(1100)
READ_CHUNK = 256


def stored(*, is_compressed: bool) -> tuple[Manifest, bytes]:
    log = LogObject([READ_LOG], len(READ_LOG), is_compressed=is_compressed, chunk_bytes=READ_CHUNK)
    content = b"".join(log)
    assert log.made is not None
    like = zstd_manifest() if is_compressed else plain_manifest()
    return replace(like, chunks=log.made.chunks), content


STORED = {"plain": stored(is_compressed=False), "zstd": stored(is_compressed=True)}


def fetches(manifest: Manifest, *arguments: int, fetch_bytes: int = 600) -> list[ObjectRangeRead]:
    planned = plan_log_fetches(manifest, *arguments, fetch_bytes=fetch_bytes)
    assert not isinstance(planned, LayoutFinding)
    return list(planned)


def read(name: str, *arguments: int, fetch_bytes: int = 600) -> bytes:
    manifest, content = STORED[name]
    got = []
    for fetch in fetches(manifest, *arguments, fetch_bytes=fetch_bytes):
        for found in fetch.contents(content[fetch.first_byte : fetch.last_byte + 1]):
            assert not isinstance(found, LayoutFinding)
            got.append(bytes(found))
    return b"".join(got)


ENDS: list[tuple[int, ...]] = [
    *[(0, 1999), (0, 0), (1999, 1999), (255, 256), (256, 511), (300, 310), (100, 1900)],
    *[(1792, 1999), (1990, 5000), (1990,), ()],
]
"""Also over the edge of a chunk, one chunk, within it, beyond the log, and to its end."""


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("fetch_bytes", [1, 600, 1_000_000])
@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_f124_range_of_a_log_is_right(name: str, fetch_bytes: int, ends: tuple[int, ...]) -> None:
    """A range with both ends inclusive reads back as the source's bytes, cut to the log's end."""
    first, last = (*ends, *(0, 1999)[len(ends) :])
    assert read(name, *ends, fetch_bytes=fetch_bytes) == READ_LOG[first : last + 1]


@pytest.mark.parametrize(("first", "last"), [(5, 4), (-1, 4), (2000, 2000), (2000, None), (0, -1)])
def test_f124_range_that_cannot_be_when_asked_for_is_refused(first: int, last: int | None) -> None:
    """A range with an end before its start, or a start behind the log, is a caller's mistake."""
    with pytest.raises(InvalidArgument):
        plan_log_fetches(STORED["zstd"][0], first, last)
    with pytest.raises(InvalidArgument):
        plan_log_fetches(STORED["zstd"][0], fetch_bytes=0)


def test_fetches_of_chunks_when_planned_join_what_lies_together() -> None:
    """A planned fetch joins adjacent whole chunks up to the limit and fetches each chunk once."""
    manifest, content = STORED["zstd"]
    planned = fetches(manifest)
    assert [len(fetch.chunks) for fetch in planned] == [2, 6]
    assert planned[0].first_byte == 0
    assert planned[0].last_byte + 1 == planned[1].first_byte
    assert planned[1].last_byte + 1 == len(content)
    assert all(fetch.size_bytes <= 600 for fetch in planned)
    assert len(fetches(manifest, fetch_bytes=1)) == manifest.chunks.count


def test_fetches_of_a_log_stored_as_it_is_ask_for_the_bytes_alone() -> None:
    """Fetches of an uncompressed log ask for exactly the wanted bytes."""
    assert fetches(STORED["plain"][0], 10, 1500) == [
        ObjectRangeRead(10, 609),
        ObjectRangeRead(610, 1209),
        ObjectRangeRead(1210, 1500),
    ]


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("difference", [-1, 1], ids=["a byte too few", "a byte too many"])
def test_store_that_gives_another_length_is_a_finding(name: str, difference: int) -> None:
    """A store that returns another length, by a cut object or an ignored range, is a finding."""
    manifest, content = STORED[name]
    fetch = fetches(manifest, fetch_bytes=300)[0]
    (found,) = fetch.contents((content + b"xx")[: fetch.size_bytes + difference])
    assert_finding(found, LayoutFault.LENGTH)


def test_chunk_that_was_damaged_when_read_is_a_finding_after_those_before_it() -> None:
    """A damaged chunk is a finding with its number after the chunks before it."""
    manifest, content = STORED["zstd"]
    (fetch,) = fetches(manifest, fetch_bytes=1_000_000)
    damaged = bytearray(content)
    damaged[manifest.chunks.chunk(1).stored_start + 100] ^= 1
    first, found = fetch.contents(bytes(damaged))
    assert first == READ_LOG[:READ_CHUNK]
    assert_finding(found, LayoutFault.DAMAGED, "chunk 1,")


def test_chunk_of_another_size_than_its_place_has_is_a_finding() -> None:
    """A chunk of another size than its manifest says is a finding."""
    manifest, content = STORED["zstd"]
    assert isinstance(manifest.chunks, VariableChunks)
    lying = replace(
        manifest, chunks=VariableChunks(READ_CHUNK, len(READ_LOG) - 1, manifest.chunks.stored_sizes)
    )
    (fetch,) = fetches(lying, fetch_bytes=1_000_000)
    *contents, found = fetch.contents(content)
    assert len(contents) == 7
    assert_finding(found, LayoutFault.LENGTH)


ZSTD = zstd_manifest()
LARGE = CHUNK_BYTES_MAX + 1
UNREADABLE = {
    "encrypted": (replace(ZSTD, encryption=ENCRYPTION), LayoutFault.ENCRYPTED),
    "not as it is": (
        replace(plain_manifest(), chunks=FixedChunks(100, 250, 110, 60)), LayoutFault.INCONSISTENT,
    ),
    "chunks too large": (
        replace(ZSTD, chunks=VariableChunks(LARGE, LARGE, [100])), LayoutFault.TOO_LARGE,
    ),
    "a chunk of nothing": (
        replace(ZSTD, chunks=VariableChunks(100, 250, [10, 0, 30])), LayoutFault.INCONSISTENT,
    ),
    "fixed chunks of nothing": (
        replace(ZSTD, chunks=FixedChunks(100, 250, 0, 30)), LayoutFault.INCONSISTENT,
    ),
    "one chunk of nothing": (
        replace(ZSTD, chunks=FixedChunks(300, 250, 20, 0)), LayoutFault.INCONSISTENT,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("manifest", "kind"), UNREADABLE.values(), ids=UNREADABLE)
def test_log_when_unreadable_is_a_finding_at_once(manifest: Manifest, kind: LayoutFault) -> None:
    """An encrypted log without key, or with too large chunks, is a finding before any fetch."""
    assert_finding(plan_log_fetches(manifest), kind)


def test_index_when_asked_for_is_one_range() -> None:
    """An index takes one fetch, and an empty or absent index none."""
    manifest = plain_manifest()
    fetch = plan_index_fetch(manifest, SegmentPart.TIME_INDEX)
    assert fetch == ObjectRangeRead(2400, 6011)
    assert list(fetch.contents(bytes(3612))) == [bytes(3612)]
    assert plan_index_fetch(manifest, SegmentPart.TXN_INDEX) is None
    assert_finding(
        plan_index_fetch(replace(manifest, encryption=ENCRYPTION), SegmentPart.OFFSET_INDEX),
        LayoutFault.ENCRYPTED,
    )
