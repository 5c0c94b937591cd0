"""Expiry and audit beside a real broker that tiers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.findings import expire_findings as kinds
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.retention.retention import RetentionSettings
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import (
    DAY_MS,
    USUAL_PROOFS,
    AuditVerdict,
    OrphanProof,
    SetVerdict,
)
from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletion, OrphanFate
from spark_tiering.maintenance.expire.decision import ExpireOptions, decide
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.expire.topic_ownership import TopicOwner
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import delete_topic, produce, until
from tests.support.stores.segment_objects import put_set
from tests.support.tier.audited_tiers import codes, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletionResult
    from spark_tiering.maintenance.audit.report import AuditReport
    from spark_tiering.maintenance.expire.report import ExpireReport
    from tests.kafka.tiered import TieredKafka

_, FINISHED, _, GONE = SegmentState
TOPIC = "audited"
RECORD_COUNT = 80


def audited(
    kafka: TieredKafka, folder: Path, **deleting: object
) -> tuple[AuditReport, OrphanDeletionResult]:
    request = CareRequest(
        source=SourceSettings(bootstrap_servers=kafka.bootstrap),
        store=LocalSettings(folder),
        topics=SegmentSelection((TOPIC,)),
        wait_s=20.0,
    )
    with (
        open_tier(request, now_ms=lambda: SYSTEM_CLOCK.now_ms() + 2 * DAY_MS) as tier,
        Audit(tier, AuditOptions()) as audit,
    ):
        report = audit.run()
        said = {"is_dry": True, **deleting}
        done = OrphanDeletion(tier, audit.rules, proofs=USUAL_PROOFS, **said)  # type: ignore[arg-type]
        return report, done.run(audit.orphans)


async def test_f116_f119_topic_of_a_real_cluster_when_audited_and_deleted_leaves_proven_orphans(
    kafka_broker: TieredKafka, tmp_path: Path
) -> None:
    """A live topic audits clean; after its deletion the plugin's leftovers are proven orphans."""
    kafka, folder = kafka_broker, tmp_path / "store"
    folder.mkdir()
    await kafka.create_topic(TOPIC)
    await produce(kafka.login, TOPIC, [b"x" * 1_000] * RECORD_COUNT)

    def started() -> list[SegmentMetadata]:
        found = [one.event for one in kafka.metadata_events(TOPIC)]
        return [one for one in found if isinstance(one, SegmentMetadata)]

    def is_quiet() -> bool:
        segments = started()
        # The active segment rolls by its age; all but an empty one are copied then.
        is_complete = any(one.last_offset == RECORD_COUNT - 1 for one in segments)
        done = kafka.segments_that_reached(TOPIC, FINISHED)
        return is_complete and done == len(segments) and len(kafka.local_segments(TOPIC)) == 1

    await until(is_quiet, "all segments are copied, and deleted locally")
    segments = started()
    for one in segments:
        put_set(folder, one)
    report, _ = await asyncio.to_thread(audited, kafka, folder)
    assert report.overall is AuditVerdict.CLEAN, list(report.lines())
    assert verdicts(report) == {SetVerdict.REFERENCED: len(segments)}
    assert not any("no cluster" in note for note in report.notes)
    assert report.topics[0].document(None)["isKnownToCluster"] is True

    await delete_topic(kafka.login, TOPIC)
    await until(
        lambda: kafka.segments_that_reached(TOPIC, GONE) >= len(segments),
        "the brokers have told the end of each deletion",
    )
    report, dry = await asyncio.to_thread(audited, kafka, folder)
    assert report.overall is AuditVerdict.DIRTY
    assert verdicts(report) == {SetVerdict.ORPHAN: len(segments)}
    assert codes(report) == {"TIER-ORPHAN": len(segments), "TIER-TOPIC-UNKNOWN": 1}
    assert {one.fate for one in dry.receipts} == {OrphanFate.WOULD_GO}
    assert {one.orphan.proof for one in dry.receipts} <= {
        OrphanProof.SEGMENT_DELETED, OrphanProof.TOPIC_DELETED, OrphanProof.PARTITION_DELETED,
    }  # fmt: skip
    _, done = await asyncio.to_thread(audited, kafka, folder, is_dry=False)
    assert done.is_fine, list(done.lines())
    assert not [path for path in folder.rglob("*") if path.is_file()]


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


async def test_f117_dry_run_foretells_a_broker(kafka_broker: TieredKafka, tmp_path: Path) -> None:
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
    assert [one.is_fine for one in (first, second, third)] == [False, True, True]
    assert third.plans[0].is_idle
    assert objects == []
    lives: dict[SegmentId, list[SegmentState]] = {}
    for found in kafka_broker.metadata_events(topic):
        assert isinstance(found.event, SegmentMetadata | SegmentUpdate)
        lives.setdefault(found.event.id, []).append(found.event.state)
    assert list(lives.values()) == [[CS, CF, DS, DF]] * 2
    assert kafka_broker.tiering_errors() == []
