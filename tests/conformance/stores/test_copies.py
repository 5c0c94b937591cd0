"""Segments copied into every kind of store, read back, found, resumed and taken away again."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.object_check import look
from spark_tiering.executor.object_deletion import delete_objects
from spark_tiering.executor.tasks import CopyOptions, UnitOutcome
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.stores.s3_settings import MIB
from tests.support.partitions.inspection_process import LOG
from tests.support.partitions.segments import MemoryFiles, example_partition
from tests.support.records.batches import forge
from tests.support.stores.stores_under_test import Bucket, Place
from tests.support.tier.copy_tasks import (
    PLAIN,
    SECOND,
    ZSTD,
    assert_equals_source,
    copy_task,
    digest_read_back,
    run,
)

if TYPE_CHECKING:
    from spark_tiering.stores.protocol import ObjectStore

EXAMPLE = example_partition()
LARGE_MIB = 11
"""More than is sent to these stores in one request, however it is compressed."""
FORMS = pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])


def large_partition() -> MemoryFiles:
    rng = random.Random(3)
    log = b"".join(
        forge(rng.randbytes(MIB), 10, base_offset=10 * number) for number in range(LARGE_MIB)
    )
    return MemoryFiles({LOG: log, f"{10 * LARGE_MIB:020d}.log": b""})


@FORMS
def test_f107_f121_f128_copy_life(store: ObjectStore, prefix: str, options: CopyOptions) -> None:
    """A copy reads back equal, is found, completed, resumed and deleted with the right outcome."""
    task = copy_task(EXAMPLE, SECOND, options=options, prefix=prefix)
    assert look(store, task.segment, prefix) is StoredObjects.NONE
    copied = run(task, store)
    assert copied.outcome is UnitOutcome.COPIED
    assert look(store, task.segment, prefix) is StoredObjects.WHOLE
    assert_equals_source(task, store, EXAMPLE)
    written = {one.key: one.modified_ms for one in store.list(prefix)}
    for action in SegmentAction:
        again = run(replace(task, action=action), store)
        assert again.outcome is UnitOutcome.FOUND
        sizes = (again.log_bytes, again.stored_bytes, again.log_crc64nvme)
        assert sizes == (copied.log_bytes, copied.stored_bytes, copied.log_crc64nvme)
    assert {one.key: one.modified_ms for one in store.list(prefix)} == written
    keys = object_keys(task.segment.id, SECOND.base_offset, prefix)
    store.delete(keys[ObjectKind.MANIFEST])
    assert look(store, task.segment, prefix) is StoredObjects.PARTIAL
    assert run(replace(task, action=SegmentAction.RESUME), store).outcome is UnitOutcome.COPIED
    assert look(store, task.segment, prefix) is StoredObjects.WHOLE
    other = replace(task, job_id="another-job")
    assert run(other, store).outcome is UnitOutcome.CONFLICT
    assert_equals_source(task, store, EXAMPLE)
    for _ in range(2):
        assert delete_objects(store, task.segment.id, SECOND.base_offset, prefix).is_done
        assert look(store, task.segment, prefix) is StoredObjects.NONE
    assert not list(store.list(prefix))


@FORMS
def test_f118_f122_large_segment_when_copied_in_parts_reads_back_and_leaves_no_upload(
    store: ObjectStore, place: Place, prefix: str, options: CopyOptions
) -> None:
    """A segment copied in parts is one object, and a killed writer's upload of it is ended."""
    files = large_partition()
    options = replace(options, chunk_bytes=MIB)
    settings = {"store": place.settings} if isinstance(place, Bucket) else {}
    listed = ListedSegment(0, 10 * LARGE_MIB)
    task = copy_task(files, listed, options=options, prefix=prefix, **settings)
    key = object_keys(task.segment.id, 0, prefix)[ObjectKind.LOG]
    place.leave_open(key)
    assert run(task, store).outcome is UnitOutcome.COPIED
    source = hashlib.sha256(files.contents[LOG]).hexdigest()
    assert digest_read_back(task, store) == source
    assert run(replace(task, action=SegmentAction.RESUME), store).outcome is UnitOutcome.FOUND
    assert [one.key for one in store.open_uploads(prefix)] == [key]
    ended = delete_objects(store, task.segment.id, 0, prefix)
    assert (ended.is_done, ended.uploads_ended) == (True, 1)
    assert not list(store.open_uploads(prefix))
    assert not list(store.list(prefix))
