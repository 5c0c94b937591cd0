"""The nine steps of an adoption on a stock broker under a running producer, and their refusals."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, EventRejected
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.adopt.adoption import adopt
from spark_tiering.adopt.outcomes import AdoptionRefusal, TopicStatus
from spark_tiering.copy_job.job import make_job_plan, run_job
from spark_tiering.copy_job.job_lease import open_lease
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.copy_job.wiring import open_surroundings
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.job_registry.job_store import JobTopic
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.kafka.clients import create_topic, produce, until
from tests.kafka.node import PATIENT
from tests.kafka.tiered import TieredKafka, tiered_node
from tests.kafka.tools import METADATA_TOPIC
from tests.support.kafka.kafka_logs import settings_for
from tests.support.tier.adopted_broker import (
    ADOPTED_TOPIC,
    QUICK,
    SLOW_COPYING,
    Adopter,
    Death,
    finished_ranges,
    producing,
    values_of,
)
from tests.support.tier.simulated_adoption import standing_and_reason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.tier_metadata.protocol import TierMetadata
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.jars import Jars

STARTED, FINISHED, *_ = SegmentState
RECORDS = 120
"""Four closed segments, of which the broker copies one every other second."""


@pytest.fixture(scope="module")
def slow_kafka(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredKafka]:
    """Start one broker that copies slowly for the module; each test uses its own topic."""
    folder = tmp_path_factory.mktemp("kafka") / "slow"
    with tiered_node(kafka_jars, folder, {**PATIENT, **SLOW_COPYING}) as node:
        yield TieredKafka(node.start())
        node.stop()


@pytest.fixture
def adopter(slow_kafka: TieredKafka, tmp_path: Path) -> Adopter:
    return Adopter(slow_kafka.login, (str(slow_kafka.node.data),), tmp_path / "store")


async def test_topic_adopted_under_a_producer(slow_kafka: TieredKafka, adopter: Adopter) -> None:
    """Each range is copied once, brokers go on and trim, settings return, no record is lost."""
    topic = "adopted"
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    before = await adopter.explicit(topic)
    async with producing(slow_kafka.login, topic) as written:
        await until(lambda: len(written) > RECORDS, "enough was written")
        outcome = await adopter.adopt(topic)
        assert (outcome.standing, outcome.why, outcome.findings) == (TopicStatus.ADOPTED, None, ())
        assert {one.fate for one in outcome.receipts} == {CopyFate.FINISHED}
        last = max(one.last_offset for one in outcome.receipts)
        assert await adopter.explicit(topic) == before
        _, _, tiered = await adopter.ends(topic)
        assert tiered >= last
        await until(
            lambda: all(int(one.stem) > last for one in slow_kafka.local_segments(topic)),
            "the local segments below the last copy were deleted",
        )
    local = []
    for path in slow_kafka.local_segments(topic):
        with suppress(FileNotFoundError):  # it goes when the broker has copied it
            local.append(path.read_bytes())
    image = await adopter.image(topic)
    ranges = finished_ranges(image)
    assert ranges[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(ranges))
    ours = [one for one in image.segments if adopter.is_ours(one)]
    assert {one.state for one in ours} == {FINISHED}
    assert {one.id.uuid for one in ours} == {one.uuid for one in outcome.receipts}
    start, local_start, _ = await adopter.ends(topic)
    assert start == 0
    assert local_start > last
    logs = [path.read_bytes() for path in slow_kafka.objects(topic)]
    assert values_of([*local, *logs, *map(adopter.log_of, ours)]) >= set(written)


async def test_f120_late_event_is_refused(slow_kafka: TieredKafka, adopter: Adopter) -> None:
    """The metadata refuses a late finish event of a dead job, and brokers never see that copy."""
    topic = "late"
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    async with producing(slow_kafka.login, topic) as written:
        await until(lambda: len(written) > RECORDS, "enough was written")
        assert await adopter.die(topic, Death("copies"))
        left = [one for one in (await adopter.image(topic)).segments if adopter.is_ours(one)]
        (opened,) = [one for one in left if one.state is not FINISHED][:1]
        assert (await adopter.abort(topic)).standing is TopicStatus.ABORTED

        def finish(metadata: TierMetadata, _: TopicIdPartition) -> None:
            with pytest.raises(EventRejected):
                metadata.publish(
                    SegmentUpdate(opened.id, -1, opened.event_timestamp_ms, None, FINISHED), 20
                )

        await adopter.metadata(finish, topic)
    assert opened.id not in {one.id for one in (await adopter.image(topic)).segments}


WINDOW = {
    "remote.log.copy.disable": "true",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
"""Nothing expires in a window: else a copy of old records would be deleted when it is begun."""


async def test_open_window_is_seen_by_a_service(slow_kafka: TieredKafka, adopter: Adopter) -> None:
    """The service names topics with an open window, which brokers do not copy."""
    topic = "left-open"
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    log = await KafkaLog.open(settings_for(slow_kafka.login, METADATA_TOPIC, is_observer=True))
    try:
        async with producing(slow_kafka.login, topic) as written:
            await until(lambda: len(written) > RECORDS, "enough was written")
            assert topic not in await log.topics_not_copied(timeout_s=20)
            assert await adopter.die(topic, Death("look", 3))
            assert topic in await log.topics_not_copied(timeout_s=20)
            assert (await adopter.explicit(topic)).items() >= WINDOW.items()
        assert (await adopter.abort(topic)).standing is TopicStatus.ABORTED
        assert topic not in await log.topics_not_copied(timeout_s=20)
    finally:
        await log.close()


async def test_retention_by_size_expires_nothing(slow_kafka: TieredKafka, adopter: Adopter) -> None:
    """Uncopied segments count beside their copies, so retention by size would delete records."""
    topic = "counted"
    settings = {**ADOPTED_TOPIC, "retention.bytes": "300000"}
    await slow_kafka.create_topic(topic, settings=settings)
    before = await adopter.explicit(topic)
    await produce(slow_kafka.login, topic, [b"x" * 500] * 440)
    outcome = await adopter.adopt(topic)
    assert (outcome.standing, outcome.findings) == (TopicStatus.ADOPTED, ())
    assert sum(one.log_bytes for one in outcome.receipts) > 150_000
    last = max(one.last_offset for one in outcome.receipts)
    await until(
        lambda: all(int(one.stem) > last for one in slow_kafka.local_segments(topic)),
        "the local segments below the last copy were deleted",
    )
    assert (await adopter.ends(topic))[0] == 0
    assert await adopter.explicit(topic) == before


async def test_nothing_is_copied_across_tier_end(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """Nothing is copied across a tier's end within a segment: overlaps would hide records."""
    kafka = fresh_kafka.tiered({"remote.log.manager.copy.max.bytes.per.second": "256"})
    adopter = Adopter(kafka.login, (str(kafka.node.data),), tmp_path / "store")
    topic = "within"
    await kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    await produce(kafka.login, topic, [b"x" * 500] * 150)
    await kafka.wait_until_tiered(topic, 1)

    def overlap(metadata: TierMetadata, partition: TopicIdPartition) -> None:
        """Start a foreign copy of half of the next segment."""
        segment_id = SegmentId(partition, Uuid.of(1, 2))
        half = SegmentMetadata(
            segment_id, 28, 40, 77, 1_000, 1_000, ((0, 28),), 1_000, txn_index_empty=True
        )
        metadata.publish(half, 20)
        metadata.publish(SegmentUpdate(segment_id, 77, 2_000, None, FINISHED), 20)

    await adopter.metadata(overlap, topic)
    before = await adopter.explicit(topic)
    outcome = await adopter.adopt(topic)
    assert outcome.why is not None
    assert outcome.why.reason is AdoptionRefusal.NOT_AT_NEXT_OFFSET
    assert await adopter.explicit(topic) == before
    assert not any(adopter.is_ours(one) for one in (await adopter.image(topic)).segments)


async def test_pattern_adopts_tiered_topics_only(slow_kafka: TieredKafka, adopter: Adopter) -> None:
    """A pattern adopts only tiered topics; named ones are refused, a busy one is left alone."""
    names = ["many-one", "many-two"]
    for name in names:
        await slow_kafka.create_topic(name, settings=ADOPTED_TOPIC)
        await produce(slow_kafka.login, name, [b"x" * 500] * 100)
    await create_topic(slow_kafka.login, "many-plain")

    def run() -> list[tuple[str, str, str]]:
        request = adopter.request("many-*")
        with (
            open_surroundings(request) as other,
            open_lease(other, CopyMode.ADOPT) as life,
            open_surroundings(
                replace(
                    request, filters=SegmentSelection(topics=("many-*", "many-plain", "nowhere"))
                )
            ) as at,
        ):
            assert other.cluster is not None
            (held,) = other.cluster.partition_facts(lambda name: name == "many-two")
            life.claim([JobTopic(held.topic, held.topic_id)])
            report = adopt(at, QUICK)
        assert not report.is_fine
        assert not report.is_busy
        assert report.left_open == []
        return [
            (one.topic, one.standing.value, "" if one.why is None else one.why.reason.value)
            for one in report.topics
        ]

    assert await asyncio.to_thread(run) == [
        ("many-plain", "refused", "not-tiered"),
        ("nowhere", "refused", "no-such-topic"),
        ("many-one", "adopted", ""),
        ("many-two", "refused", "topic-busy"),
    ]


@pytest.mark.parametrize(
    ("case", "states", "reason"),
    [
        ("lone", [STARTED], AdoptionRefusal.LONE_COPY),
        ("alone", [STARTED, FINISHED], AdoptionRefusal.LONE_COPY),
        ("hole", [STARTED, FINISHED], AdoptionRefusal.TIER_HAS_HOLE),
    ],
)
async def test_tier_with_a_gap_is_refused(
    slow_kafka: TieredKafka,
    adopter: Adopter,
    case: str,
    states: list[SegmentState],
    reason: AdoptionRefusal,
) -> None:
    """A gap that would let brokers delete records is refused before anything changes."""
    await slow_kafka.create_topic(case, settings=ADOPTED_TOPIC)
    if case == "hole":
        await produce(slow_kafka.login, case, [b"x" * 500] * 30)
        await slow_kafka.wait_until_tiered(case, 1)

    def spoil(metadata: TierMetadata, partition: TopicIdPartition) -> None:
        segment_id = SegmentId(partition, Uuid.of(1, 2))
        lone = SegmentMetadata(
            segment_id, 2_800, 2_827, 77, 1_000, 1_000, ((0, 2_800),), 1_000, txn_index_empty=True
        )
        for state in states:
            later = SegmentUpdate(segment_id, 77, 2_000, None, state)
            metadata.publish(lone if state is STARTED else later, 20)

    await adopter.metadata(spoil, case)
    before = await adopter.explicit(case)
    refused = standing_and_reason(await adopter.adopt(case))
    assert refused == (TopicStatus.REFUSED, reason)
    assert await adopter.explicit(case) == before
    assert not (adopter.store / "tier/rlmm-jobs/adopt").exists()


async def test_job_when_it_would_copy_beside_the_broker_then_refused(
    slow_kafka: TieredKafka, adopter: Adopter, tmp_path: Path
) -> None:
    """Without a window the job copies no tiered topic, nor beside the wrong metadata."""
    topic = "beside"
    await slow_kafka.create_topic(topic, settings=ADOPTED_TOPIC)
    await produce(slow_kafka.login, topic, [b"x" * 500] * 60)

    def refuse() -> list[str]:
        elsewhere = EmbeddedAccess(folder=tmp_path / "log")
        archive = adopter.request(topic, CopyMode.ARCHIVE)
        with open_surroundings(replace(archive, metadata=elsewhere)) as at:
            (planned,) = make_job_plan(at).plan.partitions
        with open_surroundings(archive) as at, pytest.raises(ConfigError, match="log of its own"):
            run_job(at)
        with (
            open_surroundings(adopter.request(topic)) as at,
            pytest.raises(ConfigError, match="stands still"),
        ):
            run_job(at)
        with (
            open_surroundings(replace(adopter.request(topic), metadata=elsewhere)) as at,
            pytest.raises(ConfigError, match="never see"),
        ):
            adopt(at)
        assert not planned.copies
        return [run.reason for run in planned.left_out]

    assert await asyncio.to_thread(refuse) == [NotCopiedReason.BROKER_COPIES]
