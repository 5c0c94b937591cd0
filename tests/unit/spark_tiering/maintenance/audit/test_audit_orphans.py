"""Orphans of an audit with their proofs, and deleted topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlmm.inspection.cluster_facts import Rights
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.verdicts import DAY_MS, AuditVerdict, OrphanProof, SetVerdict
from tests.support.cli.metadata_history import START_MS
from tests.support.tier.audited_tiers import (
    CF,
    CS,
    DF,
    DS,
    FINISHED,
    GONE,
    MARKED,
    NOW_MS,
    ORDERS,
    AuditedTier,
    codes,
    segment_of,
    told_cluster,
    verdicts,
    with_cluster,
)

LOG, INDEXES, MANIFEST = ObjectKind


def test_f119_objects_that_no_metadata_knows_when_young_are_in_flight(tier: AuditedTier) -> None:
    """Young unknown objects are in flight, whatever else is known of them."""
    tier.end_partition(FINISHED, ORDERS)
    tier.put(segment_of(1), modified_ms=NOW_MS - DAY_MS + 1)
    report = tier.audit()
    assert verdicts(report) == {SetVerdict.IN_FLIGHT: 1}
    assert not tier.orphans
    tier.now_ms += 1
    tier.audit()
    assert [one.proof for one in tier.orphans] == [OrphanProof.PARTITION_DELETED]


def test_f119_topic_that_the_cluster_does_not_know_is_proof_only_where_it_surely_is_gone(
    tier: AuditedTier,
) -> None:
    """A missing topic proves orphans only when the caller's rights show all topics."""
    with_cluster(tier)
    assert tier.cluster is not None
    tier.put(segment_of(1, partition=GONE))
    tier.audit()
    assert [one.proof for one in tier.orphans] == [OrphanProof.TOPIC_UNKNOWN]
    tier.cluster.told_rights = Rights(on_topic={"gone": frozenset()})
    report = tier.audit()
    assert verdicts(report) == {SetVerdict.UNPROVEN: 1}
    assert not tier.orphans
    tier.cluster.told_rights = Rights()
    tier.bring(segment_of(2, partition=GONE), DF, kinds=())
    tier.audit()
    assert [one.proof for one in tier.orphans] == [OrphanProof.TOPIC_DELETED]


@pytest.mark.parametrize("is_embedded", [True, False])
def test_audit_of_an_archive_when_its_topics_are_gone_then_takes_nothing_for_a_proof(
    tier: AuditedTier, *, is_embedded: bool
) -> None:
    """Deleted topics prove no orphans of an archive, which outlives them and has gaps by design."""
    tier.cluster = told_cluster(ORDERS, log_start=10**6)
    tier.history.topic.cluster_id = "told" if is_embedded else "another"
    if is_embedded:
        tier.request = replace(tier.request, embedded=Path("archive"))
    tier.bring(segment_of(1, partition=GONE), CF)
    tier.bring(segment_of(2, 200, 299), CF)
    tier.bring(segment_of(4, 500, 599), CF)
    tier.put(segment_of(3, 300, 399))
    report = tier.audit()
    assert verdicts(report) == {SetVerdict.REFERENCED: 3, SetVerdict.UNPROVEN: 1}
    assert report.overall is AuditVerdict.DIRTY
    assert codes(report) == {"TIER-UNREFERENCED": 1, "TIER-EXTENT-GAP": 1}
    said = "an archive's own" if is_embedded else "the metadata is of cluster another"
    assert any(said in note for note in report.notes)


def test_f116_topic_deletion_that_stopped_half_way_is_listed_with_bytes_and_last_event(
    tier: AuditedTier,
) -> None:
    """A half-finished topic deletion is listed by topic id with bytes and last event."""
    tier.bring(segment_of(1, 0, 99), CF)
    tier.bring(segment_of(2, 100, 199), DS, kinds=(LOG,))
    tier.bring(segment_of(3, 200, 299), CS, kinds=())
    tier.end_partition(MARKED, ORDERS)
    report = tier.audit()
    assert report.overall is AuditVerdict.DIRTY
    assert verdicts(report) == {SetVerdict.AWAITING_DELETE: 2}
    (finding,) = report.findings.ranked()
    assert finding.kind.code == "TIER-TOPIC-UNKNOWN"
    assert finding.fields == {
        "topic": "orders",
        "topic_id": str(ORDERS.topic_id),
        "segments": 3,
        "objects": 4,
        "bytes": sum(map(len, tier.store.objects.values())),
        "last_event_ms": START_MS,
    }
    assert tier.audit(min_age_ms=30 * DAY_MS).overall is AuditVerdict.CLEAN, "it may be going on"


def test_f116_topic_that_the_cluster_does_not_know_any_more_is_listed_until_nothing_is_left(
    tier: AuditedTier,
) -> None:
    """A topic that the cluster lacks is listed until none of its segments is left."""
    with_cluster(tier)
    one = segment_of(1, partition=GONE)
    tier.bring(one, CF)
    report = tier.audit()
    assert verdicts(report) == {SetVerdict.AWAITING_DELETE: 1}
    assert codes(report) == {"TIER-TOPIC-UNKNOWN": 1}
    assert "the cluster does not know this id" in report.findings.ranked()[0].detail
    gone = next(row for row in report.topics if row.topic == "gone")
    assert gone.document(None)["isKnownToCluster"] is False
    tier.remove(one)
    assert codes(tier.audit()) == {"TIER-TOPIC-UNKNOWN": 1}, "its objects are not missed"
