"""Copies to a bucket whose requests are refused, lost, cut and damaged on their way."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import SegmentId
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.object_check import examine
from spark_tiering.executor.tasks import CopyOptions, UnitOutcome
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.stores.s3_faults import S3FaultKind
from spark_tiering.stores.s3_policies import POLICIES
from spark_tiering.stores.s3_settings import MIB
from tests.faults.conftest import SILENCE_MS
from tests.support.partitions.inspection_process import LOG, MadeLog
from tests.support.partitions.segments import MemoryFiles, example_partition
from tests.support.records.batches import forge
from tests.support.stores.s3_stub_requests import Trouble
from tests.support.tier.copy_tasks import (
    PLAIN,
    ZSTD,
    Time,
    copy_task,
    digest_read_back,
    run,
)

if TYPE_CHECKING:
    from spark_tiering.executor.tasks import CopyTask
    from spark_tiering.segments.partition_files import SourceFileFacts
    from spark_tiering.stores.s3 import S3Store
    from tests.support.stores.s3_stub import ObjectStub
    from tests.support.stores.stores_under_test import Bucket

pytestmark = pytest.mark.usefixtures("credentials")
EXAMPLE = example_partition()
LARGE_BYTES = 12 * MIB
OPTIONS = pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
NTH = pytest.mark.parametrize("nth", [0, 1, 2], ids=["log", "indexes", "manifest"])


def example_task(bucket: Bucket, options: CopyOptions = PLAIN) -> CopyTask:
    return copy_task(EXAMPLE, store=bucket.settings, options=options)


def large_task(bucket: Bucket, log: MadeLog | None = None) -> CopyTask:
    made = MadeLog(LARGE_BYTES, 16_384)
    listed = ListedSegment(0, made.next_offset)
    options = CopyOptions(chunk_bytes=MIB)
    planned = copy_task(_Rolled(made), listed, bucket.settings, options)
    return planned if log is None else replace(planned, files=log)


class _Rolled(MadeLog):
    def __init__(self, made: MadeLog) -> None:
        super().__init__(made.size, 16_384)

    def facts(self) -> dict[str, SourceFileFacts]:
        log = super().facts()[LOG]
        return {LOG: log, f"{self.next_offset:020d}.log": log._replace(size_bytes=0)}


def incompressible_task(bucket: Bucket) -> CopyTask:
    rng = random.Random(7)
    batches = [
        forge(rng.randbytes(MIB), 10, base_offset=10 * number, leader_epoch=0)
        for number in range(11)
    ]
    files = MemoryFiles({LOG: b"".join(batches), f"{110:020d}.log": b""})
    options = CopyOptions(is_compressed=True, chunk_bytes=MIB)
    return copy_task(files, ListedSegment(0, 110), bucket.settings, options)


def fail(stub: ObjectStub, operation: str, nth: int, *troubles: Trouble) -> None:
    stub.befall(operation, *[Trouble.NOTHING] * nth, *troubles)


@OPTIONS
def test_f102_f107_f121_f128_log_that_is_there_when_a_copy_is_resumed_then_is_not_sent(
    stub: ObjectStub, store: S3Store, bucket: Bucket, options: CopyOptions
) -> None:
    """The writer compares a log of one GiB by checksum instead of sending it again."""
    fail(stub, "PutObject", 1, *[Trouble.THROTTLED] * 9)
    task = example_task(bucket, options)
    assert run(task, store).outcome is UnitOutcome.STORE_FAILED
    stub.asked.clear()
    assert run(replace(task, action=SegmentAction.RESUME), store).outcome is UnitOutcome.COPIED
    sent = [asked.key for asked in stub.asked if asked.operation == "PutObject"]
    keys = object_keys(task.segment.id, task.segment.start_offset, task.prefix)
    assert sent == [keys[ObjectKind.INDEXES], keys[ObjectKind.MANIFEST]]


def test_copy_of_other_bytes_is_conflict(stub: ObjectStub, store: S3Store, bucket: Bucket) -> None:
    """The returned checksum shows an endpoint that checks nothing, before the manifest."""
    stub.ignores_sums = True
    stub.befall("PutObject", Trouble.DAMAGED)
    result = run(example_task(bucket), store)
    assert result.outcome is UnitOutcome.CONFLICT
    assert "were written" in result.detail
    assert not [key for key in stub.objects if key.endswith(ObjectKind.MANIFEST)]


@pytest.mark.parametrize("action", [SegmentAction.COPY, SegmentAction.RESUME])
def test_f128_copy_to_a_store_that_tells_no_checksums_then_is_compared_by_reading(
    stub: ObjectStub, store: S3Store, bucket: Bucket, action: SegmentAction
) -> None:
    """Without told checksums the writer reads back objects that were there before."""
    stub.tells_sums = False
    task = example_task(bucket)
    assert run(task, store).outcome is UnitOutcome.COPIED
    assert "GetObject" not in stub.operations()
    assert run(replace(task, action=action), store).outcome is UnitOutcome.FOUND
    assert stub.operations().count("GetObject") == 3
    assert run(replace(task, action=SegmentAction.COMPLETE), store).outcome is UnitOutcome.FOUND
    # The manifest, and the two whose checksums it names.
    assert stub.operations().count("GetObject") == 6


def test_archived_objects_are_named(stub: ObjectStub, store: S3Store, bucket: Bucket) -> None:
    """The check reports a copy that no broker can read before it is restored."""
    task = example_task(bucket)
    run(task, store)
    keys = object_keys(task.segment.id, task.segment.start_offset, task.prefix)
    stub.objects[keys[ObjectKind.LOG]].storage_class = "GLACIER"
    for action in (SegmentAction.RESUME, SegmentAction.COMPLETE):
        result = run(replace(task, action=action), store)
        assert result.outcome is UnitOutcome.FOUND
        assert "archived (GLACIER)" in result.findings[0]
    stub.tells_sums = False
    result = run(replace(task, action=SegmentAction.COMPLETE), store)
    assert result.outcome is UnitOutcome.UNKNOWN
    stub.objects[keys[ObjectKind.MANIFEST]].storage_class = "GLACIER"
    seen = examine(store, task.segment, task.prefix)
    assert seen.objects is StoredObjects.UNKNOWN
    assert "archived" in seen.findings[0]


@pytest.mark.parametrize("trouble", [Trouble.CUT, Trouble.ANSWER_LOST, Trouble.THROTTLED])
@pytest.mark.parametrize("operation", ["UploadPart", "CompleteMultipartUpload"])
def test_copy_in_parts_when_requests_fail_then_is_whole(
    stub: ObjectStub, store: S3Store, bucket: Bucket, operation: str, trouble: Trouble
) -> None:
    """A log sent in parts repeats failed parts one by one and is whole."""
    stub.befall(operation, trouble)
    task = large_task(bucket)
    result = run(task, store)
    assert result.outcome is UnitOutcome.COPIED
    assert not stub.uploads
    source = task.files.read(LOG, 0, LARGE_BYTES)
    key = object_keys(task.segment.id, 0, task.prefix)[ObjectKind.LOG]
    assert stub.objects[key].content == source
    assert digest_read_back(task, store)


def test_f105_hanging_store_ends_the_unit(stub: ObjectStub, hasty: S3Store, bucket: Bucket) -> None:
    """A unit on a store that hangs ends at its own deadline after the socket's timeouts."""
    attempts = POLICIES[S3FaultKind.TIMED_OUT].attempts_max
    stub.befall("PutObject", *[Trouble.NOT_DONE_LATE] * attempts)
    time = Time()

    def pass_time(seconds: float) -> None:
        time.now_s += 30 + seconds

    bucket.pauses = _Calls(pass_time)  # type: ignore[assignment]  # pauses are appended only
    with bucket.opened(read_timeout_ms=SILENCE_MS) as slow:
        result = run(replace(example_task(bucket), deadline_s=45.0), slow, time)
    assert result.outcome is UnitOutcome.TIMED_OUT
    assert 1 < stub.operations().count("PutObject") < attempts
    assert not stub.objects
    assert run(example_task(bucket), hasty).outcome is UnitOutcome.COPIED


class _Calls:
    def __init__(self, append: object) -> None:
        self.append = append


def test_requests_of_a_copy_are_counted(stub: ObjectStub, store: S3Store, bucket: Bucket) -> None:
    """The count of a copy's requests, on which limits depend, equals the requests made."""
    small, large = example_task(bucket), large_task(bucket)
    for task in (small, replace(small, options=ZSTD), large, incompressible_task(bucket)):
        stub.asked.clear()
        stub.objects.clear()
        result = run(task, store)
        assert result.outcome is UnitOutcome.COPIED, result
        made = [operation for operation in stub.operations() if operation != "HeadBucket"]
        assert result.requests == len(made), made


def test_copy_at_a_pace_takes_its_time(store: S3Store, bucket: Bucket) -> None:
    """A slot keeps to its share of bytes and requests, and may save up one second of it."""
    time = Time()
    task = replace(large_task(bucket), pace=PaceLimits(bytes_per_s=2 * MIB))
    result = run(task, store, time)
    assert result.outcome is UnitOutcome.COPIED
    assert LARGE_BYTES / (2 * MIB) - 3 <= result.seconds <= LARGE_BYTES / (2 * MIB) + 3
    time = Time()
    result = run(replace(example_task(bucket), pace=PaceLimits(requests_per_s=0.5)), store, time)
    assert result.requests / 0.5 - 4 <= result.seconds <= result.requests / 0.5
    large = large_task(bucket)
    other = SegmentId(task.segment.id.partition, task.segment.id.partition.topic_id)
    slow = replace(
        large, pace=PaceLimits(bytes_per_s=1000), segment=replace(large.segment, id=other)
    )
    time = Time()
    assert run(slow, store, time).outcome is UnitOutcome.TIMED_OUT
    assert sum(time.slept) < slow.deadline_s
