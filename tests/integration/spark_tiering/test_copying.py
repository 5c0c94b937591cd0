"""Segments copied into a folder: read back, found again, refused where they are not as planned."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.object_check import look, read_manifest
from spark_tiering.executor.segment_copy import copy_segment
from spark_tiering.executor.tasks import CopyOptions, UnitOutcome
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_inspection import InspectionRules
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from tests.support.partitions.segments import (
    MemoryFiles,
    changed,
    example_partition,
    recorded_partition,
)
from tests.support.tier.copy_tasks import (
    FIRST,
    PLAIN,
    SECOND,
    ZSTD,
    Time,
    assert_equals_source,
    copy_task,
    report_on,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyTask
    from spark_tiering.stores.content import ContentStream, ObjectContent
    from spark_tiering.stores.results import PutOutcome

EXAMPLE = example_partition()
LOG = SECOND.file(".log")


@pytest.fixture
def settings(tmp_path: Path) -> LocalSettings:
    return LocalSettings(tmp_path / "objects", is_synced=False)


@pytest.fixture
def store(settings: LocalSettings) -> LocalStore:
    return LocalStore(settings)


def manifest_of(task: CopyTask, store: LocalStore) -> Manifest:
    key = object_key(task.segment.id, task.segment.start_offset, ObjectKind.MANIFEST, task.prefix)
    found = read_manifest(store, key)
    assert isinstance(found, Manifest), found
    return found


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
@pytest.mark.parametrize("listed", [FIRST, SECOND], ids=["first", "second"])
def test_segment_when_it_is_copied_then_reads_back_as_the_source(
    store: LocalStore, options: CopyOptions, listed: ListedSegment
) -> None:
    """The copied log and indexes equal the source, and the manifest describes them."""
    task = copy_task(EXAMPLE, listed, options=options)
    result = run(task, store)
    assert (result.outcome, result.detail, result.findings) == (UnitOutcome.COPIED, "", ())
    assert_equals_source(task, store, EXAMPLE)
    manifest = manifest_of(task, store)
    assert manifest.is_compressed == options.is_compressed
    assert isinstance(manifest.described, SegmentDescription)
    assert manifest.described.note is not None
    assert manifest.described.note.job_id == task.job_id
    assert manifest.described.note.writer.startswith("rlmm ")
    assert manifest.described.note.log_object.crc64nvme == result.log_crc64nvme
    assert result.log_bytes == task.segment.size_bytes
    assert result.stored_bytes == sum(found.size_bytes for found in store.list())
    # Three objects, each written and verified; a stream looks first.
    assert result.requests == 6 + options.is_compressed
    assert look(store, task.segment, task.prefix) is StoredObjects.WHOLE


def test_segments_that_a_broker_wrote_when_copied_then_read_back(store: LocalStore) -> None:
    """Each segment of a real broker's recorded partition reads back as its source."""
    files = recorded_partition()
    segments = [one for one in list_segments(files.facts()) if one.is_rolled]
    assert segments
    for listed in segments:
        task = copy_task(files, listed)
        assert run(task, store).outcome is UnitOutcome.COPIED
        assert_equals_source(task, store, files)


@pytest.mark.parametrize(
    ("name", "planned", "files", "outcome"),
    [
        ("other next offset", {"last_offset": 249}, EXAMPLE, UnitOutcome.SOURCE_CHANGED),
        ("other size", {"size_bytes": 14_841}, EXAMPLE, UnitOutcome.SOURCE_CHANGED),
        ("other epochs", {"epochs": ((3, 120),)}, EXAMPLE, UnitOutcome.SOURCE_CHANGED),
        ("other newest record", {"max_timestamp_ms": 1}, EXAMPLE, UnitOutcome.SOURCE_CHANGED),
        ("other transactions", {"txn_index_empty": True}, EXAMPLE, UnitOutcome.SOURCE_CHANGED),
        ("no such segment", {"start_offset": 121}, EXAMPLE, UnitOutcome.SOURCE_GONE),
        ("active now", {}, EXAMPLE.without("251.log", "251.snapshot"), UnitOutcome.SOURCE_CHANGED),
        ("gone", {}, EXAMPLE.without("120.log"), UnitOutcome.SOURCE_GONE),
        (
            "damaged",
            {},
            changed(EXAMPLE, log=EXAMPLE.contents[LOG][:-1] + b"\xff"),
            UnitOutcome.BLOCKED,
        ),
        (
            "producers unknown",
            {"log_start": 0},
            changed(EXAMPLE, snapshot=None, snapshot_before=None).without("00000.log"),
            UnitOutcome.BLOCKED,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_segment_when_it_is_not_what_was_planned_then_nothing_is_written(
    store: LocalStore, name: str, planned: dict[str, Any], files: MemoryFiles, outcome: UnitOutcome
) -> None:
    """A segment that differs from its plan ends the unit with a reason and no object."""
    result = run(copy_task(files, planned_from=EXAMPLE, **planned), store)
    assert result.outcome is outcome, name
    assert result.detail
    assert not list(store.list())
    assert (result.log_bytes, result.stored_bytes, result.log_crc64nvme) == (0, 0, None)


def test_segment_when_its_files_are_wrong_then_they_are_made_anew(store: LocalStore) -> None:
    """The writer rebuilds wrong companion files from the log, and the result names them."""
    files = changed(EXAMPLE, index=b"\0" * 80, timeindex=None, snapshot=b"nothing")
    task = copy_task(files)
    result = run(task, store)
    assert result.outcome is UnitOutcome.COPIED
    assert len(result.findings) == 3
    assert all(
        any(part in found for found in result.findings)
        for part in ("offset: untrimmed", "timestamp: missing", "producerSnapshot: damaged")
    )
    assert_equals_source(task, store, files)
    read_back = copy_task(EXAMPLE)
    assert_equals_source(read_back, store, EXAMPLE)


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
@pytest.mark.parametrize("overtaken_at", list(ObjectKind))
def test_unit_that_runs_twice_at_once_when_one_overtakes_then_both_end_with_the_same_objects(
    store: LocalStore, options: CopyOptions, overtaken_at: ObjectKind
) -> None:
    """Of two attempts of one unit, the later finds the other's objects."""
    task = copy_task(EXAMPLE, options=options)

    class Overtaken:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def put(self, key: str, content: ObjectContent) -> PutOutcome:
            self.let_pass(key)
            return store.put(key, content)

        def put_stream(self, key: str, stream: ContentStream) -> PutOutcome:
            self.let_pass(key)
            return store.put_stream(key, stream)

        def let_pass(self, key: str) -> None:
            if key.endswith(overtaken_at):
                others.append(run(task, store).outcome)

    others: list[UnitOutcome] = []
    outcome = run(task, Overtaken()).outcome
    is_first = overtaken_at is ObjectKind.LOG
    assert others == [UnitOutcome.COPIED]
    assert outcome is (UnitOutcome.FOUND if is_first else UnitOutcome.COPIED)
    assert look(store, task.segment, task.prefix) is StoredObjects.WHOLE
    assert len(list(store.list())) == 3
    assert_equals_source(task, store, EXAMPLE)


@pytest.mark.parametrize("action", [SegmentAction.COPY, SegmentAction.RESUME])
@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
@pytest.mark.parametrize("kind", [ObjectKind.LOG, ObjectKind.INDEXES])
def test_conflict_when_another_object_is_there_then_it_is_left_as_it_is(
    store: LocalStore, kind: ObjectKind, options: CopyOptions, action: SegmentAction
) -> None:
    """A foreign object in the place of the copy is left as it is, and no manifest is written."""
    task = copy_task(EXAMPLE, options=options, action=action)
    key = object_key(task.segment.id, task.segment.start_offset, kind, task.prefix)
    store.put(key, BytesContent(b"somebody else's"))
    result = run(task, store)
    assert result.outcome is UnitOutcome.CONFLICT
    assert key in result.detail
    assert store.get(key, 0, 99) == b"somebody else's"
    assert look(store, task.segment, task.prefix) is StoredObjects.PARTIAL


def test_completion_of_a_wrong_object_conflicts(store: LocalStore, settings: LocalSettings) -> None:
    """Completion reports a missing, damaged or foreign object before it finishes anything."""
    task = replace(copy_task(EXAMPLE), action=SegmentAction.COMPLETE)
    assert run(task, store).outcome is UnitOutcome.CONFLICT
    run(replace(task, action=SegmentAction.COPY), store)
    assert run(task, store).outcome is UnitOutcome.FOUND
    other = run(replace(task, segment=replace(task.segment, size_bytes=1)), store)
    assert other.outcome is UnitOutcome.CONFLICT
    assert "the metadata says 1" in other.detail
    key = object_key(task.segment.id, task.segment.start_offset, ObjectKind.LOG, task.prefix)
    path = settings.folder / key
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert "CRC-64/NVME" in run(task, store).detail
    path.unlink()
    gone = run(task, store)
    assert gone.outcome is UnitOutcome.CONFLICT
    assert "log: there is no such object" in gone.detail
    assert look(store, task.segment, task.prefix) is StoredObjects.DAMAGED


def test_f105_unit_when_its_time_is_up_then_ends_wherever_it_is(store: LocalStore) -> None:
    """A unit past its time ends at the next piece of its source and leaves no object."""
    task = copy_task(EXAMPLE, deadline_s=30.0)
    result = run(task, store, Time(step_s=1.0))
    assert result.outcome is UnitOutcome.TIMED_OUT
    assert "30 s" in result.detail
    assert result.seconds >= 30.0
    assert not list(store.list())
    assert not list(store.open_uploads())


def test_task_when_sent_to_a_worker_is_done_there(tmp_path: Path, settings: LocalSettings) -> None:
    """A task and its result pickle, and the worker opens its own store."""
    folder = tmp_path / "orders-3"
    folder.mkdir()
    for name, content in EXAMPLE.contents.items():
        (folder / name).write_bytes(content)
    task = copy_task(PartitionFolder(str(folder)), store=settings)
    sent = pickle.loads(pickle.dumps(task))
    assert sent == task
    results = []

    def work() -> None:
        results.append(pickle.loads(pickle.dumps(copy_segment(sent))))
        results.append(process_store(settings))

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert results[0].outcome is UnitOutcome.COPIED
    assert results[1] is not process_store(settings)
    assert_equals_source(task, process_store(settings), EXAMPLE)


def test_store_that_cannot_be_opened_when_a_unit_needs_it_is_its_outcome(tmp_path: Path) -> None:
    """A missing folder or wrong settings on one executor fail that unit alone."""
    absent = LocalSettings(tmp_path / "not" / "mounted")
    result = copy_segment(copy_task(EXAMPLE, store=absent))
    assert result.outcome is UnitOutcome.STORE_FAILED
    assert "mounted" in result.detail
    (tmp_path / "file").write_bytes(b"")
    result = copy_segment(copy_task(EXAMPLE, store=LocalSettings(tmp_path / "file")))
    assert result.outcome is UnitOutcome.STORE_FAILED


def test_compacted_segment_when_holes_are_allowed_then_is_copied(store: LocalStore) -> None:
    """A compacted segment is copied when the rules allow holes."""
    log = EXAMPLE.contents[LOG]
    files = changed(EXAMPLE, log=log[: 1171 * 3] + log[1171 * 4 :], index=None, timeindex=None)
    assert run(copy_task(files, planned_from=EXAMPLE), store).outcome is UnitOutcome.SOURCE_CHANGED
    rules = InspectionRules(allows_holes=True)
    report = report_on(files, SECOND, rules=rules)
    task = copy_task(files, planned_from=EXAMPLE, size_bytes=report.size_bytes)
    assert run(task, store).outcome is UnitOutcome.BLOCKED
    assert run(replace(task, rules=rules), store).outcome is UnitOutcome.COPIED
