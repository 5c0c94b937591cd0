"""A broker's log folder, a metadata log and a store in one scratch folder."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentState
from rlmm.partition_log.names import TopicPartition
from spark_tiering.copy_job.job import make_job_plan, run_job
from spark_tiering.copy_job.request import JobRequest, WaitLimits
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import UnitLost
from spark_tiering.executor.object_check import examine
from spark_tiering.executor.tasks import CopyOptions, CopyTask
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditVerdict
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import process_store
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.partitions.log_dirs import TOPIC_ID, add_partition, make_log_dir
from tests.support.partitions.segments import MemoryFiles, example_partition
from tests.support.tier.copy_tasks import FIRST, SECOND, assert_equals_source, copy_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_job.report import CopyReceipt, JobReport
    from spark_tiering.copy_job.wiring import CopyJobContext
    from spark_tiering.copy_plan.plan import CopyPlan
    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.executor.tasks import CopyResult
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.results import OpenUpload
    from spark_tiering.tier_metadata.opening import AccessSettings
    from spark_tiering.tier_metadata.protocol import TierMetadata

ORDERS = TopicIdPartition(TOPIC_ID, "orders", 3)
PAYMENTS = TopicIdPartition(Uuid(bytes(range(32, 48))), "payments", 2)
PARTITIONS = (ORDERS, PAYMENTS)
LISTED = (FIRST, SECOND)
JOBS = "rlmm-jobs/"
PLACES = 3
"""Partitions of the metadata log: few, so that it is opened in no time."""
LATER_MS = 300_000
"""After this the beats of every job that was killed are overdue."""
PLAIN = CopyOptions(chunk_bytes=4096)
ZSTD = CopyOptions(is_compressed=True, chunk_bytes=4096)
QUICK = WaitLimits(publish_s=30.0, ready_s=30.0, unit_s=60.0)
"""Never reached, unless something is broken or a test has it so."""


@dataclass
class TierPlace:
    """A log folder, a metadata log and a store in one folder, or *store* and *metadata*."""

    folder: Path
    store: StoreSettings | None = None
    metadata: AccessSettings | None = None
    prefix: str = ""
    partitions: Sequence[TopicIdPartition] = PARTITIONS
    options: CopyOptions = PLAIN
    sources: dict[TopicIdPartition, MemoryFiles] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ends = {TopicPartition(one.topic, one.partition): 257 for one in self.partitions}
        self.log_dir = make_log_dir(self.folder / "logs", high_watermarks=ends)
        for one in self.partitions:
            add_partition(self.log_dir, f"{one.topic}-{one.partition}", one.topic_id)
            self.sources[one] = example_partition()
        self.store_settings = self.store or LocalSettings(self.folder / "store", is_synced=False)
        self.archive = self.folder / "archive"
        if self.metadata is None:
            asyncio.run(begin_log(self.archive / "log"))
            self.metadata = EmbeddedAccess(
                folder=self.archive / "log", snapshots=self.archive / "snapshots"
            )

    def file(self, name: str, partition: TopicIdPartition = ORDERS) -> Path:
        return self.log_dir / f"{partition.topic}-{partition.partition}" / name

    def request(self, **changes: Any) -> JobRequest:
        assert self.metadata is not None
        said: dict[str, Any] = {
            "mode": CopyMode.ARCHIVE,
            "source": LogDirSettings((str(self.log_dir),)),
            "metadata": self.metadata,
            "store": self.store_settings,
            "prefix": self.prefix,
            "options": self.options,
            "waits": QUICK,
        }
        return JobRequest(**(said | changes))

    @contextmanager
    def opened(
        self, engine: ExecutionEngine | None = None, later_ms: int = 0, **changes: Any
    ) -> Iterator[CopyJobContext]:
        with open_surroundings(
            self.request(**changes), engine=engine, now_ms=lambda: SYSTEM_CLOCK.now_ms() + later_ms
        ) as at:
            yield at

    def plan(self, **changes: Any) -> CopyPlan:
        with self.opened(**changes) as at:
            return make_job_plan(at).plan

    def run(
        self,
        plan: CopyPlan | None = None,
        *,
        engine: ExecutionEngine | None = None,
        later_ms: int = 0,
        why_stop: Callable[[], str] = lambda: "",
        on_plan: Callable[[CopyPlan], None] = lambda plan: None,
        **changes: Any,
    ) -> JobReport:
        with self.opened(engine, later_ms, **changes) as at:
            return run_job(at, plan, why_stop=why_stop, on_plan=on_plan)

    def segments(self) -> list[SegmentMetadata]:
        assert self.metadata is not None
        with closing(open_metadata_access(self.metadata)) as metadata:
            return segments_of(metadata, self.partitions)

    def objects(self, folder: str = "") -> dict[str, int]:
        jobs = f"{self.prefix}{JOBS}"
        return {
            one.key: one.size_bytes
            for one in process_store(self.store_settings).list(self.prefix + folder)
            if folder or not one.key.startswith(jobs)
        }

    def claims(self) -> list[str]:
        return list(self.objects(f"{JOBS}claims/"))

    def check(self) -> list[SegmentMetadata]:
        """Return the segments of a tier at rest after checking its invariants."""
        segments = self.segments()
        finished = [one for one in segments if one.state is SegmentState.COPY_SEGMENT_FINISHED]
        store = process_store(self.store_settings)
        for segment in finished:
            seen = examine(store, segment, self.prefix, is_sure=True)
            assert seen.objects is StoredObjects.WHOLE, (segment, seen.findings)
            partition, uuid = segment.id.partition, segment.id.uuid
            listed = ListedSegment(segment.start_offset, segment.last_offset + 1)
            files = self.sources[partition]
            task = copy_task(files, listed, partition=partition, uuid=uuid, prefix=self.prefix)
            assert_equals_source(task, store, files)
        ranges = [(one.id.partition, one.start_offset) for one in finished]
        assert len(set(ranges)) == len(ranges), f"copied twice: {ranges}"
        known = {
            key
            for one in segments
            for key in object_keys(one.id, one.start_offset, self.prefix).values()
        }
        assert set(self.objects()) <= known, "objects that no metadata knows of"
        audited = self.audited()
        assert audited in (None, AuditVerdict.CLEAN, AuditVerdict.DIRTY), (
            "nothing that is finished is lost"
        )
        return segments

    def audited(self) -> AuditVerdict | None:
        if not isinstance(self.metadata, EmbeddedAccess) or self.metadata.folder is None:
            return None
        request = CareRequest(
            embedded=self.metadata.folder.parent, store=self.store_settings, prefix=self.prefix
        )
        later_ms = SYSTEM_CLOCK.now_ms() + 3 * DAY_MS
        with (
            open_tier(request, now_ms=lambda: later_ms) as tier,
            Audit(tier, AuditOptions()) as audit,
        ):
            return audit.run().overall

    def check_clean(
        self, listed: Sequence[ListedSegment] = LISTED, *, is_alone: bool = True
    ) -> None:
        """Check that all is copied once, nothing open or left over; *is_alone*: nothing foreign."""
        segments = self.check()
        expected = [(one, each.base_offset) for one in self.partitions for each in listed]
        assert [(one.id.partition, one.start_offset) for one in segments] == expected
        assert {one.state for one in segments} <= {SegmentState.COPY_SEGMENT_FINISHED}
        assert len(self.objects()) == 3 * len(segments)
        assert not self.open_uploads()
        assert not is_alone or self.audited() in (None, AuditVerdict.CLEAN)

    def open_uploads(self) -> list[OpenUpload]:
        return list(process_store(self.store_settings).open_uploads(self.prefix))


def segments_of(
    metadata: TierMetadata, partitions: Sequence[TopicIdPartition]
) -> list[SegmentMetadata]:
    image = metadata.image(partitions, {}, 10.0)
    assert len(image.partitions) == len(partitions)
    found = {one.partition: one.segments for one in image.partitions}
    return [
        segment
        for partition in partitions
        for segment in sorted(found[partition], key=lambda one: one.start_offset)
    ]


async def begin_log(folder: Path, partition_count: int = PLACES) -> None:
    log = await FilesLog.open(folder, partition_count=partition_count)
    await log.close()


def fates(receipts: Iterable[CopyReceipt], partition: TopicIdPartition = ORDERS) -> list[str]:
    return [one.fate.value for one in receipts if one.partition == partition]


def states(segments: Sequence[SegmentMetadata]) -> list[str]:
    names = ("CS", "CF", "DS", "DF")
    return [names[segment.state.value] for segment in segments]


def digest_of_tree(folder: Path, without: Sequence[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of every file below *folder*, except names in *without*."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in without
    }


class WatchedUnits(InProcess):
    def __init__(
        self,
        before: Callable[[CopyTask], None] = lambda task: None,
        after: Callable[[CopyResult], None] = lambda result: None,
        lost: Sequence[int] = (),
    ) -> None:
        """Copies that begin at an offset in *lost* never report back."""
        super().__init__()
        self.copied: list[CopyTask] = []
        self._before = before
        self._after = after
        self._lost = lost

    def run_units(self, units: Any, fn: Any, on_result: Any = None) -> Any:
        tell = on_result or (lambda outcome: None)
        outcomes = []
        for index, unit in enumerate(units):
            is_copy = isinstance(unit, CopyTask)
            if is_copy:
                self._before(unit)
                self.copied.append(unit)
            if is_copy and unit.segment.start_offset in self._lost:
                outcomes.append(UnitLost(index, "its worker died"))
            else:
                outcomes += super().run_units([unit], fn)
            if is_copy and not isinstance(outcomes[-1], UnitLost):
                self._after(outcomes[-1])
            tell(outcomes[-1])
        return outcomes
