"""An audit of a real cluster that tiers: its metadata, its topics, its offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import object_keys
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletion, OrphanFate
from spark_tiering.maintenance.audit.verdicts import (
    DAY_MS,
    USUAL_PROOFS,
    AuditVerdict,
    OrphanProof,
    SetVerdict,
)
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import delete_topic, produce, until
from tests.support.tier.audited_tiers import codes, manifest_of, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.audit.orphan_deletion import OrphanDeletionResult
    from spark_tiering.maintenance.audit.report import AuditReport
    from tests.kafka.tiered import TieredKafka

_, FINISHED, _, GONE = SegmentState
TOPIC = "audited"


def put_objects(folder: Path, segments: list[SegmentMetadata]) -> None:
    for segment in segments:
        for kind, key in object_keys(segment.id, segment.start_offset).items():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            is_manifest = kind.value == "rsm-manifest"
            path.write_bytes(manifest_of(segment) if is_manifest else b"x")


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
    await produce(kafka.login, TOPIC, [b"x" * 1_000] * 80)

    def started() -> list[SegmentMetadata]:
        found = [one.event for one in kafka.metadata_events(TOPIC)]
        return [one for one in found if isinstance(one, SegmentMetadata)]

    def is_quiet() -> bool:
        done = kafka.segments_that_reached(TOPIC, FINISHED)
        # The active segment rolls by its age; all but an empty one are copied then.
        return done >= 3 and done == len(started()) and len(kafka.local_segments(TOPIC)) == 1

    await until(is_quiet, "all segments are copied, and deleted locally")
    segments = started()
    put_objects(folder, segments)
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
