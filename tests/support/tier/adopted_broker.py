"""A real broker that copies less than is written."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from rlmm.kafka_messages.offsets import EARLIEST, EARLIEST_LOCAL, LATEST_TIERED
from rlmm.metadata.segment import SegmentState
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from spark_tiering.adopt.adoption import abort, adopt, resume
from spark_tiering.adopt.steps import WindowOptions
from spark_tiering.adopt.topic_actions import AdoptionTopicActions
from spark_tiering.adopt.window import AdoptionWindow
from spark_tiering.copy_job.job import never_stop
from spark_tiering.copy_job.job_lease import open_lease, stop_signals
from spark_tiering.copy_job.request import ClusterAccess, JobRequest, WaitLimits
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segment_sources.cluster import TierCluster
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.kafka.clients import producer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.adopt.outcomes import TopicOutcome
    from spark_tiering.adopt.report import AdoptionReport
    from spark_tiering.copy_plan.inputs import PartitionImage
    from spark_tiering.reporting.progress import Progress
    from spark_tiering.tier_metadata.protocol import TierMetadata
    from tests.kafka.login import Login

PREFIX = "tier/"
SLOW_COPYING = {
    "remote.log.manager.copy.max.bytes.per.second": "8192",
    "remote.log.manager.copier.thread.pool.size": "50",
}
"""
Half a segment a second: there is always something left for us. Each partition that waits for its
share keeps a thread, and without one no copy task begins, so there have to be enough.
"""
ADOPTED_TOPIC = {
    "retention.ms": "86400000",
    "local.retention.ms": "1000",
    "local.retention.bytes": "1",
}
"""Set on the topic itself, beside what every topic has that tiers here; its size has no bound."""
QUICK = WindowOptions(
    quiet_ms=400,
    quiet_max_ms=30_000,
    taken_up_ms=30_000,
    pause_ms=50,
    rounds_max=2,
    is_shrinking_allowed=True,
)


class Killed(BaseException):
    pass


@dataclass
class Death:
    """The *number*-th call of that name, from 1, after which a driver dies."""

    call: str
    number: int = 1
    seen: int = field(default=0, init=False)

    def passed(self, call: str) -> None:
        self.seen += call == self.call
        if call == self.call and self.seen == self.number:
            raise Killed

    def progress(self, progress: Progress) -> None:
        if self.call == "copies" and progress.done >= self.number:
            raise Killed


class DyingHands:
    def __init__(self, hands: AdoptionTopicActions, death: Death) -> None:
        self._hands = hands
        self._death = death

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._hands, name)
        if not callable(found):
            return found

        def call(*args: object, **options: object) -> object:
            told = found(*args, **options)
            self._death.passed(name)
            return told

        return call


@dataclass
class Adopter:
    login: Login
    folders: tuple[str, ...]
    store: Path

    def request(self, topic: str, mode: CopyMode = CopyMode.ADOPT) -> JobRequest:
        return JobRequest(
            mode,
            LogDirSettings(self.folders),
            EmbeddedAccess(bootstrap_servers=self.login.bootstrap),
            LocalSettings(self.store),
            prefix=PREFIX,
            cluster=ClusterAccess(self.login.bootstrap),
            filters=SegmentSelection(topics=(topic,)),
            waits=WaitLimits(publish_s=20, ready_s=20, unit_s=60),
        )

    async def adopt(self, topic: str, options: WindowOptions = QUICK) -> TopicOutcome:
        return await self._run(topic, lambda at: adopt(at, options))

    async def resume(self, topic: str) -> TopicOutcome:
        return await self._run(topic, lambda at: resume(at, topic, QUICK))

    async def abort(self, topic: str) -> TopicOutcome:
        return await self._run(topic, lambda at: abort(at, topic, QUICK))

    async def _run(self, topic: str, way: Callable[[Any], AdoptionReport]) -> TopicOutcome:
        def run() -> TopicOutcome:
            with open_surroundings(self.request(topic)) as at:
                (outcome,) = way(at).topics
                return outcome

        return await asyncio.to_thread(run)

    async def die(self, topic: str, death: Death) -> bool:
        """Run one job that dies; return whether it died before it ended."""

        def run() -> bool:
            with (
                open_surroundings(self.request(topic)) as at,
                open_lease(at, CopyMode.ADOPT) as life,
            ):
                assert at.cluster is not None
                facts = at.cluster.partition_facts(lambda name: name == topic)
                claimed = JobTopic(topic, next(iter(facts)).topic_id)
                life.claim([claimed])
                signs = stop_signals(at, life.records, never_stop)
                hands = AdoptionTopicActions(at, claimed, life, signs, on_progress=death.progress)
                try:
                    AdoptionWindow(topic, DyingHands(hands, death), QUICK).adopt()
                except Killed:
                    return True
                return False

        return await asyncio.to_thread(run)

    def _of_cluster(self, ask: Callable[[TierCluster], Any]) -> Any:
        with TierCluster(self.login.bootstrap) as cluster:
            return ask(cluster)

    async def explicit(self, topic: str) -> dict[str, str | None]:
        told = await asyncio.to_thread(
            self._of_cluster, lambda cluster: cluster.topic_settings([topic], None)
        )
        return {name: one.value for name, one in told[topic].items() if one.is_explicit}

    async def change(self, topic: str, settings: dict[str, str]) -> None:
        await asyncio.to_thread(
            self._of_cluster, lambda cluster: cluster.alter_topic_settings(topic, settings)
        )

    async def ends(self, topic: str) -> tuple[int, int, int]:
        """Return log start, local start and highest tiered offset of partition 0."""

        def ask(cluster: TierCluster) -> tuple[int, int, int]:
            (partition,) = cluster.partition_facts(lambda name: name == topic)
            ends = [
                cluster.offsets([partition], time).get(partition, -1)
                for time in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)
            ]
            return ends[0], ends[1], ends[2]

        found: tuple[int, int, int] = await asyncio.to_thread(self._of_cluster, ask)
        return found

    async def metadata(
        self, work: Callable[[TierMetadata, TopicIdPartition], Any], topic: str
    ) -> Any:
        def run() -> Any:
            with TierCluster(self.login.bootstrap) as cluster:
                (partition,) = cluster.partition_facts(lambda name: name == topic)
            access = EmbeddedAccess(bootstrap_servers=self.login.bootstrap)
            with contextlib.closing(open_metadata_access(access)) as opened:
                return work(opened, partition)

        return await asyncio.to_thread(run)

    async def image(self, topic: str) -> PartitionImage:
        def read(metadata: TierMetadata, partition: TopicIdPartition) -> PartitionImage:
            (image,) = metadata.image([partition], {}, 20).partitions
            return image

        found: PartitionImage = await self.metadata(read, topic)
        return found

    def is_ours(self, segment: SegmentMetadata) -> bool:
        return segment.broker_id == -1

    def log_of(self, segment: SegmentMetadata) -> bytes:
        key = object_keys(segment.id, segment.start_offset, PREFIX)[ObjectKind.LOG]
        return (self.store / key).read_bytes()


@contextlib.asynccontextmanager
async def producing(
    login: Login, topic: str, most: float = float("inf")
) -> AsyncIterator[list[bytes]]:
    """Produce up to *most* records to partition 0; yield those acknowledged, in order."""
    written: list[bytes] = []

    async def write() -> None:
        async with producer(login) as client:
            while len(written) < most:
                value = b"%08d" % len(written) + b"x" * 492
                with contextlib.suppress(KafkaError):  # of a busy machine: it is sent once more
                    await client.send_and_wait(topic, value, partition=0)
                    written.append(value)

    task = asyncio.create_task(write())
    try:
        yield written
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def values_of(logs: Iterable[bytes]) -> set[bytes]:
    return {
        record.value or b""
        for log in logs
        for batch in walk(log)
        if isinstance(batch, Batch)
        for record in batch.records()
        if isinstance(record, Record)
    }


def finished_ranges(image: PartitionImage) -> list[tuple[int, int]]:
    return sorted(
        (one.start_offset, one.last_offset + 1)
        for one in image.segments
        if one.state is SegmentState.COPY_SEGMENT_FINISHED
    )
