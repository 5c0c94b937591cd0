"""Ranges and indexes of tiered segments, in every form that they are stored in."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable, finding_kind
from spark_tiering.segment_reading.tiered import (
    KeyPlaces,
    TieredSegment,
    find_manifest,
    open_tiered,
)
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.stores.results import ObjectArchived
from tests.support.stores.encrypted_segments import IDS
from tests.support.stores.tiered_bytes import (
    FORMS,
    PREFIX,
    TieredBytes,
    example,
    key_ring,
    random_log,
)
from tests.support.tier.copy_tasks import FIRST

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.key_ring import KeyRing
    from spark_tiering.segment_reading.protocol import Piece

FORM = pytest.mark.parametrize("form", FORMS)
SEALED = pytest.mark.parametrize("form", [form for form in FORMS if "sealed" in form])


def read(source: TieredSegment, first: int = 0, last: int | None = None) -> bytes:
    return b"".join(source.pieces(first, last))


def read_all(tiered: TieredBytes) -> None:
    source = tiered.open()
    read(source)
    source.index(SegmentPart.OFFSET_INDEX)


def fault_of(tiered: TieredBytes, source: TieredSegment | None = None) -> SegmentUnreadable:
    with pytest.raises(SegmentUnreadable) as raised:
        read(source or tiered.open())
    return raised.value


def fault_of_opening(tiered: TieredBytes, segment: SegmentMetadata) -> ReadFault:
    with pytest.raises(SegmentUnreadable) as raised:
        open_tiered(tiered.store, segment, (PREFIX,))
    return raised.value.fault


@FORM
def test_log_when_read_by_range_is_what_the_broker_had(form: str) -> None:
    """Any range of a log reads as the broker's bytes, cut to its end, or is refused (F124)."""
    tiered = random_log(form)
    source = tiered.open()
    for first, last in (
        *((0, None), (0, 0), (40_000, 40_000), (4095, 4096), (5000, 20_000), (39_000, 99_999)),
        *((40_001, None), (99_999, 99_999)),
    ):
        assert read(source, first, last) == tiered.log[first : None if last is None else last + 1]
    for first, last in ((5, 4), (-1, None)):
        with pytest.raises(InvalidArgument):
            read(source, first, last)


@FORM
def test_indexes_when_read_are_what_the_broker_had(form: str) -> None:
    """All indexes are the broker's, read with one request; an absent one is reported."""
    tiered = example(form)
    source = tiered.open()
    tiered.store.calls.clear()
    for part in INDEX_PARTS:
        assert source.index(part) == tiered.parts[part]
    assert tiered.store.calls == [("get", tiered.keys[ObjectKind.INDEXES])]
    assert example(form, FIRST).open().index(SegmentPart.TXN_INDEX) is None


@FORM
def test_requests_when_a_log_is_read_are_few(form: str) -> None:
    """A read of a log takes one request for the manifest and one for every 16 MiB of chunks."""
    tiered = random_log(form)
    read(tiered.open())
    log, manifest = tiered.keys[ObjectKind.LOG], tiered.keys[ObjectKind.MANIFEST]
    assert tiered.store.calls == [("get", manifest), ("get", log)]


@FORM
def test_segment_when_an_object_is_missing_is_told_by_its_key(form: str) -> None:
    """A missing object, of each of the three kinds, is reported with its key."""
    for kind in ObjectKind:
        tiered = example(form)
        del tiered.store.objects[tiered.keys[kind]]
        with pytest.raises(SegmentUnreadable) as raised:
            read_all(tiered)
        assert raised.value.fault is ReadFault.MISSING
        assert raised.value.where == tiered.keys[kind]


@FORM
@pytest.mark.parametrize("left", [-9, 0])
def test_log_when_its_object_is_cut_is_a_fault_of_length(form: str, left: int) -> None:
    """A read of a cut object, or of an empty one, is a fault of its length."""
    tiered = random_log(form)
    key = tiered.keys[ObjectKind.LOG]
    tiered.store.objects[key] = tiered.store.objects[key][:left]
    assert fault_of(tiered).fault is ReadFault.LENGTH


@pytest.mark.parametrize("form", ["zstd", "sealed", "sealed-zstd"])
def test_log_when_a_chunk_is_changed_is_given_up_to_there(form: str) -> None:
    """A log with a changed chunk is read up to that chunk, by frame checksums and tags."""
    tiered = random_log(form)
    tiered.change(ObjectKind.LOG, 12_500)
    got: list[Piece] = []
    with pytest.raises(SegmentUnreadable) as raised:
        got.extend(tiered.open().pieces())
    assert raised.value.fault in (ReadFault.DAMAGED, ReadFault.LENGTH)
    content = b"".join(got)
    assert tiered.log.startswith(content)
    assert len(content) % 4096 == 0
    assert len(content) > 4096


@SEALED
def test_index_when_it_is_changed_is_told_by_its_name(form: str) -> None:
    """A changed encrypted index is reported by name, and the other indexes are read."""
    tiered = example(form)
    tiered.change(ObjectKind.INDEXES, 20)
    source = tiered.open()
    with pytest.raises(SegmentUnreadable, match="offset"):
        source.index(SegmentPart.OFFSET_INDEX)
    assert source.index(SegmentPart.TIME_INDEX) == tiered.parts[SegmentPart.TIME_INDEX]


@SEALED
@pytest.mark.parametrize("ring", [None, key_ring(IDS[1])], ids=["no ring", "another key"])
def test_encrypted_segment_without_its_key_is_refused(form: str, ring: KeyRing | None) -> None:
    """An encrypted segment without ring, or without its key, tells its sizes alone."""
    tiered = example(form)
    source = open_tiered(tiered.store, tiered.segment, (PREFIX,), ring)
    assert source.log_bytes == len(tiered.log)
    assert fault_of(tiered, source).fault is ReadFault.ENCRYPTED
    with pytest.raises(SegmentUnreadable):
        source.index(SegmentPart.OFFSET_INDEX)


def test_manifest_when_it_is_none_or_of_another_size_is_told() -> None:
    """A missing manifest, or one of another size, is reported, and nothing is read."""
    tiered = example("plain")
    other = replace(tiered.segment, size_bytes=tiered.segment.size_bytes - 1)
    assert fault_of_opening(tiered, other) is ReadFault.MISMATCH
    for content in (b"", b"{}", b"not json"):
        tiered.store.objects[tiered.keys[ObjectKind.MANIFEST]] = content
        assert fault_of_opening(tiered, tiered.segment) is ReadFault.MANIFEST


def test_object_when_it_is_archived_is_told_with_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """An archived object is reported with its storage class."""
    tiered = example("plain")
    source = tiered.open()
    monkeypatch.setattr(
        tiered.store, "get", lambda key, first, last: ObjectArchived(key, "DEEP_ARCHIVE")
    )
    found = fault_of(tiered, source)
    assert found.fault is ReadFault.ARCHIVED
    assert "DEEP_ARCHIVE" in found.detail
    with pytest.raises(SegmentUnreadable):
        tiered.open()


def test_f125_segment_when_the_prefix_was_changed_is_found_under_the_old_one() -> None:
    """A segment under the old prefix is found with one extra request for all segments."""
    tiered = example("plain")
    places = KeyPlaces(("new/", "other/", PREFIX))
    for wasted in (2, 0, 0):
        tiered.store.calls.clear()
        keys, _ = find_manifest(tiered.store, tiered.segment, places)
        assert keys == tiered.keys
        assert len(tiered.store.calls) == wasted + 1


def test_f125_segment_when_its_custom_metadata_names_its_place_is_looked_for_there() -> None:
    """Objects are looked for by custom metadata, the manifest maybe under today's prefix."""
    tiered = example("plain")
    main = tiered.keys[ObjectKind.LOG].removeprefix(PREFIX).removesuffix(".log")
    custom = format_custom_metadata(CustomMetadata(1, PREFIX, main), 1000)
    segment = replace(tiered.segment, custom_metadata=custom)
    assert read(open_tiered(tiered.store, segment, ("new/",))) == tiered.log
    manifest = tiered.keys[ObjectKind.MANIFEST]
    tiered.store.objects[f"new/{main}.rsm-manifest"] = tiered.store.objects.pop(manifest)
    assert read(open_tiered(tiered.store, segment, ("new/",))) == tiered.log


@pytest.mark.parametrize("main_key", ["../../etc/passwd", "/absolute", "a//b", "x\0y"])
def test_segment_when_its_metadata_names_a_key_that_no_store_has_is_told(main_key: str) -> None:
    """An impossible key in the metadata is reported, and never requested from the store."""
    tiered = example("plain")
    custom = format_custom_metadata(CustomMetadata(1, PREFIX, main_key), 1000)
    segment = replace(tiered.segment, custom_metadata=custom)
    assert fault_of_opening(tiered, segment) is ReadFault.MISMATCH
    assert not tiered.store.calls


def test_segment_when_its_custom_metadata_is_another_plugins_is_found_by_its_prefix() -> None:
    """A segment whose custom metadata another plugin wrote is found by the configured prefix."""
    tiered = example("plain")
    segment = replace(tiered.segment, custom_metadata=b"\x01\x02\x04\x04\xed\xa0\x80")
    assert read(open_tiered(tiered.store, segment, (PREFIX,))) == tiered.log


def test_every_fault_has_a_code_and_travels() -> None:
    """Every fault has a code and pickles."""
    for fault in ReadFault:
        assert finding_kind(fault).code.startswith("TIER-")
        sent = pickle.loads(pickle.dumps(SegmentUnreadable(fault, "key", "detail")))
        assert (sent.fault, sent.where, sent.detail) == (fault, "key", "detail")
        assert str(sent) == "key: detail"
