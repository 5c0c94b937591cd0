"""Planning of reads: segments, gaps with reasons, and impossible questions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.read_plan.document import sums_of
from spark_tiering.read_plan.inputs import PartitionInput, StateOrigin, inputs_of_segments
from spark_tiering.read_plan.plan import GapReason, PlanSourceKind
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import parse_token
from tests.support.tier.read_plans import (
    DELETING,
    METADATA_TOPIC,
    ORDERS,
    STARTED,
    Row,
    gaps,
    origin,
    plan_of,
    rows,
    segment,
    shard_with,
)

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.engine.chosen import ChosenShard


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (Question(), {"orders", "logs-1"}),
        (Question(("logs-*",)), {"logs-1"}),
        (Question(("logs-*", "__own")), {"logs-1", "__own"}),
        (Question(without_topics=("logs-?",)), {"orders"}),
        (Question(pattern="(orders|__own)"), {"orders", "__own"}),
        (Question(pattern="order"), set()),
        (Question(assigned=(("orders", (3,)),)), {"orders"}),
        (Question(assigned=(("orders", (0,)),)), set()),
    ],
)
def test_question_when_topics_are_said_then_wants_these(said: Question, wanted: set[str]) -> None:
    """A question selects topics by name and pattern, and internal topics only by name."""
    assert {one for one in ("orders", "logs-1", "__own") if said.wants(one, 3)} == wanted


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        (Question, {"topics": ("a",), "pattern": "a"}, "one of them"),
        (Question, {"topics": ("a b",)}, "no topic"),
        (Question, {"without_topics": ("",)}, "no topic"),
        (Question, {"pattern": "("}, "no regular expression"),
        (Question, {"pattern": "a" * 2_000}, "2000 characters"),
        (RecordBounds, {"from_offset": 1, "from_time_ms": 1}, "say one"),
        (RecordBounds, {"to_offset": 1, "to_time_ms": 1}, "say one"),
        (RecordBounds, {"from_offset": 2, "to_offset": 1}, "before the beginning"),
        (RecordBounds, {"from_time_ms": 2, "to_time_ms": 1}, "before the beginning"),
        (RecordBounds, {"from_offset": -1}, "no whole number"),
        (RecordBounds, {"to_offset": 2**63}, "no whole number"),
        (RecordBounds, {"to_offset": True}, "no whole number"),
        (QuestionFacts, {"histories": {ORDERS: ((1, 0), (0, 5))}}, "do not rise"),
        (QuestionFacts, {"histories": {ORDERS: ((0, 5), (1, 5))}}, "do not rise"),
    ],
)
def test_question_when_it_cannot_be_meant_then_is_refused(kind: Any, fields: Any, why: str) -> None:
    """A question, bounds or facts that contradict themselves are refused with a message."""
    with pytest.raises(InvalidArgument, match=why):
        kind(**fields)


def test_bounds_when_they_are_equal_then_are_an_empty_range() -> None:
    """Equal bounds are an empty range."""
    assert RecordBounds(1, 1).to_offset == 1


Gap = tuple[int, int | None, GapReason]
OTHER_ID = Uuid(bytes(range(100, 116)))


DEPOSED = segment(1, 50, 149, epochs=((1, 50),))
AROUND = segment(1, 0, 99, epochs=((0, 0), (2, 60)))
TIMES = [
    segment(n, first, first + 9, newest_ms=100 * n) for n, first in enumerate((0, 10, 30, 40), 1)
]
PLANS: dict[str, tuple[list[SegmentMetadata], RecordBounds, list[Row], list[Gap], list[str]]] = {
    "a segment inside another": (
        [segment(1, 0, 99), segment(2, 30, 49)], RecordBounds(),
        [(1, 0, 29), (2, 30, 49), (1, 50, 99)], [], [],
    ),
    "leaders that disagreed": (
        [segment(1, 0, 99), segment(2, 50, 149, epochs=((1, 50),))], RecordBounds(),
        [(1, 0, 49), (2, 50, 149)], [], [],
    ),
    "an epoch that was replaced whole": (
        [segment(2, 0, 49), DEPOSED, segment(3, 40, 99, epochs=((0, 40), (2, 50)))],
        RecordBounds(), [(2, 0, 39), (3, 40, 99)], [], ["1 other-lineage"],
    ),
    "a later leader's copy under way": (
        [segment(1, 0, 99), segment(2, 60, 119, epochs=((1, 60),), state=STARTED)],
        RecordBounds(to_offset=120),
        [(1, 0, 59)], [(60, 120, GapReason.NOT_TIERED_YET)], ["2 being-copied"],
    ),
    "an epoch of a segment that is being deleted": (
        [segment(1, 0, 99), segment(2, 50, 149, epochs=((1, 50),), state=DELETING)],
        RecordBounds(), [(1, 0, 99)], [], ["2 being-deleted"],
    ),
    "an epoch outside its segment": (
        [segment(1, 10, 19, epochs=((0, 5),))], RecordBounds(from_offset=5),
        [(1, 10, 19)], [(5, 10, GapReason.BELOW_TIER)], [],
    ),
    "another leader's unfinished copy inside": (
        [AROUND, segment(2, 40, 49, epochs=((1, 40),), state=STARTED)], RecordBounds(),
        [(1, 0, 39), (1, 60, 99)],
        [(40, 50, GapReason.BEING_COPIED), (50, 60, GapReason.OTHER_LINEAGE)], ["2 being-copied"],
    ),
    "gaps below, between and behind": (
        [
            segment(1, 20, 29, state=DELETING), segment(2, 30, 39),
            segment(3, 40, 49, state=STARTED), segment(4, 55, 59),
            segment(5, 60, 64, state=DELETING), segment(6, 65, 69),
        ],
        RecordBounds(5, 80), [(2, 30, 39), (4, 55, 59), (6, 65, 69)],
        [
            (5, 20, GapReason.BELOW_TIER), (20, 30, GapReason.BEING_DELETED),
            (40, 50, GapReason.BEING_COPIED), (50, 55, GapReason.MISSING),
            (60, 65, GapReason.BEING_DELETED), (70, 80, GapReason.NOT_TIERED_YET),
        ],
        ["1 being-deleted", "3 being-copied", "5 being-deleted"],
    ),
    "two equal copies": (
        [segment(1, 0, 99), segment(2, 0, 99)], RecordBounds(), [(2, 0, 99)], [], ["1 hidden"],
    ),
    "a window of time": (TIMES, RecordBounds(None, None, 150, 200), [(2, 10, 19)], [], []),
    "a window of time that begins in a hole": (
        TIMES, RecordBounds(None, None, 250, 301),
        [(3, 30, 39), (4, 40, 49)], [(20, 30, GapReason.MISSING)], [],
    ),
    "a window of time beyond the tier": (
        TIMES, RecordBounds(None, None, 350, 500),
        [(4, 40, 49)], [(50, None, GapReason.NOT_TIERED_YET)], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("segments", "bounds", "read", "missing", "left_out"), PLANS.values(), ids=PLANS
)
def test_plan_when_segments_overlap_or_lack_then_each_offset_is_read_once_or_a_gap_with_a_reason(
    segments: list[SegmentMetadata],
    bounds: RecordBounds,
    read: list[Row],
    missing: list[Gap],
    left_out: list[str],
) -> None:
    """Each wanted offset is read once, from the last leader's copy, or is a gap with a reason."""
    plan = plan_of(shard_with(*segments), Question(bounds=bounds))
    assert rows(plan) == read
    assert gaps(plan) == missing
    sums = sums_of(plan)
    assert (sums["ranges"], sums["segments"]) == (len(read), len({number for number, *_ in read}))
    assert sums["bytes"] == sum(1_000 + number for number in {number for number, *_ in read})
    (one,) = plan.partitions
    assert [f"{int.from_bytes(left.uuid)} {left.reason}" for left in one.left_out] == left_out


def test_lineage_when_the_history_is_known_then_it_stands_above_what_segments_tell() -> None:
    """A known leader epoch history takes precedence over the segments' epochs."""
    shard = shard_with(segment(1, 0, 99), segment(2, 120, 199, epochs=((1, 120),)))
    told = plan_of(shard)
    assert rows(told) == [(1, 0, 99), (2, 120, 199)]
    assert told.partitions[0].epochs == ((0, 0), (1, 120))
    facts = QuestionFacts(histories={ORDERS: ((0, 0), (1, 80))})
    plan = plan_of(shard, facts=facts)
    assert rows(plan) == [(1, 0, 79), (2, 120, 199)]
    assert gaps(plan) == [(80, 100, GapReason.OTHER_LINEAGE), (100, 120, GapReason.MISSING)]
    assert plan.token != told.token


def test_manifests_when_two_are_of_one_range_then_the_later_copy_is_read() -> None:
    """The plan reads the later copy of a range, whatever the order of the list."""
    both = [segment(1, 0, 9), segment(2, 0, 9)]
    for some in (both, both[::-1]):
        inputs = inputs_of_segments(some)
        plan = make_plan(Question(), inputs, StateOrigin(PlanSourceKind.MANIFESTS), QuestionFacts())
        assert rows(plan) == [(2, 0, 9)]


def test_log_start_when_records_were_deleted_then_no_plan_has_them() -> None:
    """Records below a log start offset, inside a segment or below the tier, are in no plan."""
    shard = shard_with(segment(1, 0, 99), segment(2, 100, 199))
    facts = QuestionFacts(log_starts={ORDERS: 150})
    plan = plan_of(shard, facts=facts)
    assert rows(plan) == [(2, 150, 199)]
    asked = plan_of(shard, Question(bounds=RecordBounds(from_offset=0)), facts)
    assert gaps(asked) == [(0, 150, GapReason.BELOW_LOG_START)]
    assert asked.partitions[0].left_out == ()
    assert plan.partitions[0].asked == ((150, 200),)
    assert not next(plan.segments).is_whole
    tier = shard_with(segment(1, 20, 29))
    facts = QuestionFacts(log_starts={ORDERS: 10})
    above = plan_of(tier, Question(bounds=RecordBounds(5)), facts)
    assert gaps(above) == [(5, 10, GapReason.BELOW_LOG_START), (10, 20, GapReason.BELOW_TIER)]


def test_tier_when_it_was_planned_then_its_ends_are_named() -> None:
    """A plan names the first and next offset of the tier, and its newest time."""
    shard = shard_with(segment(1, 20, 29, state=DELETING), *TIMES[2:])
    (one,) = plan_of(shard, Question(bounds=RecordBounds(5, 80))).partitions
    assert (one.tier_first, one.tier_next, one.tiered_until_ms) == (30, 50, 400)
    assert one.next_offset == 50


def test_partition_when_nothing_is_tiered_then_the_plan_says_so() -> None:
    """Open bounds miss nothing in an untiered partition; a given bound does."""
    shard = shard_with(segment(1, 0, 99, state=STARTED))
    plan = plan_of(shard)
    assert plan.partitions[0].asked == ()
    assert plan.partitions[0].next_offset is None
    asked = plan_of(shard, Question(bounds=RecordBounds(to_offset=50)))
    assert gaps(asked) == [(0, 50, GapReason.NOT_TIERED_YET)]
    by_time = plan_of(shard, Question(bounds=RecordBounds(to_time_ms=50)))
    assert gaps(by_time) == [(0, None, GapReason.NOT_TIERED_YET)]


def test_offsets_when_they_are_the_greatest_there_are_then_nothing_overflows() -> None:
    """Offsets at the greatest value do not overflow: the plan reads up to it and excludes it."""
    last = segment(1, INT64_MAX - 1, INT64_MAX)
    plan = plan_of(shard_with(last))
    assert rows(plan) == [(1, INT64_MAX - 1, INT64_MAX - 1)]
    assert plan.partitions[0].next_offset == INT64_MAX
    assert parse_token(plan.token).reached[ORDERS].next_offset == INT64_MAX


def test_expiry_when_retention_is_known_then_each_segment_says_when_it_goes() -> None:
    """A segment expires a millisecond after its retention, one without times never."""
    shard = shard_with(segment(1, 0, 9, newest_ms=100), segment(2, 10, 19, newest_ms=-1))
    plan = plan_of(shard, facts=QuestionFacts(retention_ms={"orders": 50}))
    assert [one.expires_at_ms for one in plan.segments] == [151, None]
    assert [one.expires_at_ms for one in plan_of(shard).segments] == [None, None]


def test_keys_when_custom_metadata_names_others_then_log_and_indexes_are_there() -> None:
    """Custom metadata names the keys of log and indexes; an impossible topic name has no keys."""
    custom = format_custom_metadata(CustomMetadata(None, "elsewhere/", "moved"))
    here = segment(1, 0, 9)
    moved = replace(segment(2, 10, 19), custom_metadata=custom)
    foreign = replace(segment(3, 20, 29), custom_metadata=b"\xff\xff\xff")
    inputs = inputs_of_segments([here, moved, foreign])
    made = make_plan(
        Question(prefix="tier/"), inputs, StateOrigin(PlanSourceKind.MANIFESTS), QuestionFacts()
    )
    first, second, third = made.segments
    folder = f"tier/orders-{ORDERS.topic_id}/0/"
    assert first.log_key == f"{folder}{0:020d}-{here.id.uuid}.log"
    assert first.manifest_key == f"{folder}{0:020d}-{here.id.uuid}.rsm-manifest"
    assert second.log_key == "elsewhere/moved.log"
    assert second.indexes_key == "elsewhere/moved.indexes"
    assert second.manifest_key == f"{folder}{10:020d}-{moved.id.uuid}.rsm-manifest"
    assert third.indexes_key == f"{folder}{20:020d}-{foreign.id.uuid}.indexes"
    odd = TopicIdPartition(ORDERS.topic_id, "or/ders", 0)
    plan = plan_of(shard_with(segment(1, 0, 9, of=odd)))
    assert {one.log_key for one in plan.segments} == {""}


def test_positions_when_a_plan_stands_on_some_then_others_do_not_change_its_token() -> None:
    """Events of other topics in other metadata partitions do not change the token of a plan."""
    shard = shard_with(segment(1, 0, 99))
    inputs = [PartitionInput(ORDERS, lambda: shard, 7)]
    plans = [
        make_plan(Question(), inputs, origin({7: 12, 8: other}), QuestionFacts())
        for other in (1, 2_000)
    ]
    assert plans[0] == plans[1]
    assert plans[0].positions == {7: 12}
    assert plans[0].metadata_topic_id == METADATA_TOPIC


def test_partition_when_it_was_deleted_to_the_end_then_no_plan_has_it() -> None:
    """A completely deleted partition is in no plan."""
    shard = shard_with()
    for state in PartitionDeleteState:
        shard.apply_event(PartitionDelete(ORDERS, 1, 1, state))
    assert plan_of(shard).partitions == ()


def test_name_when_several_topics_had_it_then_the_plan_warns() -> None:
    """A name of several topics gives a warning, and one of them may be named by its id."""
    anew = replace(ORDERS, topic_id=OTHER_ID)
    plan = plan_of(shard_with(segment(1, 0, 9), segment(2, 0, 9, of=anew)))
    assert len(plan.partitions) == 2
    assert plan.warnings == (f"orders-0: 2 topics had this name: {ORDERS.topic_id}, {OTHER_ID}",)


def test_partitions_when_one_is_planned_then_no_other_is_in_memory() -> None:
    """The plan holds one partition in memory at a time and reads only the wanted shards."""
    taken: list[int] = []
    shard = shard_with(segment(1, 0, 9))

    def give(number: int) -> ChosenShard:
        taken.append(number)
        return shard

    inputs = [
        PartitionInput(replace(ORDERS, partition=number), partial(give, number), 0)
        for number in (2, 0, 1)
    ]
    make_plan(Question(assigned=(("orders", (0, 2)),)), inputs, origin(), QuestionFacts())
    assert taken == [0, 2]
