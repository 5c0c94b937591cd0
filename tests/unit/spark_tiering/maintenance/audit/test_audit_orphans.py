"""Orphans of an audit with their proofs, and deleted topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.inspection.cluster_facts import Rights
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.verdicts import DAY_MS, AuditVerdict, OrphanProof, SetVerdict
from tests.support.builders import update
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

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG, INDEXES, MANIFEST = ObjectKind


@pytest.fixture
def tier() -> Iterator[AuditedTier]:
    tier = AuditedTier()
    yield tier
    tier.close()


def test_f119_objects_of_a_segment_whose_deletion_is_in_the_log_are_orphans(
    tier: AuditedTier,
) -> None:
    """Objects of a segment whose deletion ended are orphans, with the metadata log as proof."""
    tier.bring(segment_of(1, 0, 99), DF, kinds=(LOG, INDEXES))
    tier.bring(segment_of(2, 100, 199), CF)
    report = tier.audit()
    assert report.overall is AuditVerdict.DIRTY
    assert verdicts(report) == {SetVerdict.REFERENCED: 1, SetVerdict.ORPHAN: 1}
    (orphan,) = tier.orphans
    assert orphan.proof is OrphanProof.SEGMENT_DELETED
    assert orphan.kinds == (LOG, INDEXES)


def test_f119_objects_that_no_metadata_knows_when_nothing_proves_it_are_no_orphans(
    tier: AuditedTier,
) -> None:
    """Unknown objects without proof are no orphans: they may be all that is left of metadata."""
    tier.put(segment_of(1))
    tier.put(segment_of(2, 100, 199), kinds=(LOG,))
    tier.bring(segment_of(3, 200, 299), CF)
    report = tier.audit()
    assert report.overall is AuditVerdict.DIRTY
    assert verdicts(report) == {SetVerdict.REFERENCED: 1, SetVerdict.UNPROVEN: 2}
    assert codes(report) == {"TIER-UNREFERENCED": 1, "TIER-INCOMPLETE-SET": 1}
    assert not tier.orphans


def test_f119_events_of_a_segment_when_none_is_the_end_of_its_deletion_prove_nothing(
    tier: AuditedTier,
) -> None:
    """Events that the state refused, or other than the end of its deletion, prove no orphan."""
    one = segment_of(1)
    tier.say(update(one.id, CF), update(one.id, DS))
    tier.put(one)
    assert verdicts(tier.audit()) == {SetVerdict.UNPROVEN: 1}


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


@pytest.mark.parametrize(
    ("log_start", "verdict"),
    [(50, SetVerdict.UNPROVEN), (99, SetVerdict.UNPROVEN), (100, SetVerdict.ORPHAN)],
)
def test_f119_unknown_segment_when_all_of_it_lies_below_the_log_start_is_an_orphan(
    tier: AuditedTier, log_start: int, verdict: SetVerdict
) -> None:
    """An unknown segment is an orphan only when its manifest ends below the log start offset."""
    with_cluster(tier, log_start=log_start)
    tier.put(segment_of(1, 0, 99))
    report = tier.audit()
    assert verdicts(report) == {verdict: 1}
    assert [one.proof for one in tier.orphans] == (
        [OrphanProof.BELOW_LOG_START] if verdict is SetVerdict.ORPHAN else []
    )


def test_f119_unknown_objects_that_begin_at_the_log_start_are_unproven(tier: AuditedTier) -> None:
    """Unknown objects at the log start are unproven: consumers may read them."""
    with_cluster(tier, log_start=100)
    tier.put(segment_of(1, 100, 199))
    tier.put(segment_of(2, 100, 199), kinds=(LOG,))
    tier.put(segment_of(3, 99, 99), kinds=(LOG,))
    assert verdicts(tier.audit()) == {SetVerdict.UNPROVEN: 2, SetVerdict.ORPHAN: 1}


def test_f119_unknown_segment_below_the_log_start_when_its_manifest_tells_nothing_is_unproven(
    tier: AuditedTier,
) -> None:
    """A damaged or foreign manifest leaves a segment below the log start unproven."""
    with_cluster(tier, log_start=1_000)
    one, two, three = segment_of(1), segment_of(2, 100, 199), segment_of(3, 200, 299)
    for segment in (one, two):
        tier.put(segment)
    tier.put(three, kinds=(LOG, INDEXES))
    keys = [key for key in tier.store.objects if key.endswith("rsm-manifest")]
    tier.store.objects[keys[0]] = b"{"
    tier.store.objects[keys[1]] = tier.store.objects[keys[1]].replace(b"orders", b"others")
    report = tier.audit()
    assert verdicts(report) == {SetVerdict.UNPROVEN: 2, SetVerdict.ORPHAN: 1}
    assert tier.orphans[0].id == three.id


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


def test_f116_topic_deletion_that_is_finished_is_over_though_objects_are_left(
    tier: AuditedTier,
) -> None:
    """Objects left after a finished topic deletion are orphans, and no open deletion is listed."""
    tier.put(segment_of(1))
    tier.end_partition(FINISHED, ORDERS)
    assert codes(tier.audit()) == {"TIER-ORPHAN": 1}


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
