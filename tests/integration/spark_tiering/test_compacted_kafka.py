"""A compacted topic of a stock broker: left out and named, and archived on request."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer

from rlmm.metadata.segment import SegmentState
from rlmm.partition_log.checkpoints import CheckpointFault, parse_offsets
from rlmm.partition_log.names import LOG, TopicPartition
from spark_tiering.copy_job.job import make_job_plan, run_job
from spark_tiering.copy_job.report import hindrances
from spark_tiering.copy_job.request import ClusterAccess, JobRequest
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.execution.in_process import InProcess
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.kafka.clients import create_topic, until
from tests.support.kafka.kafka_logs import own_topic

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.copy_plan.plan import CopyPlan
    from tests.kafka.login import Login
    from tests.kafka.tiered import TieredKafka

SETTINGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


async def test_compacted_topic_only_on_request(kafka_broker: TieredKafka, tmp_path: Path) -> None:
    """A compacted topic is archived only on request; emptied segments are no gap."""
    topic = own_topic("kept")
    await create_topic(kafka_broker.login, topic, settings=SETTINGS)
    await write(kafka_broker.login, topic)
    data = kafka_broker.node.data
    await until(lambda: is_clean(data, topic), "the cleaner had been everywhere")
    request = JobRequest(
        CopyMode.ARCHIVE,
        LogDirSettings((str(data),)),
        EmbeddedAccess(folder=tmp_path / "log"),
        LocalSettings(tmp_path / "store", is_synced=False),
        cluster=ClusterAccess(kafka_broker.bootstrap),
        filters=SegmentSelection((topic,)),
    )
    refused = await asyncio.to_thread(planned, request)
    assert not refused.in_turn()
    (line,) = hindrances(refused)
    assert "cannot be copied, compacted: its cleanup.policy has compact" in line
    wanted = replace(request, filters=SegmentSelection((topic,), with_compacted=True))
    sizes = rolled_bytes(data / f"{topic}-0")
    copied = await asyncio.to_thread(archived, wanted)
    assert copied == [size_bytes for size_bytes in sizes if size_bytes]
    again = await asyncio.to_thread(planned, wanted)
    reasons = {run.reason for one in again.partitions for run in one.left_out}
    # Whether a segment is left without records or merged with its neighbour is up to the cleaner.
    empty = {NotCopiedReason.EMPTY} if 0 in sizes else set()
    assert reasons == {NotCopiedReason.COVERED, NotCopiedReason.ACTIVE} | empty


def planned(request: JobRequest) -> CopyPlan:
    with open_surroundings(request, engine=InProcess()) as at:
        return make_job_plan(at).plan


def archived(request: JobRequest) -> list[int]:
    """Return the sizes of the finished segments in order."""
    with open_surroundings(request, engine=InProcess()) as at:
        report = run_job(at)
        assert report.is_fine, list(report.lines())
        (partition,) = make_job_plan(at).seen.surveyed
        (image,) = at.metadata.image([partition], {}, 30.0).partitions
    assert {one.state for one in image.segments} == {SegmentState.COPY_SEGMENT_FINISHED}
    return [
        one.size_bytes for one in sorted(image.segments, key=lambda segment: segment.start_offset)
    ]


async def write(login: Login, topic: str) -> None:
    """Write a few keys repeatedly: idempotent, and in committed and aborted transactions."""
    rng = random.Random(1)

    async def send(producer: AIOKafkaProducer, number: int) -> None:
        key = b"%d" % (number % 7)
        await producer.send_and_wait(topic, rng.randbytes(900), key=key, partition=0)

    async with AIOKafkaProducer(**login.for_aiokafka(), enable_idempotence=True) as producer:
        for number in range(60):
            await send(producer, number)
    writer = AIOKafkaProducer(**login.for_aiokafka(), transactional_id=f"{topic}-writer")
    async with writer:
        for number in range(60):
            await writer.begin_transaction()
            await send(writer, number)
            await (writer.commit_transaction() if number % 5 else writer.abort_transaction())


def is_clean(data: Path, topic: str) -> bool:
    """Return whether the cleaner's checkpoint reaches the active segment."""
    file = data / "cleaner-offset-checkpoint"
    noted = parse_offsets(file.read_bytes()) if file.exists() else {}
    active = list_segments(path.name for path in (data / f"{topic}-0").iterdir())[-1]
    if isinstance(noted, CheckpointFault):
        return False
    return noted.get(TopicPartition(topic, 0), -1) == active.base_offset


def rolled_bytes(folder: Path) -> list[int]:
    """Return the sizes of the rolled logs in order."""
    listed = list_segments(path.name for path in folder.iterdir())
    return [(folder / one.file(LOG)).stat().st_size for one in listed if one.is_rolled]
