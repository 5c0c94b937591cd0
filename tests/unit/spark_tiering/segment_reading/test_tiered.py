"""Tiered segments in every form, a broker's folder, and windows of batches."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.segment_reading.log_files import FolderSegment
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable, finding_kind
from spark_tiering.segment_reading.tiered import (
    KeyPlaces,
    TieredSegment,
    find_manifest,
    open_tiered,
)
from spark_tiering.segment_reading.windows import BatchWindow, batch_windows
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.stores.results import ObjectArchived
from tests.support.partitions.segments import MemoryFiles, changed, data_batch, example_partition
from tests.support.stores.encrypted_segments import IDS
from tests.support.stores.tiered_bytes import (
    FORMS,
    PREFIX,
    TieredBytes,
    example,
    key_ring,
    random_log,
)
from tests.support.tier.copy_tasks import FIRST, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

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


ACTIVE = ListedSegment(251, None)


@pytest.mark.parametrize("form", FORMS)
def test_segment_when_read_from_both_sides_is_the_same(form: str) -> None:
    """A segment reads the same from the broker's folder and from the tier."""
    tiered = example(form).open()
    files = example_partition()
    listed = list_segments(files.facts())[1]
    assert listed == SECOND
    source = FolderSegment(files, listed)
    assert source.log_bytes == tiered.log_bytes
    for ends in ((0, None), (100, 5000)):
        assert b"".join(source.pieces(*ends)) == b"".join(tiered.pieces(*ends))
    for part in SegmentPart:
        if part is not SegmentPart.LOG:
            assert source.index(part) == tiered.index(part)
    assert FolderSegment(files, FIRST).index(SegmentPart.TXN_INDEX) is None


def test_active_segment_when_read_has_its_indexes_without_what_was_allocated() -> None:
    """The indexes of the active segment are read without their preallocated rest."""
    files = example_partition()
    entry, time = bytes.fromhex("0000000400000100"), bytes.fromhex("0000018bcfe577a900000004")
    files.contents["00000000000000000251.index"] = entry + bytes(8 * 100)
    files.contents["00000000000000000251.timeindex"] = time + bytes(12 * 100)
    source = FolderSegment(files, ACTIVE)
    assert source.index(SegmentPart.OFFSET_INDEX) == entry
    assert source.index(SegmentPart.TIME_INDEX) == time
    assert source.index(SegmentPart.PRODUCER_SNAPSHOT) is None
    assert source.index(SegmentPart.LEADER_EPOCHS) == b"0\n2\n4 0\n6 251\n"
    assert len(b"".join(source.pieces())) == source.log_bytes


def test_log_when_it_shrinks_while_it_is_read_is_changed() -> None:
    """A log that shrinks during a read is reported as changed."""
    files = example_partition()
    source = FolderSegment(files, FIRST)
    files.contents[source.where] = files.contents[source.where][:-1]
    with pytest.raises(SegmentUnreadable) as raised:
        list(source.pieces())
    assert raised.value.fault is ReadFault.CHANGED


def test_segment_when_its_files_are_not_there_or_no_such_is_told() -> None:
    """A segment without its files, or with an unusable one, is reported with the file's name."""
    with pytest.raises(SegmentUnreadable) as raised:
        FolderSegment(MemoryFiles({}), FIRST)
    assert raised.value.fault is ReadFault.MISSING
    source = FolderSegment(changed(example_partition(), checkpoint=b"none"), FIRST)
    with pytest.raises(SegmentUnreadable) as raised:
        source.index(SegmentPart.LEADER_EPOCHS)
    assert raised.value.where == "leader-epoch-checkpoint"
    with pytest.raises(InvalidArgument):
        list(source.pieces(2, 1))


class Pieces:
    where = "log"

    def __init__(self, log: bytes, piece_bytes: int = 700) -> None:
        self.log = log
        self.log_bytes = len(log)
        self._piece_bytes = piece_bytes

    def pieces(self, first_byte: int = 0, last_byte: int | None = None) -> Iterator[bytes]:
        behind = self.log_bytes if last_byte is None else last_byte + 1
        for at in range(first_byte, behind, self._piece_bytes):
            yield self.log[at : min(at + self._piece_bytes, behind)]

    def index(self, part: SegmentPart) -> bytes | None:
        del part
        return None


@given(
    sizes=st.lists(st.integers(61, 3000), max_size=12),
    piece_bytes=st.integers(1, 5000),
    window_bytes=st.integers(1, 6000),
    tail=st.integers(0, 60),
)
def test_windows_are_whole(
    sizes: list[int], piece_bytes: int, window_bytes: int, tail: int
) -> None:
    """Windows are whole batches in order, no larger than needed, and have all batches."""
    batches = [data_batch(n, n, count=1, size=size) for n, size in enumerate(sizes)]
    rest = data_batch(99, 99, count=1, size=100)[:tail]
    log = b"".join(batches) + rest
    windows = list(batch_windows(Pieces(log, piece_bytes), window_bytes=window_bytes))
    assert b"".join(one.content + one.tail for one in windows) == log
    assert b"".join(one.tail for one in windows) == rest
    starts = {sum(sizes[:n]) for n in range(len(sizes) + 1)}
    position = 0
    for one in windows:
        assert one.position == position in starts
        position += len(one.content)
        assert position in starts
        assert len(one.content) <= window_bytes or len(one.content) in sizes
    assert not [one for one in windows[:-1] if one.tail]


def test_length_that_no_batch_has_when_met_is_damage_behind_what_is_right() -> None:
    """An impossible batch length is damage, and the batches before it are returned."""
    good = data_batch(0, 0)
    log = good + bytes(100)
    got: list[BatchWindow] = []
    with pytest.raises(SegmentUnreadable, match="byte 1171") as raised:
        got.extend(batch_windows(Pieces(log)))
    assert raised.value.fault is ReadFault.DAMAGED
    assert [one.content for one in got] == [good]
