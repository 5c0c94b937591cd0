"""Copies that fail at any call leave the segment in the store whole, or not at all."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.object_check import look
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.tasks import CopyTask, UnitOutcome
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.results import ObjectFacts
from tests.support.partitions.segments import MemoryFiles, example_partition
from tests.support.stores.failing_stores import FailingFiles, SourceTrouble, StoreTrouble, failing
from tests.support.tier.copy_tasks import (
    PLAIN,
    SECOND,
    ZSTD,
    Time,
    assert_equals_source,
    copy_task,
    run,
)

EXAMPLE = example_partition()
LOG = SECOND.file(".log")
STORE_CALLS, SOURCE_CALLS = 16, 40
"""More than a copy of the example makes."""

STORE_TROUBLES = st.dictionaries(
    st.integers(0, STORE_CALLS), st.sampled_from(StoreTrouble), max_size=3
)
SOURCE_TROUBLES = st.dictionaries(
    st.integers(0, SOURCE_CALLS), st.sampled_from(SourceTrouble), max_size=2
)


def judge(task: CopyTask, store: LocalStore, files: MemoryFiles, *, is_done: bool) -> None:
    key = object_key(task.segment.id, task.segment.start_offset, ObjectKind.MANIFEST, task.prefix)
    has_manifest = isinstance(store.head(key), ObjectFacts)
    found = look(store, task.segment, task.prefix)
    assert has_manifest or not is_done
    assert (found is StoredObjects.WHOLE) == has_manifest
    assert has_manifest or found in (StoredObjects.NONE, StoredObjects.PARTIAL)
    if has_manifest:
        assert_equals_source(task, store, files)
    assert not list(store.open_uploads())


@given(
    store_troubles=STORE_TROUBLES,
    source_troubles=SOURCE_TROUBLES,
    seconds_each=st.sampled_from([0.0, 0.0, 2.5, 3.0, 3.5, 4.0, 10.0]),
    is_compressed=st.booleans(),
    again=st.sampled_from([SegmentAction.COPY, SegmentAction.RESUME]),
)
def test_f102_f108_f121_copy_when_anything_fails_then_is_whole_or_absent_and_a_repeat_ends_it(
    store_troubles: dict[int, StoreTrouble],
    source_troubles: dict[int, SourceTrouble],
    seconds_each: float,
    *,
    is_compressed: bool,
    again: SegmentAction,
) -> None:
    """No manifest stands without a whole segment, and a failed copy can be repeated or resumed."""
    options = ZSTD if is_compressed else PLAIN
    source = FailingFiles(EXAMPLE, LOG, source_troubles)
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(LocalSettings(Path(folder) / "objects", is_synced=False))
        task = copy_task(source, options=options, planned_from=EXAMPLE)
        flaky = failing(store, store_troubles)
        result = run(task, flaky, Time(step_s=seconds_each))
        if not (store_troubles or source_troubles or seconds_each):
            assert result.outcome is UnitOutcome.COPIED
        assert result.outcome not in (UnitOutcome.CONFLICT, UnitOutcome.STOPPED)
        judge(task, store, EXAMPLE, is_done=result.outcome.is_done)
        healthy = replace(task, files=EXAMPLE, action=again)
        repeated = run(healthy, store)
        assert repeated.outcome.is_done, repeated
        judge(healthy, store, EXAMPLE, is_done=True)
        assert run(replace(task, action=SegmentAction.COMPLETE), store).outcome is UnitOutcome.FOUND


@given(
    store_troubles=STORE_TROUBLES,
    deletion_troubles=st.dictionaries(
        st.integers(0, 5), st.sampled_from([StoreTrouble.AWAY]), max_size=3
    ),
)
def test_f108_f118_copy_when_it_is_ended_then_nothing_is_left_however_often_that_fails(
    store_troubles: dict[int, StoreTrouble], deletion_troubles: dict[int, StoreTrouble]
) -> None:
    """A deletion removes the manifest first, and can be repeated until complete."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(LocalSettings(Path(folder) / "objects", is_synced=False))
        task = copy_task(EXAMPLE)
        run(task, failing(store, store_troubles))
        place = (task.segment.id, task.segment.start_offset, task.prefix)
        flaky = failing(store, deletion_troubles)
        ended = delete_objects(flaky, *place)
        found = look(store, task.segment, task.prefix)
        if ended.is_done:
            assert found is StoredObjects.NONE
        else:
            assert ended.detail
            assert found is not StoredObjects.DAMAGED
        assert delete_objects(store, *place).is_done
        assert delete_objects(store, *place).is_done
        assert look(store, task.segment, task.prefix) is StoredObjects.NONE
        assert not list(store.list())
