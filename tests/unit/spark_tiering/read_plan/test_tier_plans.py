"""Plans over whole tiers, and reports on plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import DataLost, InvalidArgument, LogTruncated
from rlmm.inspection.cluster_facts import ClusterSetting, PartitionOffsets, TopicFacts
from rlmm.inspection.moment import ReplayEnd
from rlmm.log.protocol import LogBounds, LogIdentity
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.ids import Uuid
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from spark_tiering.read_plan import moments
from spark_tiering.read_plan.manifest_units import ManifestContents, UnreadableManifest
from spark_tiering.read_plan.moments import moment_at, steady
from spark_tiering.read_plan.plan_check import CheckedRange, PlannedSegmentFate, fate_in_metadata
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.reports import CheckReport, PlanExportReport
from spark_tiering.read_plan.tier_plans import (
    UNREAD_SHOWN_MAX,
    facts_of_cluster,
    fates_in_moment,
    plan_of_manifests,
    plan_of_moment,
    remade,
)
from spark_tiering.read_plan.tokens import parse_token
from spark_tiering.reporting import report
from tests.support.tier.read_plans import (
    CLUSTER,
    DELETED,
    DELETING,
    FINISHED,
    METADATA_TOPIC,
    ORDERS,
    STARTED,
    event_of,
    plan_of,
    segment,
    shard_with,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.findings.finding import Finding
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata, SegmentState
    from rlmm.metadata.shard import Shard
    from spark_tiering.read_plan.moments import PastMoment


PLACES = 3


class MemoryTierLog:
    def __init__(self, cluster_id: str = CLUSTER, places: int = PLACES) -> None:
        self._identity = LogIdentity(cluster_id, METADATA_TOPIC, places)
        self._batches: dict[int, list[bytes]] = {place: [] for place in range(places)}
        self.log_start = 0

    def put(self, one: SegmentMetadata, *states: SegmentState) -> None:
        for event in (event_of(one, state) for state in states):
            batches = self._batches[place_of(event.id.partition, len(self._batches))]
            record = Record(len(batches), 0, None, encode_any(event))
            batches.append(build_batch([record], record.offset))

    def cut(self) -> None:
        for batches in self._batches.values():
            batches.clear()

    def identity(self) -> LogIdentity:
        return self._identity

    def bounds(self, places: Collection[int]) -> Mapping[int, LogBounds | LogError]:
        return {one: LogBounds(self._start(one), len(self._batches[one])) for one in places}

    def _start(self, place: int) -> int:
        return min(self.log_start, len(self._batches[place]))

    def read(self, place: int, position: int, *, bytes_max: int = 1 << 20) -> RecordSet | None:
        assert bytes_max > 0
        batches = self._batches[place]
        return RecordSet(place, b"".join(batches[position:]), len(batches))


class FewTopics:
    def __init__(self, **settings: dict[str, str] | None) -> None:
        self._settings = {
            name: None if said is None else {k: ClusterSetting(v, True) for k, v in said.items()}
            for name, said in settings.items()
        }
        self.asked: list[TopicIdPartition] = []

    def topics(self, names: Collection[str] | None = None) -> Mapping[str, TopicFacts]:
        return {
            name: TopicFacts(name, ORDERS.topic_id, {}, settings)
            for name, settings in self._settings.items()
            if names is None or name in names
        }

    def offsets(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, PartitionOffsets]:
        self.asked += partitions
        return {one: PartitionOffsets(earliest=7) for one in partitions}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"retention.ms": "5"}, {"orders": 5}),
        ({"retention.ms": "-1"}, {}),
        ({"retention.ms": "often"}, {}),
        ({"retention.ms": "5", "cleanup.policy": "compact"}, {}),
        ({"retention.ms": "5", "cleanup.policy": "compact,delete"}, {"orders": 5}),
        (None, {}),
    ],
)
def test_facts_have_what_deletes(settings: dict[str, str] | None, expected: dict[str, int]) -> None:
    """The facts of a cluster hold retention and log start offsets."""
    found = facts_of_cluster(FewTopics(orders=settings), [ORDERS])
    assert found.retention_ms == expected
    assert found.log_starts == {ORDERS: 7}


def test_facts_when_a_topic_is_gone_then_nothing_is_known_of_it() -> None:
    """The facts of a deleted topic are unknown, also when another topic has its name."""
    cluster = FewTopics(logs={})
    assert facts_of_cluster(cluster, [ORDERS]) == QuestionFacts()
    successor = FewTopics(orders={})
    before = replace(ORDERS, topic_id=Uuid(bytes(16)))
    assert facts_of_cluster(successor, [before]).log_starts == {}
    assert cluster.asked == successor.asked == []


def test_plan_when_it_is_made_again_then_is_of_the_positions_of_its_token() -> None:
    """A plan made again uses its token's positions, whatever was written since."""
    first, second = segment(1, 0, 9), segment(2, 10, 19)
    log = MemoryTierLog()
    log.put(first, STARTED, FINISHED)
    plan = plan_of_moment(_now(log), Question(("orders",)))
    log.put(second, STARTED, FINISHED)
    log.put(first, DELETING)
    assert remade(log, parse_token(plan.token)) == plan
    assert plan_of_moment(_now(log), Question(("orders",))) != plan


def test_plan_when_the_log_has_lost_its_beginning_or_end_then_says_that_it_cannot_be_made() -> None:
    """A plan over a metadata log that lost its beginning or end is refused with the reason."""
    log = MemoryTierLog()
    for number in range(3):
        log.put(segment(number, 10 * number, 10 * number + 9), STARTED, FINISHED)
    token = parse_token(plan_of_moment(_now(log), Question()).token)
    log.log_start = 2
    with pytest.raises(DataLost, match="begins in partition"):
        remade(log, token)
    log.log_start = 6
    with pytest.raises((DataLost, LogTruncated)):
        remade(log, token)
    log.log_start = 0
    log.cut()
    with pytest.raises(DataLost, match="it was cut"):
        remade(log, token)


def test_plan_when_what_was_asked_is_not_in_its_token_then_its_file_is_asked_for() -> None:
    """A token without its plan's question needs the plan's file to make the plan again."""
    one = segment(1, 0, 9)
    log = MemoryTierLog()
    log.put(one, STARTED, FINISHED)
    question = Question(
        bounds_of={("orders", number): RecordBounds(0, number) for number in range(300)}
    )
    plan = plan_of_moment(_now(log), question)
    with pytest.raises(InvalidArgument, match="file of the plan"):
        remade(log, parse_token(plan.token))
    assert remade(log, parse_token(plan.token), (plan.question, plan.facts)) == plan
    with pytest.raises(InvalidArgument, match="--since"):
        remade(log, parse_token(plan.token), (Question(), QuestionFacts()))


def test_fates_when_the_metadata_is_another_then_is_refused() -> None:
    """A check against other metadata is refused, because every segment would seem deleted."""
    one = segment(1, 0, 9)
    log, other = MemoryTierLog(), MemoryTierLog("another")
    log.put(one, STARTED, FINISHED)
    plan = plan_of_moment(_now(log), Question())
    with pytest.raises(InvalidArgument, match="and this is another"):
        fates_in_moment(_now(other), plan)
    fate_of = fates_in_moment(_now(log), plan)
    assert [fate_of(planned) for planned in plan.segments] == [PlannedSegmentFate.THERE]
    log.put(one, DELETING, DELETED)
    fate_of = fates_in_moment(_now(log), plan)
    assert [fate_of(planned) for planned in plan.segments] == [PlannedSegmentFate.GONE]


class MovingMoment:
    def __init__(self, log: MemoryTierLog) -> None:
        self._log = log
        self.identity = log.identity()
        self.positions = _now(log).positions
        self.asked: list[TopicIdPartition] = []

    def partitions(self) -> list[PartitionSummary]:
        return _now(self._log).partitions()

    def impossible(self) -> list[Finding]:
        return _now(self._log).impossible()

    def state(self, partition: TopicIdPartition) -> Shard:
        self.asked.append(partition)
        return _now(self._log).state(partition)


def test_plan_when_the_metadata_goes_on_meanwhile_then_is_of_its_positions_exactly() -> None:
    """A plan uses exactly its positions while segments and partitions come and go."""
    other = replace(ORDERS, partition=1)
    log = MemoryTierLog(places=1)
    first, second, newer = segment(1, 0, 9), segment(2, 10, 19), segment(3, 0, 9, of=other)
    log.put(first, STARTED, FINISHED)
    log.put(second, STARTED)
    before = plan_of_moment(_now(log), Question())
    moment = MovingMoment(log)
    log.put(second, FINISHED)
    log.put(newer, STARTED, FINISHED)
    log.put(first, DELETING)
    plan = plan_of_moment(steady(moment, log), Question())
    assert plan == before
    assert plan != plan_of_moment(_now(log), Question())
    assert remade(log, parse_token(plan.token)) == plan
    assert moment.asked == [ORDERS, other]


def test_plan_when_other_topics_change_replays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of one topic replays nothing for events of others in the same metadata partition."""
    other = replace(ORDERS, partition=1)
    log = MemoryTierLog(places=1)
    first, newer = segment(1, 0, 9), segment(3, 0, 9, of=other)
    log.put(first, STARTED, FINISHED)
    log.put(newer, STARTED)
    question = Question(assigned=(("orders", (0,)),))
    before = plan_of_moment(_now(log), question)
    moment = MovingMoment(log)
    log.put(newer, FINISHED)
    monkeypatch.setattr(moments, "moment_at", None)  # nobody replays from here on
    assert plan_of_moment(steady(moment, log), question) == before


def _now(log: MemoryTierLog) -> PastMoment:
    return moment_at(log, ReplayEnd(), lambda _: True)


HOUR_MS = 3_600_000


def test_summary_has_a_line_for_each_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary has a line for each part of a plan, and counts those beyond the first ones."""
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
    monkeypatch.setattr(report, "LINES_MAX", 2)
    many = plan_of(shard_with(*(segment(n, 20 * n, 20 * n + 9) for n in range(1, 8))))
    assert "  ... and 4 more gaps" in list(PlanExportReport(many, 0).lines())


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
