"""Expiry beside a real broker: it decides as ours does, and its topics are left to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.findings import expire_findings as kinds
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.retention.retention import RetentionSettings
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.expire.decision import decide
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.expire.options import ExpireOptions
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import produce

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.expire.report import ExpireReport
    from tests.kafka.tiered import TieredKafka

SEGMENTS = 5
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(28 * (SEGMENTS - 1) + 5)]
CS, CF, DS, DF = SegmentState
LIMIT = 2 * 15_000
"""Room for the last short one and for one whole one."""


def request(kafka: TieredKafka, topic: str, store: Path) -> CareRequest:
    return CareRequest(
        source=SourceSettings(bootstrap_servers=kafka.bootstrap),
        store=LocalSettings(store),
        topics=SegmentSelection((topic,)),
    )


def deleted_by(kafka: TieredKafka, topic: str) -> set[SegmentId]:
    events = (found.event for found in kafka.metadata_events(topic))
    return {event.id for event in events if event.state is DS}


async def test_f117_size_when_a_real_broker_expires_then_ours_foretells_what_goes(
    kafka_broker: TieredKafka, tmp_path: Path
) -> None:
    """The dry run by size names exactly what a real broker then expires."""
    topic = "foretold"
    await kafka_broker.create_topic(topic)
    await produce(kafka_broker.login, topic, RECORDS)
    await kafka_broker.wait_until_tiered(topic, SEGMENTS)
    await kafka_broker.wait_until_trimmed(topic)

    def foretell() -> tuple[set[SegmentId], int | None, ExpireReport]:
        with open_tier(request(kafka_broker, topic, tmp_path)) as tier:
            moment = tier.moment()
            (summary,) = moment.partitions()
            plan = decide(
                summary.partition,
                list(moment.segments(summary.partition)),
                standing=TopicOwner.OURS,
                rules=RetentionSettings(retention_bytes=LIMIT),
                options=ExpireOptions(),
                now_ms=tier.now_ms(),
            )
            refused = expire(tier, ExpireOptions(retention_bytes=0), is_applied=True)
        return {one.segment.id for one in plan.doomed}, plan.start_after, refused

    foretold, start, refused = await asyncio.to_thread(foretell)
    assert 0 < len(foretold) < SEGMENTS
    assert [(one.kind, one.subject) for one in refused.findings()] == [(kinds.EXPIRE_LIVE, topic)]
    assert refused.receipts == ()
    assert deleted_by(kafka_broker, topic) == set()

    await kafka_broker.expire(topic, LIMIT)
    await kafka_broker.wait_until_deleted(topic, len(foretold))
    assert deleted_by(kafka_broker, topic) == foretold

    def log_start() -> int | None:
        with open_tier(request(kafka_broker, topic, tmp_path)) as tier:
            assert tier.cluster is not None
            (one,) = tier.moment().partitions()
            return tier.cluster.offsets([one.partition])[one.partition].earliest

    assert await asyncio.to_thread(log_start) == start


async def test_f116_topic_when_its_brokers_have_left_it_half_deleted_then_it_goes_when_asked_for(
    kafka_broker: TieredKafka, tmp_path: Path
) -> None:
    """A deletion begun by real brokers is completed, and the rest goes by the flag."""
    topic = "half-deleted"
    partition = TopicIdPartition(Uuid.of(5, 5), topic, 0)
    segments = [
        SegmentMetadata(SegmentId(partition, Uuid.of(6, at)), at * 10, at * 10 + 9, 1, 1_000, 1_000,
                        ((0, at * 10),), 100)
        for at in range(2)
    ]  # fmt: skip

    def left() -> tuple[list[ExpireReport], list[str]]:
        with open_tier(request(kafka_broker, topic, tmp_path)) as tier:
            for one in segments:
                for key in object_keys(one.id, one.start_offset).values():
                    tier.store.put(key, BytesContent(b"left"))
                tier.writer().publish(one, 20)
                tier.writer().publish(SegmentUpdate(one.id, 1, 2_000, b"\1", CF), 20)
            tier.writer().publish(SegmentUpdate(segments[0].id, 1, 3_000, b"\1", DS), 20)
            reports = [
                expire(tier, options, is_applied=True)
                for options in (
                    ExpireOptions(),
                    ExpireOptions(drops_deleted_topics=True),
                    ExpireOptions(),
                )
            ]
            return reports, [one.key for one in tier.store.list(topic)]

    (first, second, third), objects = await asyncio.to_thread(left)
    assert [one.reason.value for one in first.receipts] == ["deletion-begun"]
    (finding,) = first.findings()
    assert (finding.kind, finding.fields["segments"]) == (kinds.EXPIRE_DELETION, 1)
    assert [one.reason.value for one in second.receipts] == ["topic-deleted"]
    assert (second.is_fine, third.is_fine, third.plans[0].is_idle) == (True, True, True)
    assert objects == []
    lives: dict[SegmentId, list[SegmentState]] = {}
    for found in kafka_broker.metadata_events(topic):
        assert isinstance(found.event, SegmentMetadata | SegmentUpdate)
        lives.setdefault(found.event.id, []).append(found.event.state)
    assert list(lives.values()) == [[CS, CF, DS, DF]] * 2
    assert kafka_broker.tiering_errors() == []
