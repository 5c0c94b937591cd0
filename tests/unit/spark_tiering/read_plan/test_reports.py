"""Reports of a plan, and of a repeated check, for people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.read_plan.manifest_units import ManifestContents, UnreadableManifest
from spark_tiering.read_plan.plan_check import CheckedRange, PlannedSegmentFate, fate_in_metadata
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.reports import CheckReport, PlanExportReport
from spark_tiering.read_plan.tier_plans import UNREAD_SHOWN_MAX, plan_of_manifests
from spark_tiering.reporting import report
from tests.support.tier.read_plans import DELETING, STARTED, plan_of, segment, shard_with

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata

HOUR_MS = 3_600_000


def test_summary_when_a_plan_has_everything_then_each_thing_is_a_line() -> None:
    """The summary has a line for each part of a plan that has all of them."""
    shard = shard_with(
        segment(1, 0, 9, newest_ms=HOUR_MS),
        segment(2, 20, 29, newest_ms=2 * HOUR_MS),
        segment(3, 30, 39, state=STARTED),
    )
    plan = plan_of(
        shard, Question(bounds=RecordBounds(5, 50)), QuestionFacts({"orders": 10 * HOUR_MS})
    )
    lines = list(PlanExportReport(plan, 3 * HOUR_MS, "plan.json").lines())
    assert lines == [
        "plan of 1 partitions: 2 segments, 2.0 KiB, 2 ranges of 15 offsets",
        "  to read all of it: about 5 requests",
        "  orders-0: 2 ranges, 2.0 KiB; tiered up to offset 29, time 1970-01-01T02:00:00Z (1h ago)",
        "  the first segment expires: at 1970-01-01T11:00:00Z",
        "  gap: orders-0 10 to 19: missing",
        "  gap: orders-0 30 to 49: not-tiered-yet",
        "  left out, being-copied: 1 segments, 1003 B",
        f"  token: {plan.token}",
        "  kept in plan.json",
    ]
    assert "is due by now" in "\n".join(PlanExportReport(plan, 30 * HOUR_MS).lines())


def test_summary_when_there_is_much_then_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary of many partitions lists the first ones and counts the rest."""
    monkeypatch.setattr(report, "LINES_MAX", 2)
    shard = shard_with(*(segment(n, 20 * n, 20 * n + 9) for n in range(1, 8)))
    lines = list(PlanExportReport(plan_of(shard), 0).lines())
    assert "  ... and 4 more gaps" in lines


def test_report_when_manifests_tell_nothing_then_each_is_a_finding() -> None:
    """A segment whose manifest gives no metadata is a finding and a line of the plan."""
    unread = [
        UnreadableManifest(f"key-{number:03d}", "not-json")
        for number in range(UNREAD_SHOWN_MAX + 5)
    ]
    plan = plan_of_manifests(ManifestContents([segment(1, 0, 9)], unread), Question())
    assert len(plan.warnings) == UNREAD_SHOWN_MAX + 1
    assert plan.warnings[-1] == "5 more manifests tell of no segment"
    report = PlanExportReport(plan, 0, unread=unread)
    assert [one.kind.code for one in report.findings()] == ["TIER-PLAN-UNTOLD"] * len(unread)
    assert not report.has_gaps


def test_check_when_ranges_are_gone_then_codes_say_how() -> None:
    """The codes tell deleted, being deleted, expired and foreign ranges apart."""
    plan = plan_of(
        shard_with(*(segment(n, 20 * n, 20 * n + 9, newest_ms=n) for n in range(1, 5))),
        facts=QuestionFacts({"orders": 0}),
    )
    ranges = tuple(map(CheckedRange, plan.segments, PlannedSegmentFate))
    report = CheckReport(plan, ranges, 10)
    assert [one.kind.code for one in report.findings()] == [
        "TIER-PLAN-SEGMENT-DELETING", "TIER-PLAN-SEGMENT-GONE", "TIER-PLAN-SEGMENT-GONE",
    ]  # fmt: skip
    assert not report.is_fine
    lines = list(report.lines())
    assert lines[0] == "1 of 4 ranges of the plan can be read"
    assert "1 of them are past their time" in lines[1]
    assert report.document()["ranges"] == dict.fromkeys(map(str, PlannedSegmentFate), 1)


@pytest.mark.parametrize(
    ("found", "fate"),
    [
        (segment(1, 0, 9), PlannedSegmentFate.THERE),
        (segment(1, 0, 9, state=DELETING), PlannedSegmentFate.BEING_DELETED),
        (segment(1, 0, 8), PlannedSegmentFate.ANOTHER),
        (segment(1, 0, 9, state=STARTED), PlannedSegmentFate.ANOTHER),
        (None, PlannedSegmentFate.GONE),
    ],
)
def test_fate_goes_by_the_state(found: SegmentMetadata | None, fate: PlannedSegmentFate) -> None:
    """The fate of a segment goes by its state; other content under its id is another log."""
    (planned,) = plan_of(shard_with(segment(1, 0, 9))).segments
    assert fate_in_metadata(planned, found) is fate
