"""Copy tasks, and the objects in a store after one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.limited_io import UnitLimits
from spark_tiering.executor.segment_copy import carry_out
from spark_tiering.executor.segment_inspection import inspect_with_state
from spark_tiering.executor.tasks import CopyOptions, CopyTask
from spark_tiering.executor.throttle import UNBOUND, PaceLimits, Throttle
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.segment_inspection import USUAL_RULES
from spark_tiering.segments.segment_listing import ListedSegment, list_segments
from spark_tiering.storage import TierStorage
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.builders import tp
from tests.support.partitions.segments import content_of

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.executor.tasks import CopyResult
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_inspection import InspectionRules
    from spark_tiering.segments.segment_parts import SegmentReport
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore

ORDERS = tp("orders", 3)
UUID = Uuid(bytes(range(16, 32)))
FIRST, SECOND = ListedSegment(0, 120), ListedSegment(120, 251)
"""Of the example partition; the second has an aborted transaction."""
PREFIX = "kafka/"
PLAIN = CopyOptions(chunk_bytes=4096)
ZSTD = CopyOptions(is_compressed=True, chunk_bytes=4096)
NOWHERE = LocalSettings(Path("nowhere"))
"""For tasks whose store is handed over beside them."""


def report_on(
    files: PartitionFiles, listed: ListedSegment, rules: InspectionRules = USUAL_RULES
) -> SegmentReport:
    return inspect_with_state(files, listed, list_segments(files.facts()), 0, rules)


def copy_task(
    files: PartitionFiles,
    listed: ListedSegment = SECOND,
    store: StoreSettings = NOWHERE,
    options: CopyOptions = PLAIN,
    **changes: Any,
) -> CopyTask:
    partition: TopicIdPartition = changes.pop("partition", ORDERS)
    planned_from: PartitionFiles = changes.pop("planned_from", files)
    report = report_on(planned_from, listed)
    assert listed.next_offset is not None
    fields: dict[str, Any] = {
        "start_offset": listed.base_offset,
        "last_offset": listed.next_offset - 1,
        "broker_id": 1,
        "max_timestamp_ms": report.max_timestamp_ms,
        "event_timestamp_ms": 1_700_000_300_000,
        "epochs": report.epochs,
        "size_bytes": report.size_bytes,
        "txn_index_empty": report.txn_index_empty,
    }
    fields |= {name: changes.pop(name) for name in fields if name in changes}
    segment = SegmentMetadata(SegmentId(partition, changes.pop("uuid", UUID)), **fields)
    usual: dict[str, Any] = {
        "log_start": 0,
        "prefix": PREFIX,
        "job_id": "job-20231114",
        "pace": UNBOUND,
        "deadline_s": 600.0,
        "action": SegmentAction.COPY,
    }
    return CopyTask(segment, files, store=store, options=options, **(usual | changes))


@dataclass
class Time:
    """Time that passes only when a caller sleeps, or by *step_s* at each look at the clock."""

    now_s: float = 1000.0
    step_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        self.now_s += self.step_s
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def watch(
    time: Time | None = None, deadline_s: float = 600.0, pace: PaceLimits = UNBOUND
) -> UnitLimits:
    time = time or Time()
    return UnitLimits(deadline_s, Throttle(pace, time.clock, time.sleep), time.clock)


def run(task: CopyTask, store: ObjectStore, time: Time | None = None) -> CopyResult:
    return carry_out(task, store, watch(time, task.deadline_s, task.pace))


def digest_read_back(task: CopyTask, store: ObjectStore) -> str:
    found = TierStorage(store, task.prefix).fetch(task.segment)
    assert not isinstance(found, tuple), found
    digest = hashlib.sha256()
    for piece in found:  # type: ignore[union-attr]  # a finding fails here
        assert isinstance(piece, bytes | memoryview), piece
        digest.update(piece)
    return digest.hexdigest()


def assert_equals_source(task: CopyTask, store: ObjectStore, files: PartitionFiles) -> None:
    listed = ListedSegment(task.segment.start_offset, task.segment.last_offset + 1)
    log = files.read(listed.file(".log"), 0, 1 << 40)
    assert digest_read_back(task, store) == hashlib.sha256(log).hexdigest()
    storage = TierStorage(store, task.prefix)
    report = report_on(files, listed)
    for part in SegmentPart:
        if part is not SegmentPart.LOG:
            expected = report.parts.get(part)
            content = None if expected is None else content_of(files, part, expected)
            assert not isinstance(content, SegmentFinding)
            assert storage.fetch_index(task.segment, part) == content
