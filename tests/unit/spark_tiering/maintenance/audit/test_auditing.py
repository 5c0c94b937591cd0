"""Auditing of a tier in memory: finished segments, leftovers, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, InvalidArgument
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.verdicts import DAY_MS, AuditVerdict, SetVerdict
from tests.support.tier.audited_tiers import (
    CF,
    CS,
    DS,
    GONE,
    NOW_MS,
    ORDERS,
    AuditedTier,
    codes,
    segment_of,
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


def test_audit_when_all_is_as_it_should_be_then_is_clean(tier: AuditedTier) -> None:
    """The audit of finished segments with all objects, beside the jobs' own records, is clean."""
    tier.bring(segment_of(1, 0, 99), CF)
    tier.bring(segment_of(2, 100, 199), CF)
    tier.store.objects["tier/rlmm-jobs/jobs/x/plan.json"] = b"{}"
    report = tier.audit()
    assert report.overall is AuditVerdict.CLEAN
    assert report.is_fine
    assert verdicts(report) == {SetVerdict.REFERENCED: 2}
    assert codes(report) == {}
    assert report.all.objects == 6
    assert not tier.orphans


@pytest.mark.parametrize("kind", ObjectKind)
def test_audit_when_an_object_of_a_finished_segment_is_missing_then_is_corrupt(
    tier: AuditedTier, kind: ObjectKind
) -> None:
    """A missing object of a finished segment makes the audit corrupt, with its offsets."""
    one = segment_of(1, 100, 199)
    tier.bring(one, CF)
    tier.remove(one, kind)
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    (finding,) = report.findings.ranked()
    assert finding.kind.code == "TIER-OBJECT-MISSING"
    assert finding.fields["objects"] == kind.value
    assert (finding.fields["start"], finding.fields["last"]) == (100, 199)


def test_audit_when_all_objects_of_a_finished_segment_are_missing_then_is_corrupt(
    tier: AuditedTier,
) -> None:
    """A finished segment without any object makes the audit corrupt."""
    tier.bring(segment_of(1), CF, kinds=())
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    assert codes(report) == {"TIER-OBJECT-MISSING": 1}


def test_audit_when_sizes_are_not_those_that_were_told_then_is_corrupt(tier: AuditedTier) -> None:
    """A total size other than the recorded one makes the audit corrupt."""
    custom = format_custom_metadata(CustomMetadata(remote_size_bytes=10))
    tier.bring(segment_of(1, 0, 99, custom_metadata=custom), CF)
    two = segment_of(2, 100, 199)
    tier.bring(two, CF)
    for key in tier.store.objects:
        if str(two.id.uuid) in key and key.endswith(".log"):
            tier.store.objects[key] = b""
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    assert codes(report) == {"TIER-OBJECT-LENGTH": 2}


def test_audit_when_the_told_size_is_right_then_says_nothing(tier: AuditedTier) -> None:
    """The right total size of all three objects gives no finding."""
    one = segment_of(1)
    tier.put(one)
    size = sum(map(len, tier.store.objects.values()))
    custom = format_custom_metadata(CustomMetadata(remote_size_bytes=size))
    tier.bring(segment_of(1, custom_metadata=custom), CF)
    assert tier.audit().overall is AuditVerdict.CLEAN


@pytest.mark.parametrize("kinds", [(), (LOG,), (LOG, INDEXES), (LOG, INDEXES, MANIFEST)])
def test_f121_copy_that_was_never_finished_when_young_is_in_flight_and_when_old_a_leftover(
    tier: AuditedTier, kinds: tuple[ObjectKind, ...]
) -> None:
    """Unfinished copies are in flight when young, and leftovers when old."""
    tier.bring(segment_of(1), CS, kinds=kinds)
    young = tier.audit(min_age_ms=30 * DAY_MS)
    assert young.overall is AuditVerdict.CLEAN
    assert set(verdicts(young)) == ({SetVerdict.IN_FLIGHT} if kinds else set())
    old = tier.audit()
    assert old.overall is AuditVerdict.DIRTY
    assert set(verdicts(old)) == ({SetVerdict.LEFTOVER} if kinds else set())
    assert codes(old) == {"TIER-INCOMPLETE-SET" if kinds else "TIER-COPY-UNFINISHED": 1}
    detail = old.findings.ranked()[0].detail
    lacking = [kind.value for kind in ObjectKind if kind not in kinds]
    assert not kinds or (", ".join(lacking) or "all three objects are there") in detail
    assert not tier.orphans


def test_copy_that_was_never_finished_when_its_objects_are_young_is_in_flight(
    tier: AuditedTier,
) -> None:
    """A copy begun long ago is in flight while its objects are young."""
    tier.bring(segment_of(1), CS, kinds=(LOG,), modified_ms=NOW_MS - 1_000)
    assert tier.audit().overall is AuditVerdict.CLEAN


@pytest.mark.parametrize("kinds", [(), (LOG,), (LOG, INDEXES, MANIFEST)])
def test_f114_deletion_that_was_never_finished_when_old_is_told(
    tier: AuditedTier, kinds: tuple[ObjectKind, ...]
) -> None:
    """Old unfinished deletions are reported, however much is left of them."""
    tier.bring(segment_of(1), DS, kinds=kinds)
    report = tier.audit()
    assert report.overall is AuditVerdict.DIRTY
    assert codes(report) == {"TIER-DELETE-UNFINISHED": 1}
    assert set(verdicts(report)) == ({SetVerdict.AWAITING_DELETE} if kinds else set())
    assert tier.audit(min_age_ms=30 * DAY_MS).overall is AuditVerdict.CLEAN


def test_findings_when_there_are_many_are_told_in_part_and_counted(tier: AuditedTier) -> None:
    """The audit shows the first hundred findings of a kind and counts all."""
    for number in range(130):
        tier.bring(segment_of(number + 1, 100 * number, 100 * number + 99), CF, kinds=())
    report = tier.audit()
    assert codes(report) == {"TIER-OBJECT-MISSING": 130}
    assert len(report.document()["findings"]) == 100 + 1
    assert "... and 110 more" in "\n".join(report.lines())


def test_objects_named_by_another_offset_than_the_metadata_says_are_a_contradiction(
    tier: AuditedTier,
) -> None:
    """Objects named by another offset are a contradiction: brokers do not find them."""
    one = segment_of(1, 100, 199)
    tier.bring(one, CF, start=101)
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    assert codes(report) == {"TIER-START-OFFSET": 1, "TIER-DUPLICATE-SET": 1}


def test_finished_segments_when_offsets_between_them_are_in_none_then_is_corrupt(
    tier: AuditedTier,
) -> None:
    """A gap between finished segments makes the audit corrupt, unless a copy is in flight."""
    tier.bring(segment_of(1, 0, 99), CF)
    tier.bring(segment_of(2, 200, 299), CF)
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    finding = report.findings.ranked()[0]
    assert (finding.kind.code, finding.fields["first"], finding.fields["last"]) == (
        "TIER-EXTENT-GAP", 100, 199,
    )  # fmt: skip
    tier.bring(segment_of(3, 100, 199, event_timestamp_ms=NOW_MS), CS, kinds=())
    assert tier.audit().overall is AuditVerdict.CLEAN


@pytest.mark.parametrize(("log_start", "gap"), [(0, (100, 199)), (150, (150, 199)), (200, None)])
def test_gap_when_it_lies_below_the_log_start_is_none(
    tier: AuditedTier, log_start: int, gap: tuple[int, int] | None
) -> None:
    """A gap below the log start offset is not missing."""
    with_cluster(tier, log_start=log_start)
    tier.bring(segment_of(1, 0, 99), CF)
    tier.bring(segment_of(2, 200, 299), CF)
    found = [one.fields for one in tier.audit().findings.ranked() if "first" in one.fields]
    assert [(one["first"], one["last"]) for one in found] == ([] if gap is None else [gap])


def test_tier_when_its_ends_do_not_meet_the_log_then_has_gaps(tier: AuditedTier) -> None:
    """A tier that does not meet the log has gaps below it or before the local log."""
    with_cluster(tier, log_start=0, local_start=500)
    tier.bring(segment_of(1, 100, 199), CF)
    report = tier.audit()
    gaps = [(one.fields["first"], one.fields["last"]) for one in report.findings.ranked()]
    assert gaps == [(0, 99), (200, 499)]
    with_cluster(tier, log_start=0)
    assert tier.audit().overall is AuditVerdict.CLEAN, "the local log has all of it"


def test_segments_that_hold_the_same_offsets_are_told_and_counted(tier: AuditedTier) -> None:
    """Segments that hold the same offsets are reported and counted, and are no leftover."""
    tier.bring(segment_of(1, 0, 99, size_bytes=1_000), CF)
    tier.bring(segment_of(2, 50, 149, size_bytes=1_000), CF)
    report = tier.audit()
    assert report.overall is AuditVerdict.CLEAN
    assert codes(report) == {"TIER-EXTENT-OVERLAP": 1}
    assert report.topics[0].duplicate_bytes == 500


def test_epochs_that_do_not_rise_with_offsets_are_a_contradiction(tier: AuditedTier) -> None:
    """Epochs that do not rise with offsets are a contradiction, because look-ups use both."""
    tier.bring(segment_of(1, 0, 99, epochs={0: 50, 1: 10}), CF)
    report = tier.audit()
    assert report.overall is AuditVerdict.CORRUPT
    assert codes(report) == {"TIER-EPOCH-ORDER": 1}


def test_keys_that_are_nobodys_are_counted_with_examples(tier: AuditedTier) -> None:
    """Unknown keys are counted with examples in safe characters."""
    layout = f"orders-3-{ORDERS.topic_id}/{0:020d}-{'B' * 21}A"
    for key in (
        f"{layout}.log", f"{layout}.leader_epoch_checkpoint", "photo.jpg",
        "\x1b[2Jevil\x00\n/\u202e", "x" * 1_019,
        f"orders-{ORDERS.topic_id}/3/{2**63:020d}-{'B' * 21}A.log",
        f"orders-{ORDERS.topic_id}/03/{0:020d}-{'B' * 21}A.log",
    ):  # fmt: skip
        tier.store.objects[f"tier/{key}"] = b"12345"
    report = tier.audit()
    assert report.overall is AuditVerdict.DIRTY
    assert verdicts(report) == {SetVerdict.UNKNOWN_LAYOUT: 2, SetVerdict.UNKNOWN_KEY: 5}
    assert codes(report) == {"TIER-UNKNOWN-KEY": 5, "TIER-UNKNOWN-LAYOUT": 2}
    assert report.all.size_bytes == 35
    for line in report.lines():
        assert line.isprintable(), line
        assert len(line) < 300


def test_objects_in_an_archive_are_told_and_are_no_leftovers(tier: AuditedTier) -> None:
    """Objects in an archive class are reported, and are no leftovers."""
    tier.bring(segment_of(1), CF)
    tier.store.storage_classes = dict.fromkeys(tier.store.objects, "DEEP_ARCHIVE")
    report = tier.audit()
    assert report.overall is AuditVerdict.CLEAN
    assert codes(report) == {"TIER-OBJECT-ARCHIVED": 1}


def test_topics_that_are_not_wanted_are_neither_listed_nor_told(tier: AuditedTier) -> None:
    """Topics outside the pattern are neither listed in the store nor reported from the metadata."""
    tier.close()
    tier = AuditedTier(topics=SegmentSelection(without_topics=("go*",)))
    tier.bring(segment_of(1), CF)
    tier.bring(segment_of(2, partition=GONE), CF, kinds=(LOG,))
    report = tier.audit()
    assert report.overall is AuditVerdict.CLEAN
    assert [one.topic for one in report.topics] == ["orders"]
    assert not any("gone" in key for name, key in tier.store.calls if name == "list")
    tier.close()


def test_figures_when_told_add_up_and_have_a_price(tier: AuditedTier) -> None:
    """The audit's objects and bytes by topic and verdict add up, with their price per month."""
    tier.bring(segment_of(1, size_bytes=2**20), CF)
    tier.bring(segment_of(2, 100, 199, size_bytes=2**20), CF)
    tier.put(segment_of(3, partition=GONE))
    report = tier.audit(price=1024.0)
    document = report.document()
    size = sum(map(len, tier.store.objects.values()))
    assert document["bytes"] == size == sum(row["bytes"] for row in document["topics"])
    assert document["monthlyCost"] == round(size / 2**20, 4)
    assert sum(one["bytes"] for one in document["verdicts"].values()) == size
    (advice,) = (one for one in report.findings.findings if one.kind.code == "TIER-SMALL-SEGMENTS")
    assert advice.fields["mean_bytes"] == 2**20
    assert (advice.fields["objects"], advice.fields["objects_needed"]) == (6, 3)


def test_audit_when_it_is_stopped_then_judges_nothing(tier: AuditedTier) -> None:
    """A stopped audit judges nothing and calls nothing missing."""
    tier.bring(segment_of(1), CF, kinds=())
    tier.bring(segment_of(2, 500, 599), CF)
    with tier.opened() as opened, Audit(opened, AuditOptions(), lambda: "SIGTERM") as audit:
        report = audit.run()
    assert report.overall is AuditVerdict.UNFINISHED
    assert not report.is_fine
    assert codes(report) == {}


def test_audit_when_nothing_is_named_to_look_into_then_says_so(tier: AuditedTier) -> None:
    """An audit without store and inventory, or with an impossible prefix, is refused."""
    tier.close()
    tier = AuditedTier(store=None)
    with pytest.raises(ConfigError, match="--store"):
        tier.audit()
    with pytest.raises(InvalidArgument, match="no key has the prefix"):
        tier.audit(inventory="x", old_prefixes=("a\nb",))
    tier.close()
