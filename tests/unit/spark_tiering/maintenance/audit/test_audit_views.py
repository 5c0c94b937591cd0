"""Audits of deleted topics, of archives, of several prefixes, by inventories, and beside others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlmm.errors import ConfigError
from rlmm.inspection.cluster_facts import Rights
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.maintenance.audit.object_set_verdict import (
    DAY_MS,
    AuditVerdict,
    OrphanProof,
    SetVerdict,
)
from spark_tiering.stores.results import OpenUpload
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.builders import update
from tests.support.cli.metadata_history import START_MS
from tests.support.stores.inventories import Row, csv_bytes, write_inventory
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


def test_f125_objects_under_an_old_prefix_are_known_and_asked_for_once(tier: AuditedTier) -> None:
    """Objects under an old prefix are referenced, and reported as not found by brokers."""
    old, new = segment_of(1, 0, 99), segment_of(2, 100, 199)
    tier.bring(old, CF, prefix="before-")
    tier.bring(new, CF)
    report = tier.audit(old_prefixes=("before-",))
    assert report.overall is AuditVerdict.CLEAN
    assert verdicts(report) == {SetVerdict.REFERENCED: 2}
    assert codes(report) == {"TIER-OLD-PREFIX": 1}
    asked = [call for call in tier.store.calls if call[0] in ("list", "head")]
    assert len(asked) == 2, asked
    assert tier.audit().overall is AuditVerdict.CORRUPT, "without its prefix it is missing"


@pytest.mark.parametrize(
    ("prefix", "old"),
    [("", "old/"), ("old/", ""), ("a/", "a/b/c/"), ("a/b/", "a/"), ("x-", ""), ("", "x-")],
)
def test_f125_prefixes_when_nested_then_count_each_object_once(prefix: str, old: str) -> None:
    """An object belongs to the longest of the prefixes it lies under and is counted once."""
    with AuditedTier(prefix) as tier:
        tier.bring(segment_of(1, 0, 99), CF)
        tier.bring(segment_of(2, 100, 199), CF, prefix=old)
        tier.store.objects[f"{prefix}stray"] = b"?"
        tier.store.objects[f"{old}other/stray"] = b"?"
        report = tier.audit(old_prefixes=(old,))
        assert verdicts(report) == {SetVerdict.REFERENCED: 2, SetVerdict.UNKNOWN_KEY: 2}
        assert report.all.objects == 8


@pytest.mark.parametrize("old", ["old/", "a/b/"])
def test_f125_folder_of_another_prefix_is_listed_for_that_one_alone(old: str) -> None:
    """A folder of another prefix is listed for that prefix alone."""
    with AuditedTier("") as tier:
        tier.bring(segment_of(1), CF, prefix=old)
        tier.store.objects["a/stray/1"] = b"?"
        tier.audit(old_prefixes=(old,))
        listed = [key for name, key in tier.store.calls if name == "list"]
        beside = "a/stray/" if old.startswith("a/") else "a/"
        assert sorted(listed) == sorted([beside, f"{old}orders-{ORDERS.topic_id}/3/"])


def test_f125_upload_under_two_prefixes_is_told_once() -> None:
    """An upload under two prefixes is reported by the longer one, and a young one only counted."""
    with AuditedTier("") as tier:
        tier.store.uploads = [
            OpenUpload("old/x.log", "1", START_MS), OpenUpload("y.log", "2", NOW_MS),
        ]  # fmt: skip
        report = tier.audit(old_prefixes=("old/",))
        assert (report.uploads.count, report.uploads.old) == (2, 1)
        assert codes(report) == {"TIER-UPLOAD-OPEN": 1}


def test_f125_orphans_under_an_old_prefix_are_deleted_there_alone(tier: AuditedTier) -> None:
    """Each deletion of an orphan goes to the prefix under which the object was seen."""
    tier.bring(segment_of(1), DF, prefix="before/")
    tier.audit(old_prefixes=("before/",))
    tier.store.calls.clear()
    assert tier.delete().is_fine
    assert not tier.store.objects
    deleted = [key for name, key in tier.store.calls if name == "delete"]
    assert len(deleted) == 3
    assert all(key.startswith("before/") for key in deleted)


def test_audit_when_segments_change_meanwhile_then_has_no_finding(tier: AuditedTier) -> None:
    """A segment copied or deleted during the audit is neither missing nor an orphan."""
    new, old = segment_of(1, 100, 199), segment_of(2, 0, 99)
    tier.bring(old, CF)
    moments = []

    def before(name: str, key: str) -> None:
        moments.append(name)
        if name == "moment" and moments.count(name) == 2:
            tier.bring(new, CF)
            tier.say(update(old.id, DS), update(old.id, DF))
            tier.remove(old)

    tier.store.before = before
    report = tier.audit()
    assert report.overall is AuditVerdict.CLEAN, codes(report)
    assert "1 segments were deleted while this was looked at" in report.notes
    assert not tier.orphans


def test_tier_when_local_segments_go_after_the_read_then_has_no_gap(tier: AuditedTier) -> None:
    """The earlier local log start counts: segments deleted after the read leave no gap."""
    with_cluster(tier, local_start=200)
    assert tier.cluster is not None
    tier.bring(segment_of(1, 0, 99), CF)
    tier.bring(segment_of(2, 100, 199), CF)
    cluster = tier.cluster
    ends = told_cluster(ORDERS, local_start=300).ends

    def moves(name: str, key: str) -> None:
        if name == "moment" and tier.store.calls:
            cluster.ends = ends

    tier.store.before = moves
    assert tier.audit().overall is AuditVerdict.CLEAN


def test_audit_when_a_segment_is_deleted_late_then_is_not_missing(tier: AuditedTier) -> None:
    """A segment deleted before its report is not missing, as the audit reads the metadata again."""
    old = segment_of(2, 0, 99)
    tier.bring(old, CF)
    tier.remove(old, INDEXES)

    def before(name: str, key: str) -> None:
        if name == "head":
            tier.store.before = lambda name, key: None
            tier.say(update(old.id, DS))

    tier.store.before = before
    assert tier.audit(min_age_ms=30 * DAY_MS).overall is AuditVerdict.CLEAN


@pytest.mark.parametrize(("age_ms", "is_missed"), [(0, False), (3_600_000, True)])
def test_segment_newer_than_the_inventory(tmp_path: Path, age_ms: int, *, is_missed: bool) -> None:
    """A segment finished after the inventory, or an hour before, is not missing."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([])], created_ms=START_MS + age_ms)
    with AuditedTier(store=None) as tier:
        tier.bring(segment_of(1), CF, kinds=())
        report = tier.audit(inventory=str(folder))
    assert (report.overall is AuditVerdict.CORRUPT) is is_missed


def test_inventory_of_another_bucket_than_the_store_is_refused(tmp_path: Path) -> None:
    """An inventory of another bucket is refused, because every object would be missing."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([])])
    with (
        AuditedTier(store=S3Settings("other")) as tier,
        pytest.raises(ConfigError, match="of bucket 'tier-bucket', not of 'other'"),
    ):
        tier.audit(inventory=str(folder))


def test_segment_in_the_store_alone_is_not_missing(tier: AuditedTier, tmp_path: Path) -> None:
    """A segment absent from the inventory but present in the store is not missing."""
    tier.bring(segment_of(1), CF)
    folder = write_inventory(tmp_path / "list", [csv_bytes([])], created_ms=NOW_MS)
    assert tier.audit(inventory=str(folder)).overall is AuditVerdict.CLEAN
    assert not [call for call in tier.store.calls if call[0] == "list"]


def test_f119_orphans_of_an_inventory_without_store_have_no_manifest(tmp_path: Path) -> None:
    """Without its store a set with a manifest is no orphan, as its end cannot be read."""
    whole, part = segment_of(1), segment_of(2, 100, 199)
    keys = [*object_keys(whole.id, 0, "tier/").values(), object_keys(part.id, 100, "tier/")[LOG]]
    rows = [Row(key, modified_ms=START_MS) for key in keys]
    folder = write_inventory(tmp_path / "list", [csv_bytes(rows)], created_ms=NOW_MS)
    with AuditedTier(cluster=told_cluster(ORDERS, log_start=1_000), store=None) as tier:
        report = tier.audit(inventory=str(folder))
    assert verdicts(report) == {SetVerdict.UNPROVEN: 1, SetVerdict.ORPHAN: 1}
    assert "by the inventory" in "\n".join(report.lines())
    assert any("without --store nothing is looked at a second" in note for note in report.notes)


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


def test_f119_unknown_topic_is_proof_only_where_it_surely_is_gone(tier: AuditedTier) -> None:
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
def test_audit_of_an_archive_finds_no_proof(tier: AuditedTier, *, is_embedded: bool) -> None:
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


def test_f116_half_finished_topic_deletion_is_listed_with_bytes(tier: AuditedTier) -> None:
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


def test_f116_topic_gone_from_the_cluster_is_listed_until_it_is_empty(tier: AuditedTier) -> None:
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
