"""Auditing of a tier in memory: finished segments, leftovers, figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import (
    DAY_MS,
    AuditVerdict,
    OrphanProof,
    SetVerdict,
)
from tests.support.builders import update
from tests.support.tier.audited_tiers import (
    CF,
    CS,
    DF,
    DS,
    FINISHED,
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
    from collections.abc import Callable

    from rlmm.metadata.segment import SegmentState

    Step = Callable[[AuditedTier], object]

LOG, INDEXES, MANIFEST = ObjectKind


def bring(number: int, start: int, last: int, state: SegmentState = CF, /, **said: Any) -> Step:
    """Publish a segment up to *state* and put its objects; *said* are fields of either."""
    objects = {
        name: said.pop(name) for name in ("kinds", "prefix", "start", "modified_ms") if name in said
    }
    return lambda tier: tier.bring(segment_of(number, start, last, **said), state, **objects)


def put(number: int, start: int, last: int, **objects: Any) -> Step:
    return lambda tier: tier.put(segment_of(number, start, last), **objects)


def cluster(**ends: int) -> Step:
    return lambda tier: with_cluster(tier, **ends)


def exact_size(tier: AuditedTier) -> None:
    tier.put(segment_of(1))
    size = sum(map(len, tier.store.objects.values()))
    custom = format_custom_metadata(CustomMetadata(remote_size_bytes=size))
    tier.bring(segment_of(1, custom_metadata=custom), CF)


def empty_logs(tier: AuditedTier) -> None:
    tier.store.objects |= {key: b"" for key in tier.store.objects if key.endswith(".log")}


def archive(tier: AuditedTier) -> None:
    tier.store.storage_classes = dict.fromkeys(tier.store.objects, "DEEP_ARCHIVE")


def spoil_manifests(tier: AuditedTier) -> None:
    """Damage the first, and give the second one the topic of another segment."""
    first, second = [key for key in tier.store.objects if key.endswith("rsm-manifest")]
    tier.store.objects[first] = b"{"
    tier.store.objects[second] = tier.store.objects[second].replace(b"orders", b"others")


def update_alone(tier: AuditedTier) -> None:
    one = segment_of(1)
    tier.say(update(one.id, CF), update(one.id, DS))


@dataclass
class Case:
    steps: list[Step]
    overall: AuditVerdict
    verdicts: dict[SetVerdict, int]
    codes: dict[str, int] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    """Parts of its lines."""
    orphans: dict[int, OrphanProof] = field(default_factory=dict)
    """By start offset."""
    old_prefixes: tuple[str, ...] = ()


CLEAN, DIRTY, CORRUPT, _ = AuditVerdict
REFERENCED, ORPHAN = SetVerdict.REFERENCED, SetVerdict.ORPHAN
GAP, UNPROVEN = {"TIER-EXTENT-GAP": 1}, SetVerdict.UNPROVEN
HOLED = [bring(1, 0, 99), bring(2, 200, 299)]
BELOW = OrphanProof.BELOW_LOG_START
CUSTOM = format_custom_metadata(CustomMetadata(remote_size_bytes=10))
CASES = {
    "all is well": Case(
        [bring(1, 0, 99), bring(2, 100, 199),
         lambda tier: tier.store.objects.update({"tier/rlmm-jobs/jobs/x/plan.json": b"{}"})],
        CLEAN, {REFERENCED: 2}, said=("Clean: 6 objects",),
    ),
    "no objects": Case([bring(1, 0, 99, kinds=())], CORRUPT, {}, {"TIER-OBJECT-MISSING": 1}),
    **{f"no {kind}": Case(
        [bring(1, 100, 199, kinds=tuple(one for one in ObjectKind if one is not kind))],
        CORRUPT, {REFERENCED: 1}, {"TIER-OBJECT-MISSING": 1},
        (f"offsets 100-199: without {kind.value}",),
    ) for kind in ObjectKind},
    "sizes that differ": Case(
        [bring(1, 0, 99, custom_metadata=CUSTOM), bring(2, 100, 199), empty_logs],
        CORRUPT, {REFERENCED: 2}, {"TIER-OBJECT-LENGTH": 2},
    ),
    "the recorded size": Case([exact_size], CLEAN, {REFERENCED: 1}),
    "young objects of an old copy": Case(
        [bring(1, 0, 99, CS, kinds=(LOG,), modified_ms=NOW_MS - 1_000)],
        CLEAN, {SetVerdict.IN_FLIGHT: 1},
    ),
    "another offset in the name": Case(
        [bring(1, 100, 199, start=101)], CORRUPT, {SetVerdict.DUPLICATE: 1},
        {"TIER-START-OFFSET": 1, "TIER-DUPLICATE-SET": 1},
    ),
    "gap": Case(HOLED, CORRUPT, {REFERENCED: 2}, GAP, ("offsets 100-199 are in no",)),
    "gap of an open copy": Case(
        [*HOLED, bring(3, 100, 199, CS, event_timestamp_ms=NOW_MS, kinds=())],
        CLEAN, {REFERENCED: 2},
    ),
    "gap from the log start": Case(
        [cluster(log_start=0), *HOLED], CORRUPT, {REFERENCED: 2}, GAP, ("offsets 100-199 are",)
    ),
    "gap over the log start": Case(
        [cluster(log_start=150), *HOLED], CORRUPT, {REFERENCED: 2}, GAP, ("offsets 150-199 are",)
    ),
    "gap below the log start": Case([cluster(log_start=200), *HOLED], CLEAN, {REFERENCED: 2}),
    "ends that do not meet the log": Case(
        [cluster(log_start=0, local_start=500), bring(1, 100, 199)], CORRUPT, {REFERENCED: 1},
        {"TIER-EXTENT-GAP": 2}, ("offsets 0-99 are in no", "offsets 200-499 are in no"),
    ),
    "a local log that has all": Case(
        [cluster(log_start=0), bring(1, 100, 199)], CLEAN, {REFERENCED: 1}
    ),
    "overlap": Case(
        [bring(1, 0, 99, size_bytes=1_000), bring(2, 50, 149, size_bytes=1_000)],
        CLEAN, {REFERENCED: 2}, {"TIER-EXTENT-OVERLAP": 1}, ("copied twice 500 B",),
    ),
    "epochs that do not rise": Case(
        [bring(1, 0, 99, epochs={0: 50, 1: 10})], CORRUPT, {REFERENCED: 1}, {"TIER-EPOCH-ORDER": 1}
    ),
    "archive class": Case(
        [bring(1, 0, 99), archive], CLEAN, {REFERENCED: 1}, {"TIER-OBJECT-ARCHIVED": 1}
    ),
    "f119 deletion in the log": Case(
        [bring(1, 0, 99, DF, kinds=(LOG, INDEXES)), bring(2, 100, 199)], DIRTY,
        {REFERENCED: 1, ORPHAN: 1}, {"TIER-ORPHAN": 1}, ("at offset 0: log, indexes, ",),
        {0: OrphanProof.SEGMENT_DELETED},
    ),
    "f119 no proof": Case(
        [put(1, 0, 99), put(2, 100, 199, kinds=(LOG,)), bring(3, 200, 299)], DIRTY,
        {REFERENCED: 1, UNPROVEN: 2}, {"TIER-UNREFERENCED": 1, "TIER-INCOMPLETE-SET": 1},
    ),
    "f119 events but no end of the deletion": Case(
        [update_alone, put(1, 0, 99)], DIRTY, {UNPROVEN: 1}, {"TIER-UNREFERENCED": 1}
    ),
    **{f"f119 log start {start} within the segment": Case(
        [cluster(log_start=start), put(1, 0, 99)], DIRTY, {UNPROVEN: 1}, {"TIER-UNREFERENCED": 1}
    ) for start in (50, 99)},
    "f119 below the log start": Case(
        [cluster(log_start=100), put(1, 0, 99)], DIRTY, {ORPHAN: 1}, {"TIER-ORPHAN": 1},
        orphans={0: BELOW},
    ),
    "f119 from the log start on": Case(
        [cluster(log_start=100), put(1, 100, 199), put(2, 100, 199, kinds=(LOG,)),
         put(3, 99, 99, kinds=(LOG,))],
        DIRTY, {UNPROVEN: 2, ORPHAN: 1},
        {"TIER-UNREFERENCED": 1, "TIER-INCOMPLETE-SET": 1, "TIER-ORPHAN": 1}, orphans={99: BELOW},
    ),
    "f119 manifests that tell nothing": Case(
        [cluster(log_start=1_000), put(1, 0, 99), put(2, 100, 199),
         put(3, 200, 299, kinds=(LOG, INDEXES)), spoil_manifests],
        DIRTY, {UNPROVEN: 2, ORPHAN: 1}, {"TIER-UNREFERENCED": 2, "TIER-ORPHAN": 1},
        orphans={200: BELOW},
    ),
    "f116 finished deletion of a topic": Case(
        [put(1, 0, 99), lambda tier: tier.end_partition(FINISHED, ORDERS)], DIRTY, {ORPHAN: 1},
        {"TIER-ORPHAN": 1}, orphans={0: OrphanProof.PARTITION_DELETED},
    ),
    "two prefixes": Case(
        [bring(1, 0, 99), put(1, 0, 99, prefix="before/")], DIRTY,
        {REFERENCED: 1, SetVerdict.DUPLICATE: 1}, {"TIER-DUPLICATE-SET": 1},
        ("at offset 0 under 'before/'",), old_prefixes=("before/",),
    ),
    "f125 whole under the old prefix": Case(
        [bring(1, 0, 99, prefix="before/"), put(1, 0, 99, kinds=(LOG,))], DIRTY,
        {REFERENCED: 1, SetVerdict.DUPLICATE: 1},
        {"TIER-DUPLICATE-SET": 1, "TIER-OLD-PREFIX": 1}, old_prefixes=("before/",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_f116_f119_f125_audit_of_a_tier_then_judges_each_set(tier: AuditedTier, case: Case) -> None:
    """The audit judges sets, gaps and overlaps, and proves orphans, by metadata and store."""
    for step in case.steps:
        step(tier)
    report = tier.audit(old_prefixes=case.old_prefixes)
    assert (report.overall, report.is_fine) == (case.overall, case.overall is CLEAN)
    assert (verdicts(report), codes(report)) == (case.verdicts, case.codes)
    assert {one.start_offset: one.proof for one in tier.orphans} == case.orphans
    text = "\n".join(report.lines())
    assert [part for part in case.said if part not in text] == []


@pytest.mark.parametrize("kinds", [(), (LOG,), (LOG, INDEXES), (LOG, INDEXES, MANIFEST)])
@pytest.mark.parametrize("state", [CS, DS])
def test_f114_f121_unfinished_copy_or_deletion_when_young_is_in_flight_and_when_old_is_told(
    tier: AuditedTier, state: SegmentState, kinds: tuple[ObjectKind, ...]
) -> None:
    """Unfinished copies and deletions are fine when young, and reported when old."""
    tier.bring(segment_of(1), state, kinds=kinds)
    is_copy = state is CS
    young, old = tier.audit(min_age_ms=30 * DAY_MS), tier.audit()
    assert (young.overall, old.overall) == (AuditVerdict.CLEAN, AuditVerdict.DIRTY)
    of_young, of_old = SetVerdict.AWAITING_DELETE, SetVerdict.AWAITING_DELETE
    if is_copy:
        of_young, of_old = SetVerdict.IN_FLIGHT, SetVerdict.LEFTOVER
    assert set(verdicts(young)) == ({of_young} if kinds else set())
    assert set(verdicts(old)) == ({of_old} if kinds else set())
    code = "TIER-INCOMPLETE-SET" if kinds else "TIER-COPY-UNFINISHED"
    assert codes(old) == {code if is_copy else "TIER-DELETE-UNFINISHED": 1}
    detail = old.findings.ranked()[0].detail
    lacking = [kind.value for kind in ObjectKind if kind not in kinds]
    assert not (is_copy and kinds) or (", ".join(lacking) or "all three objects are") in detail
    assert not tier.orphans


def test_findings_when_there_are_many_are_told_in_part_and_counted(tier: AuditedTier) -> None:
    """The audit shows the first hundred findings of a kind and counts all."""
    for number in range(130):
        tier.bring(segment_of(number + 1, 100 * number, 100 * number + 99), CF, kinds=())
    report = tier.audit()
    assert codes(report) == {"TIER-OBJECT-MISSING": 130}
    assert len(report.document()["findings"]) == 100 + 1
    assert "... and 110 more" in "\n".join(report.lines())


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


def test_topics_that_are_not_wanted_are_neither_listed_nor_told() -> None:
    """Topics outside the pattern are neither listed in the store nor reported from the metadata."""
    with AuditedTier(topics=SegmentSelection(without_topics=("go*",))) as tier:
        tier.bring(segment_of(1), CF)
        tier.bring(segment_of(2, partition=GONE), CF, kinds=(LOG,))
        report = tier.audit()
        assert report.overall is AuditVerdict.CLEAN
        assert [one.topic for one in report.topics] == ["orders"]
        assert not any("gone" in key for name, key in tier.store.calls if name == "list")


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
