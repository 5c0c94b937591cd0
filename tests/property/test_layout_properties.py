"""Objects of segments: a written object is read back, sealed or not; any bytes end in a value."""

from __future__ import annotations

import json
import random
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX
from spark_tiering.layout.chunk_index import is_stored_plain
from spark_tiering.layout.chunk_sizes import decode_sizes, encode_sizes, format_sizes, parse_sizes
from spark_tiering.layout.custom_metadata import (
    CustomMetadata,
    format_custom_metadata,
    parse_custom_metadata,
)
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.frames import inflate_frame, inflate_frame_up_to
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.object_making import IndexesObject, LogObject
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.range_reading import plan_log_fetches
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segment_reading.tiered import TieredSegment
from tests.support.stores.encrypted_segments import seal_objects
from tests.support.stores.memory_store import MemoryStore
from tests.support.stores.recorded_manifests import plain_manifest, recorded, zstd_manifest
from tests.support.stores.tiered_bytes import key_ring

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ["plain", "zstd", "plain-aborted", "zstd-aborted", "tiered-by-us"]
SIZES = st.lists(st.integers(0, INT32_MAX) | st.integers(0, 300), max_size=50)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
) | st.sampled_from([0, -1, 1, "1", 2**31 - 1, 2**31, "fixed", "variable", {}, []])


def cut(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield content[at : at + size]
        at += size
    yield content[at:]


@given(
    seed=st.integers(0, 2**32),
    random_bytes=st.integers(0, 400),
    zeros=st.integers(1, 400),
    chunk_bytes=st.integers(1, 300),
    sizes=st.lists(st.integers(0, 200), max_size=6),
    is_compressed=st.booleans(),
    bounds=st.tuples(st.integers(0, 2000), st.integers(0, 2000)),
    fetch_bytes=st.integers(1, 500),
)
def test_any_range_of_any_log_when_read_back_by_its_manifest_is_the_sources(
    seed: int,
    random_bytes: int,
    zeros: int,
    chunk_bytes: int,
    sizes: list[int],
    *,
    is_compressed: bool,
    bounds: tuple[int, int],
    fetch_bytes: int,
) -> None:
    """Any range of any log reads back as the log's bytes, and no fetch is too large."""
    log = random.Random(seed).randbytes(random_bytes) + bytes(zeros)
    made = LogObject(
        cut(log, sizes), len(log), is_compressed=is_compressed, chunk_bytes=chunk_bytes
    )
    stored = b"".join(made)
    assert made.made is not None
    assert made.made.chunks.stored_bytes == len(stored) == made.made.stored.size_bytes
    like = zstd_manifest() if is_compressed else plain_manifest()
    manifest = parse_manifest(format_manifest(replace(like, chunks=made.made.chunks)))
    assert isinstance(manifest, Manifest)
    first, last = min(bounds) % len(log), max(bounds)
    assume(first <= last)
    planned = plan_log_fetches(manifest, first, last, fetch_bytes=fetch_bytes)
    assert not isinstance(planned, LayoutFinding)
    got = []
    for fetch in planned:
        assert fetch.size_bytes <= fetch_bytes or len(fetch.chunks) == 1
        for found in fetch.contents(stored[fetch.first_byte : fetch.last_byte + 1]):
            assert not isinstance(found, LayoutFinding)
            got.append(bytes(found))
    assert b"".join(got) == log[first : last + 1]


@given(sizes=SIZES)
def test_any_sizes_when_written_are_read_back(sizes: list[int]) -> None:
    """Any chunk sizes read back from their text."""
    assert decode_sizes(encode_sizes(sizes)) == array("q", sizes)
    assert parse_sizes(format_sizes(sizes)) == array("q", sizes)


@given(
    size=st.none() | st.integers(0, 2**63 - 1),
    texts=st.tuples(st.none() | st.text(max_size=40), st.none() | st.text(max_size=40)),
    others=st.dictionaries(st.integers(3, INT32_MAX), st.binary(max_size=20), max_size=3),
)
def test_any_custom_metadata_when_written_is_read_back(
    size: int | None, texts: tuple[str | None, str | None], others: dict[int, bytes]
) -> None:
    """Any custom metadata reads back with all of its fields."""
    custom = CustomMetadata(size, *texts, others)
    assert parse_custom_metadata(format_custom_metadata(custom, 10_000)) == custom


def judge(content: bytes) -> None:
    found = parse_manifest(content)
    if isinstance(found, LayoutFinding):
        assert len(found.detail) < 1000
        return
    assert found.is_compressed or found.is_encrypted or is_stored_plain(found.chunks)
    if found.described is None or isinstance(found.described, SegmentDescription):
        assert parse_manifest(format_manifest(found)) == found
    try:
        planned = plan_log_fetches(found)
    except InvalidArgument:
        assert found.chunks.original_bytes == 0
        return
    if isinstance(planned, LayoutFinding):
        return
    fetch = next(planned)
    assert 0 <= fetch.first_byte <= fetch.last_byte < found.chunks.stored_bytes
    if fetch.size_bytes < 20_000_000:
        list(fetch.contents(bytes(fetch.size_bytes)))


@given(
    name=st.sampled_from(NAMES),
    at=st.integers(0, 2000),
    removed=st.integers(0, 4),
    added=st.binary(max_size=4),
)
def test_manifest_of_other_bytes_no_error(name: str, at: int, removed: int, added: bytes) -> None:
    """The reader returns a manifest or names the damage, and raises nothing."""
    content = recorded(name)
    at %= len(content)
    judge(content[:at] + added + content[at + removed :])


def places(fields: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(fields, dict):
        for name, value in fields.items():
            yield (*path, name)
            yield from places(value, (*path, name))


@given(name=st.sampled_from(NAMES), data=st.data(), value=VALUES)
def test_manifest_of_other_values_no_error(name: str, data: st.DataObject, value: object) -> None:
    """The reader returns a manifest or names the wrong value, and raises nothing."""
    fields = json.loads(recorded(name))
    path = data.draw(st.sampled_from(list(places(fields))))
    at = fields
    for folder in path[:-1]:
        at = at[folder]
    at[path[-1]] = value
    judge(json.dumps(fields).encode())


@given(content=st.binary(max_size=60))
def test_any_bytes_when_read_end_in_a_value(content: bytes) -> None:
    """Every reader gives a value or a finding."""
    judge(content)
    inflate_frame(content, 100, "here")
    inflate_frame_up_to(b"\x28\xb5\x2f\xfd" + content, 100, "here")
    sizes = decode_sizes(content)
    if not isinstance(sizes, LayoutFinding):
        assert decode_sizes(encode_sizes(sizes)) == sizes
    custom = parse_custom_metadata(content)
    if isinstance(custom, CustomMetadata) and (custom.remote_size_bytes or 0) >= 0:
        section = format_custom_metadata(custom, 1000)
        assert parse_custom_metadata(section) == custom


KEYS = {kind: str(kind) for kind in ObjectKind}


def sealed(
    log: bytes, chunk_bytes: int, parts: tuple[bytes, ...], *, is_zstd: bool
) -> dict[str, bytes]:
    log_object = LogObject([log], len(log), is_compressed=is_zstd, chunk_bytes=chunk_bytes)
    body = b"".join(log_object)
    contents = dict(zip(INDEX_PARTS, parts, strict=False))
    indexes = IndexesObject(
        {part: [content] for part, content in contents.items()},
        {part: len(content) for part, content in contents.items()},
    )
    packed = b"".join(indexes)
    assert log_object.made is not None
    assert indexes.made is not None
    manifest = Manifest(log_object.made.chunks, indexes.made.places, is_zstd)
    made = seal_objects(manifest, body, packed)
    return {KEYS[kind]: content for kind, content in made.items()}


@given(
    log=st.binary(min_size=1, max_size=3_000),
    chunk_bytes=st.integers(40, 4_000),
    parts=st.lists(st.binary(max_size=60), min_size=4, max_size=5).map(tuple),
    is_zstd=st.booleans(),
    ends=st.tuples(st.integers(0, 3_100), st.integers(0, 3_100)),
    fetch_bytes=st.integers(1, 5_000),
    flipped=st.none() | st.integers(0, 5_000),
)
def test_any_range_of_an_encrypted_log_is_read_or_told_by_name(
    log: bytes,
    chunk_bytes: int,
    parts: tuple[bytes, ...],
    is_zstd: bool,
    ends: tuple[int, int],
    fetch_bytes: int,
    flipped: int | None,
) -> None:
    """A range with a flipped bit gives right bytes or a named error."""
    objects = sealed(log, chunk_bytes, parts, is_zstd=is_zstd)
    manifest = parse_manifest(objects[KEYS[ObjectKind.MANIFEST]])
    assert not isinstance(manifest, LayoutFinding)
    source = TieredSegment(
        MemoryStore(objects), KEYS, manifest, key_ring(), fetch_bytes=fetch_bytes
    )
    first, last = min(ends), max(ends)
    assert b"".join(source.pieces(first, last)) == log[first : last + 1]
    for part, content in zip(INDEX_PARTS, parts, strict=False):
        assert source.index(part) == content
    if flipped is not None:
        body = bytearray(objects[KEYS[ObjectKind.LOG]])
        body[flipped % len(body)] ^= 1
        damaged = MemoryStore({**objects, KEYS[ObjectKind.LOG]: bytes(body)})
        source = TieredSegment(damaged, KEYS, manifest, key_ring(), fetch_bytes=fetch_bytes)
        got = bytearray()
        try:
            for piece in source.pieces(first, last):
                got += piece
        except SegmentUnreadable:
            assert log[first : last + 1].startswith(got)
        else:
            assert got == log[first : last + 1]
    assert manifest.encryption is not None
    other = replace(manifest, encryption=replace(manifest.encryption, aad=b"other"))
    source = TieredSegment(MemoryStore(objects), KEYS, other, key_ring())
    with pytest.raises(SegmentUnreadable, match="tag"):
        list(source.pieces())
