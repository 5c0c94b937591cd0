"""Tiered segments for programs: copied, read by range and by index, deleted."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.executor.object_check import look
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.range_reading import FETCH_BYTES
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.storage import (
    MANIFESTS_KEPT,
    CopiedSegment,
    CopyFailure,
    TierStorage,
    Unreadable,
    open_storage,
)
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.results import ObjectAbsent
from tests.support.builders import started
from tests.support.partitions.segments import content_of, example_partition
from tests.support.stores.encrypted_segments import seal_segment
from tests.support.stores.recorded_manifests import recorded
from tests.support.stores.tiered_bytes import key_ring
from tests.support.tier.copy_tasks import (
    FIRST,
    PLAIN,
    PREFIX,
    SECOND,
    ZSTD,
    copy_task,
    report_on,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.executor.tasks import CopyOptions

EXAMPLE = example_partition()
LOG = EXAMPLE.contents[SECOND.file(".log")]
SEGMENT = copy_task(EXAMPLE).segment
PARTS = {
    SegmentPart.LOG: LOG,
    **{
        part: EXAMPLE.contents[f"{SECOND.base_offset:020d}{suffix}"]
        for part, suffix in (
            (SegmentPart.OFFSET_INDEX, ".index"),
            (SegmentPart.TIME_INDEX, ".timeindex"),
            (SegmentPart.TXN_INDEX, ".txnindex"),
        )
    },
    SegmentPart.PRODUCER_SNAPSHOT: EXAMPLE.contents[f"{SECOND.next_offset:020d}.snapshot"],
    SegmentPart.LEADER_EPOCHS: b"0\n1\n4 0\n",
}
BOTH = pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def store(folder: Path) -> LocalStore:
    return LocalStore(LocalSettings(folder, is_synced=False))


def joined(found: Iterator[bytes | memoryview | Unreadable] | Unreadable) -> bytes:
    assert not isinstance(found, Unreadable), found
    pieces = list(found)
    assert not [piece for piece in pieces if isinstance(piece, Unreadable)], pieces
    return b"".join(bytes(piece) for piece in pieces if not isinstance(piece, Unreadable))


@BOTH
def test_copy_by_a_program_equals_a_jobs(store: LocalStore, options: CopyOptions) -> None:
    """A program and a job write the same bytes but for the writer's name."""
    storage = TierStorage(store, PREFIX, options=options, writer="job-20231114")
    copied = storage.copy(SEGMENT, PARTS)
    assert isinstance(copied, CopiedSegment)
    assert copied.is_new
    assert copied.stored_bytes == sum(found.size_bytes for found in store.list())
    again = run(copy_task(EXAMPLE, options=options), store)
    assert again.outcome is UnitOutcome.FOUND
    assert storage.copy(SEGMENT, PARTS) == replace(copied, is_new=False)
    assert joined(storage.fetch(SEGMENT)) == LOG
    for part, content in PARTS.items():
        if part is not SegmentPart.LOG:
            assert storage.fetch_index(SEGMENT, part) == content


@BOTH
def test_f124_any_range_has_both_ends_in_it(store: LocalStore, options: CopyOptions) -> None:
    """A range has both ends inclusive and is cut to the log."""
    storage = TierStorage(store, PREFIX, options=options)
    storage.copy(SEGMENT, PARTS)
    rng = random.Random(11)
    for _ in range(50):
        first = rng.randrange(len(LOG))
        last = rng.randrange(first, len(LOG) + 5000)
        assert joined(storage.fetch(SEGMENT, first, last)) == LOG[first : last + 1]
    assert joined(storage.fetch(SEGMENT, 7, 7)) == LOG[7:8]
    assert joined(storage.fetch(SEGMENT, len(LOG) - 1)) == LOG[-1:]
    assert joined(storage.fetch(SEGMENT, 0, 2**40)) == LOG


@pytest.mark.parametrize(("first", "last"), [(5, 4), (-1, 4), (len(LOG), None)])
def test_f124_impossible_range_is_refused(store: LocalStore, first: int, last: int | None) -> None:
    """An end before its start, or a start behind the log, is a caller's mistake."""
    storage = TierStorage(store, PREFIX)
    if last is not None:
        # That is so whatever is there.
        with pytest.raises(InvalidArgument):
            storage.fetch(SEGMENT, first, last)
    storage.copy(SEGMENT, PARTS)
    with pytest.raises(InvalidArgument):
        storage.fetch(SEGMENT, first, last)


def test_f124_segment_that_is_not_there_when_read_is_absent_by_name(store: LocalStore) -> None:
    """A missing object of a segment is reported with its kind."""
    storage = TierStorage(store, PREFIX)
    keys = object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX)
    absent = ObjectAbsent(keys[ObjectKind.MANIFEST])
    assert storage.fetch(SEGMENT) == absent
    assert storage.fetch_index(SEGMENT, SegmentPart.TXN_INDEX) == absent
    storage.copy(SEGMENT, PARTS)
    assert joined(storage.fetch(SEGMENT)) == LOG
    store.delete(keys[ObjectKind.LOG])
    assert storage.fetch(SEGMENT) == ObjectAbsent(keys[ObjectKind.LOG])
    assert storage.fetch_index(SEGMENT, SegmentPart.TXN_INDEX) == PARTS[SegmentPart.TXN_INDEX]
    store.delete(keys[ObjectKind.INDEXES])
    found = storage.fetch_index(SEGMENT, SegmentPart.TXN_INDEX)
    assert found == ObjectAbsent(keys[ObjectKind.INDEXES])


def test_index_that_a_segment_does_not_have_when_fetched_is_none(store: LocalStore) -> None:
    """A segment without aborted transactions has no transaction index, which is not missing."""
    task = copy_task(EXAMPLE, FIRST)
    run(task, store)
    storage = TierStorage(store, PREFIX)
    assert storage.fetch_index(task.segment, SegmentPart.TXN_INDEX) is None
    report = report_on(EXAMPLE, FIRST)
    content = content_of(EXAMPLE, SegmentPart.OFFSET_INDEX, report.parts[SegmentPart.OFFSET_INDEX])
    assert not isinstance(content, SegmentFinding)
    assert storage.fetch_index(task.segment, SegmentPart.OFFSET_INDEX) == content
    with pytest.raises(InvalidArgument):
        storage.fetch_index(task.segment, SegmentPart.LOG)


def test_empty_index_when_fetched_is_empty(store: LocalStore) -> None:
    """A fetch of an empty index returns no bytes and makes no request to the store."""
    storage = TierStorage(store, PREFIX)
    storage.copy(SEGMENT, {**PARTS, SegmentPart.OFFSET_INDEX: b""})
    assert storage.fetch_index(SEGMENT, SegmentPart.OFFSET_INDEX) == b""


def test_f124_object_when_it_goes_away_is_reported_at_the_end(store: LocalStore) -> None:
    """A fetch returns the bytes it has read and ends with the reason when the object disappears."""
    size_bytes = 3 * FETCH_BYTES
    segment = replace(SEGMENT, size_bytes=size_bytes)
    storage = TierStorage(store, PREFIX)
    storage.copy(segment, {**PARTS, SegmentPart.LOG: bytes(size_bytes)})
    found = storage.fetch(segment)
    assert not isinstance(found, Unreadable)
    first = next(found)
    assert isinstance(first, bytes)
    assert len(first) == FETCH_BYTES
    key = object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX)[ObjectKind.LOG]
    store.delete(key)
    assert list(found) == [ObjectAbsent(key)]


@BOTH
def test_damaged_log_ends_in_reason(store: LocalStore, folder: Path, options: CopyOptions) -> None:
    """A damaged log gives the bytes before the damage, then one finding."""
    storage = TierStorage(store, PREFIX, options=options)
    storage.copy(SEGMENT, PARTS)
    path = folder / object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX)[ObjectKind.LOG]
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    found = storage.fetch(SEGMENT, 1)
    pieces = [found] if isinstance(found, Unreadable) else list(found)
    assert isinstance(pieces[-1], LayoutFinding)
    assert pieces[-1].kind is LayoutFault.LENGTH
    if options.is_compressed:
        path.write_bytes(content[:-9] + bytes(9))
        found = storage.fetch(SEGMENT)
        assert not isinstance(found, Unreadable)
        *good, last = list(found)
        assert b"".join(map(bytes, good)) == LOG[: 3 * 4096]  # type: ignore[arg-type]  # pieces
        assert isinstance(last, LayoutFinding)
        assert last.kind is LayoutFault.DAMAGED


@BOTH
def test_encrypted_segment_reads_with_its_ring(store: LocalStore, options: CopyOptions) -> None:
    """An encrypted segment's ranges and indexes read as the source with the key ring."""
    TierStorage(store, PREFIX, options=options).copy(SEGMENT, PARTS)
    seal_segment(store, SEGMENT, PREFIX)
    closed = TierStorage(store, PREFIX).fetch(SEGMENT)
    assert isinstance(closed, LayoutFinding)
    assert closed.kind is LayoutFault.ENCRYPTED
    storage = TierStorage(store, PREFIX, ring=key_ring())
    found = storage.fetch(SEGMENT, 5000, 9999)
    assert not isinstance(found, Unreadable)
    assert b"".join(map(bytes, found)) == LOG[5000:10_000]  # type: ignore[arg-type]  # pieces
    for part, content in PARTS.items():
        if part is not SegmentPart.LOG:
            assert storage.fetch_index(SEGMENT, part) == content


def test_encrypted_and_unreadable_manifests_when_read_are_named(store: LocalStore) -> None:
    """Encrypted manifests and unreadable ones are two different findings."""
    storage = TierStorage(store, PREFIX)
    key = object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX)[ObjectKind.MANIFEST]
    encrypted = recorded("plain").replace(
        b'"compression":', b'"encryption":{"dataKey":"k:eA==","aad":"eA=="},"compression":'
    )
    for content, fault in (
        (encrypted, LayoutFault.ENCRYPTED),
        (b"{}", LayoutFault.FIELD_MISSING),
        (b"", LayoutFault.NOT_JSON),
    ):
        store.put(key, BytesContent(content))
        found = storage.fetch(SEGMENT)
        index = storage.fetch_index(SEGMENT, SegmentPart.TIME_INDEX)
        for told in (found, index):
            assert isinstance(told, LayoutFinding)
            assert told.kind in (fault, LayoutFault.UNSUPPORTED)
        assert found == index
        storage.delete(SEGMENT)


def test_f118_segment_when_deleted_twice_then_both_are_fine(store: LocalStore) -> None:
    """A deletion removes all objects and the cached manifest; a second one succeeds."""
    storage = TierStorage(store, PREFIX)
    storage.copy(SEGMENT, PARTS)
    joined(storage.fetch(SEGMENT))
    assert storage.delete(SEGMENT).is_done
    assert not list(store.list())
    assert isinstance(storage.fetch(SEGMENT), ObjectAbsent)
    assert storage.delete(SEGMENT).is_done


def test_files_copied_by_a_program_are_streamed(tmp_path: Path, store: LocalStore) -> None:
    """The storage streams a broker's files, and a missing one is an error that leaves no object."""
    paths: dict[SegmentPart, Path | bytes] = {}
    for part, content in PARTS.items():
        paths[part] = tmp_path / part.value
        (tmp_path / part.value).write_bytes(content)
    storage = TierStorage(store, PREFIX)
    absent = {**paths, SegmentPart.TIME_INDEX: tmp_path / "nothing"}
    told = storage.copy(SEGMENT, absent)
    assert isinstance(told, CopyFailure)
    assert told.outcome is UnitOutcome.SOURCE_FAILED
    assert not list(store.list())
    assert isinstance(storage.copy(SEGMENT, paths), CopiedSegment)
    assert joined(storage.fetch(SEGMENT)) == LOG
    other = storage.copy(SEGMENT, {**paths, SegmentPart.TIME_INDEX: b"other" * 12})
    assert isinstance(other, CopyFailure)
    assert other.outcome is UnitOutcome.CONFLICT


@pytest.mark.parametrize(
    ("segment", "parts"),
    [
        (replace(SEGMENT, txn_index_empty=True), PARTS),
        (SEGMENT, {part: PARTS[part] for part in PARTS if part is not SegmentPart.TXN_INDEX}),
        (SEGMENT, {**PARTS, SegmentPart.TXN_INDEX: b""}),
        (replace(SEGMENT, size_bytes=len(LOG) - 1), PARTS),
        (SEGMENT, {part: PARTS[part] for part in PARTS if part is not SegmentPart.TIME_INDEX}),
    ],
    ids=["transactions hidden", "index lacking", "index empty", "other size", "part lacking"],
)
def test_segment_that_no_reader_could_use_when_copied_is_refused(
    store: LocalStore, segment: SegmentMetadata, parts: dict[SegmentPart, Path | bytes]
) -> None:
    """A copy that contradicts its metadata is refused, and nothing is written."""
    with pytest.raises(InvalidArgument):
        TierStorage(store, PREFIX).copy(segment, parts)
    assert not list(store.list())


def test_segment_when_its_metadata_names_another_prefix_is_there(store: LocalStore) -> None:
    """A segment whose metadata names another prefix is read and deleted there."""
    TierStorage(store, "old/").copy(SEGMENT, PARTS)
    storage = TierStorage(store, "new/")
    assert isinstance(storage.fetch(SEGMENT), ObjectAbsent)
    named = replace(SEGMENT, custom_metadata=format_custom_metadata(CustomMetadata(prefix="old/")))
    assert joined(storage.fetch(named, 0, 9)) == LOG[:10]
    assert look(store, SEGMENT, "old/") is StoredObjects.WHOLE
    storage.delete(named)
    assert look(store, SEGMENT, "old/") is StoredObjects.NONE


def test_manifests_that_are_remembered_when_many_are_read_are_few(store: LocalStore) -> None:
    """Repeated ranges fetch the manifest once, and the number of cached manifests is bounded."""
    TierStorage(store, PREFIX).copy(SEGMENT, PARTS)
    asked: list[str] = []

    class Counted:
        def get(self, key: str, first: int, last: int) -> object:
            asked.append(key)
            return store.get(key, first, last)

    storage = TierStorage(Counted(), PREFIX)  # type: ignore[arg-type]  # all of a store that is needed
    for start in range(3):
        joined(storage.fetch(SEGMENT, start))
    assert len([key for key in asked if key.endswith(ObjectKind.MANIFEST)]) == 1
    first = copy_task(EXAMPLE, FIRST)
    run(first, store)
    keys = object_keys(first.segment.id, 0, PREFIX)
    manifest = store.get(keys[ObjectKind.MANIFEST], 0, 10_000)
    assert isinstance(manifest, bytes)
    for label in range(MANIFESTS_KEPT):
        other = started(label)
        key = object_keys(other.id, other.start_offset, PREFIX)[ObjectKind.MANIFEST]
        store.put(key, BytesContent(manifest))
        assert storage.fetch_index(other, SegmentPart.TXN_INDEX) is None
    joined(storage.fetch(SEGMENT))
    assert len([key for key in asked if key == asked[0]]) == 2


def test_storage_when_opened_by_its_address_then_reads_what_is_there(tmp_path: Path) -> None:
    """A storage opened by its address reads, and closes its store with itself."""
    with open_storage(str(tmp_path / "objects"), options=ZSTD) as storage:
        assert isinstance(storage.copy(SEGMENT, PARTS), CopiedSegment)
    with open_storage(f"file://{tmp_path}/objects") as storage:
        assert joined(storage.fetch(SEGMENT)) == LOG
