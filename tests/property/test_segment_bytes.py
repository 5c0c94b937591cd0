"""Any range of any encrypted log is read from a tier as the broker had it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.manifest import Manifest
from spark_tiering.layout.manifest_document import parse_manifest
from spark_tiering.layout.object_making import IndexesObject, LogObject
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.segment_reading.protocol import SegmentUnreadable
from spark_tiering.segment_reading.tiered import TieredSegment
from tests.support.stores.encrypted_segments import seal_objects
from tests.support.stores.memory_store import MemoryStore
from tests.support.stores.tiered_bytes import key_ring

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
