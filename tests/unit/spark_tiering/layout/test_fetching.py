"""Reading back: any range of the log from the ranges of its object, and objects that lie."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.layout.chunk_index import CHUNK_BYTES_MAX, FixedChunks, VariableChunks
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.object_making import LogObject
from spark_tiering.layout.range_reading import ObjectRangeRead, plan_index_fetch, plan_log_fetches
from spark_tiering.segments.findings import SegmentPart
from tests.support.stores.findings import assert_finding
from tests.support.stores.recorded_manifests import ENCRYPTION, plain_manifest, zstd_manifest

if TYPE_CHECKING:
    from spark_tiering.layout.manifest import Manifest

LOG = random.Random(11).randbytes(900) + bytes(1100)
CHUNK = 256


def stored(*, is_compressed: bool) -> tuple[Manifest, bytes]:
    log = LogObject([LOG], len(LOG), is_compressed=is_compressed, chunk_bytes=CHUNK)
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
    assert read(name, *ends, fetch_bytes=fetch_bytes) == LOG[first : last + 1]


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
    assert first == LOG[:CHUNK]
    assert_finding(found, LayoutFault.DAMAGED, "chunk 1,")


def test_chunk_of_another_size_than_its_place_has_is_a_finding() -> None:
    """A chunk of another size than its manifest says is a finding."""
    manifest, content = STORED["zstd"]
    assert isinstance(manifest.chunks, VariableChunks)
    lying = replace(
        manifest, chunks=VariableChunks(CHUNK, len(LOG) - 1, manifest.chunks.stored_sizes)
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
