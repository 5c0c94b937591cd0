"""The parts of a job in memory, put together without opening anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.errors import RlmmError
from rlmm.wire.values import WriteAnswer
from spark_tiering.copy_job.request import JobRequest
from spark_tiering.copy_job.wiring import CopyJobContext
from spark_tiering.copy_plan.inputs import MetadataImage, PartitionImage
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.execution.in_process import InProcess
from spark_tiering.segment_sources.protocol import FoundPartition
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.support.builders import TOPIC_ID, tp
from tests.support.partitions.segments import example_partition
from tests.support.stores.memory_store import MemoryStore
from tests.support.tier.copy_plans import PARTITION_COUNT
from tests.support.tier.copy_tasks import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.segment_sources.protocol import UnusablePlace
    from spark_tiering.segments.partition_files import PartitionFiles

JOB_ID = "20231114T221320Z-host-00000a"
NOW_MS = 1_700_000_500_000
ORDERS = tp("orders", 3)


@dataclass
class HeldSource:
    files: Mapping[TopicIdPartition, PartitionFiles]
    unusable: Sequence[UnusablePlace] = ()
    high_watermark: int | None = 257
    is_closed: bool = False

    def partitions(self) -> tuple[list[FoundPartition], list[UnusablePlace]]:
        found = [
            FoundPartition(partition, files, high_watermark=self.high_watermark)
            for partition, files in self.files.items()
        ]
        return found, list(self.unusable)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class HeldMetadata:
    segments: list[SegmentMetadata] = field(default_factory=list)
    absent: set[TopicIdPartition] = field(default_factory=set)
    error: RlmmError | None = None
    """The error of every event and of every question about a segment."""
    asked: list[tuple[list[TopicIdPartition], dict[TopicIdPartition, list[int]]]] = field(
        default_factory=list
    )
    published: list[SegmentMetadata | SegmentUpdate] = field(default_factory=list)
    deleted: list[PartitionDelete] = field(default_factory=list)
    cluster_id: str = "cluster-1"
    topic_id: Uuid = TOPIC_ID
    partition_count: int = PARTITION_COUNT

    def image(
        self,
        partitions: Sequence[TopicIdPartition],
        epochs: Mapping[TopicIdPartition, Sequence[int]],
        timeout_s: float,
    ) -> MetadataImage:
        self.asked.append((list(partitions), {one: list(found) for one, found in epochs.items()}))
        images = tuple(
            PartitionImage(
                one, tuple(found for found in self.segments if found.id.partition == one)
            )
            for one in partitions
            if one not in self.absent
        )
        positions = dict.fromkeys(range(self.partition_count), 10)
        return MetadataImage(
            self.cluster_id, self.topic_id, self.partition_count, positions, images
        )

    def publish(self, event: SegmentMetadata | SegmentUpdate, timeout_s: float) -> WriteAnswer:
        if self.error is not None:
            raise self.error
        self.published.append(event)
        return WriteAnswer(0, len(self.published) - 1, "applied")

    def publish_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate], timeout_s: float
    ) -> list[WriteAnswer | RlmmError]:
        told: list[WriteAnswer | RlmmError] = []
        for event in events:
            try:
                told.append(self.publish(event, timeout_s))
            except RlmmError as error:
                told.append(error)
        return told

    def put_partition_delete(self, delete: PartitionDelete, timeout_s: float) -> WriteAnswer:
        if self.error is not None:
            raise self.error
        self.deleted.append(delete)
        return WriteAnswer(0, len(self.deleted) - 1, "applied")

    def segment(self, segment_id: SegmentId, timeout_s: float) -> SegmentMetadata | None:
        if self.error is not None:
            raise self.error
        return next((one for one in self.segments if one.id == segment_id), None)

    def close(self) -> None: ...


def job_parts(
    files: Mapping[TopicIdPartition, PartitionFiles] | None = None,
    metadata: HeldMetadata | None = None,
    *,
    source: HeldSource | None = None,
    store: Any = None,
    reached: Any = None,
    open_engine: Callable[[], Any] = InProcess,
    **request: Any,
) -> CopyJobContext:
    said: dict[str, Any] = {
        "mode": CopyMode.ARCHIVE,
        "source": LogDirSettings(("nowhere",)),
        "metadata": EmbeddedAccess(folder=NOWHERE.folder),
        "store": NOWHERE,
    }
    return CopyJobContext(
        JobRequest(**(said | request)),
        JOB_ID,
        source=source or HeldSource({ORDERS: example_partition()} if files is None else files),
        cluster=reached,
        store=MemoryStore() if store is None else store,
        metadata=metadata or HeldMetadata(),
        now_ms=lambda: NOW_MS,
        open_engine=open_engine,
    )
