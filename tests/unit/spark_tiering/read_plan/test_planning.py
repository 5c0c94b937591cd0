"""Planning of reads: the segments of a frozen plan, and its gaps with reasons."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import INT64_MAX, TopicIdPartition, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.read_plan.document import sums_of
from spark_tiering.read_plan.inputs import PartitionInput, StateOrigin, inputs_of_segments
from spark_tiering.read_plan.plan import GapReason, LeftOutReason, PlanSourceKind
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import parse_token
from tests.support.tier.read_plans import (
    DELETING,
    METADATA_TOPIC,
    ORDERS,
    STARTED,
    gaps,
    origin,
    plan_of,
    rows,
    segment,
    shard_with,
)

if TYPE_CHECKING:
    from rlmm.metadata.python_shard import PythonShard

OTHER_ID = Uuid(bytes(range(100, 116)))


# ------------------------------------------------------------------------------------- lineage


def test_overlap_when_a_segment_lies_inside_another_then_each_offset_is_read_once() -> None:
    """Offsets of a segment inside another are read once, from the inner one."""
    plan = plan_of(shard_with(segment(1, 0, 99), segment(2, 30, 49)))
    assert rows(plan) == [(1, 0, 29), (2, 30, 49), (1, 50, 99)]
    assert sums_of(plan)["segments"] == 2
    assert sums_of(plan)["ranges"] == 3
    assert sums_of(plan)["bytes"] == 1_001 + 1_002


def test_lineage_when_leaders_disagreed_then_the_greatest_epoch_is_read() -> None:
    """The plan reads the greatest epoch and names a deposed leader's records as left out."""
    old = segment(1, 0, 99, epochs=((0, 0),))
    new = segment(2, 50, 149, epochs=((1, 50),))
    plan = plan_of(shard_with(old, new))
    assert rows(plan) == [(1, 0, 49), (2, 50, 149)]
    assert plan.partitions[0].epochs == ((0, 0), (1, 50))


def test_lineage_when_an_epoch_was_replaced_whole_then_its_segments_are_left_out() -> None:
    """Segments of an epoch that a later one replaced from its start are left out."""
    deposed = segment(1, 50, 149, epochs=((1, 50),))
    plan = plan_of(
        shard_with(
            segment(2, 0, 49), deposed, segment(3, 40, 99, epochs=((0, 40), (2, 50)))
        )
    )  # fmt: skip
    (one,) = plan.partitions
    assert {row[0] for row in rows(plan)} == {2, 3}
    assert [(left.reason, int.from_bytes(left.uuid)) for left in one.left_out] == [
        (LeftOutReason.OTHER_LINEAGE, 1)
    ]


def test_lineage_when_a_later_leader_has_a_copy_under_way_then_its_epoch_counts() -> None:
    """Offsets of a later leader's unfinished copy are missing, not a deposed leader's."""
    plan = plan_of(
        shard_with(
            segment(1, 0, 99),
            segment(2, 60, 119, epochs=((1, 60),), state=STARTED),
        ),
        Question(bounds=RecordBounds(to_offset=120)),
    )
    assert rows(plan) == [(1, 0, 59)]
    assert gaps(plan) == [(60, 120, GapReason.NOT_TIERED_YET)]


def test_lineage_when_the_history_is_known_then_it_stands_above_what_segments_tell() -> None:
    """A known leader epoch history takes precedence over the segments' epochs."""
    shard = shard_with(segment(1, 0, 99), segment(2, 120, 199, epochs=((1, 120),)))
    told = plan_of(shard)
    assert rows(told) == [(1, 0, 99), (2, 120, 199)]
    facts = QuestionFacts(histories={ORDERS: ((0, 0), (1, 80))})
    plan = plan_of(shard, facts=facts)
    assert rows(plan) == [(1, 0, 79), (2, 120, 199)]
    assert gaps(plan) == [(80, 100, GapReason.OTHER_LINEAGE), (100, 120, GapReason.MISSING)]
    assert plan.token != told.token


def test_lineage_when_a_segment_is_being_deleted_then_its_epoch_replaces_nothing() -> None:
    """The epoch of a segment under deletion replaces no other."""
    plan = plan_of(
        shard_with(segment(1, 0, 99), segment(2, 50, 149, epochs=((1, 50),), state=DELETING))
    )
    assert rows(plan) == [(1, 0, 99)]


def test_segment_when_it_lists_an_epoch_outside_itself_then_no_more_than_it_holds_is_read() -> None:
    """A segment that lists an epoch outside its offsets is read only for its own offsets."""
    plan = plan_of(
        shard_with(segment(1, 10, 19, epochs=((0, 5),))),
        Question(bounds=RecordBounds(from_offset=5)),
    )
    assert rows(plan) == [(1, 10, 19)]
    assert gaps(plan) == [(5, 10, GapReason.BELOW_TIER)]


def test_segment_when_an_epoch_of_another_leader_lies_inside_then_is_read_around_it() -> None:
    """Offsets of another leader's unfinished copy are missing amid a read segment."""
    around = segment(1, 0, 99, epochs=((0, 0), (2, 60)))
    inside = segment(2, 40, 49, epochs=((1, 40),), state=STARTED)
    plan = plan_of(shard_with(around, inside))
    assert rows(plan) == [(1, 0, 39), (1, 60, 99)]
    assert gaps(plan) == [(40, 50, GapReason.BEING_COPIED), (50, 60, GapReason.OTHER_LINEAGE)]


def test_manifests_when_two_are_of_one_range_then_the_later_copy_is_read() -> None:
    """The plan reads the later copy of a range, whatever the order of the list."""
    both = [segment(1, 0, 9), segment(2, 0, 9)]
    for some in (both, both[::-1]):
        inputs = inputs_of_segments(some)
        plan = make_plan(Question(), inputs, StateOrigin(PlanSourceKind.MANIFESTS), QuestionFacts())
        assert rows(plan) == [(2, 0, 9)]


# ---------------------------------------------------------------------------------------- gaps


def test_gaps_when_offsets_are_not_there_then_each_says_why() -> None:
    """Each gap below, between and behind segments has its reason."""
    shard = shard_with(
        segment(1, 20, 29, state=DELETING),
        segment(2, 30, 39),
        segment(3, 40, 49, state=STARTED),
        segment(4, 55, 59),
        segment(5, 60, 64, state=DELETING),
        segment(6, 65, 69),
    )
    facts = QuestionFacts(log_starts={ORDERS: 10})
    plan = plan_of(shard, Question(bounds=RecordBounds(5, 80)), facts)
    assert rows(plan) == [(2, 30, 39), (4, 55, 59), (6, 65, 69)]
    assert gaps(plan) == [
        (5, 10, GapReason.BELOW_LOG_START),
        (10, 20, GapReason.BELOW_TIER),
        (20, 30, GapReason.BEING_DELETED),
        (40, 50, GapReason.BEING_COPIED),
        (50, 55, GapReason.MISSING),
        (60, 65, GapReason.BEING_DELETED),
        (70, 80, GapReason.NOT_TIERED_YET),
    ]
    (one,) = plan.partitions
    assert [left.reason for left in one.left_out] == [
        LeftOutReason.BEING_DELETED,
        LeftOutReason.BEING_COPIED,
        LeftOutReason.BEING_DELETED,
    ]
    assert (one.tier_first, one.tier_next, one.next_offset) == (30, 70, 70)


def test_gap_when_a_copy_is_hidden_by_others_then_it_is_named_and_nothing_is_missing() -> None:
    """Of two equal copies the plan names the older one as hidden, and no offset is missing."""
    plan = plan_of(shard_with(segment(1, 0, 99), segment(2, 0, 99)))
    assert rows(plan) == [(2, 0, 99)]
    assert [one.reason for one in plan.partitions[0].left_out] == [LeftOutReason.HIDDEN]
    assert gaps(plan) == []


def test_log_start_when_records_were_deleted_then_no_plan_has_them() -> None:
    """Records below a log start offset inside a segment are in no plan."""
    shard = shard_with(segment(1, 0, 99), segment(2, 100, 199))
    facts = QuestionFacts(log_starts={ORDERS: 150})
    plan = plan_of(shard, facts=facts)
    assert rows(plan) == [(2, 150, 199)]
    asked = plan_of(shard, Question(bounds=RecordBounds(from_offset=0)), facts)
    assert gaps(asked) == [(0, 150, GapReason.BELOW_LOG_START)]
    assert asked.partitions[0].left_out == ()
    assert plan.partitions[0].asked == ((150, 200),)
    assert not next(plan.segments).is_whole


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


# ---------------------------------------------------------------------------------------- time


def test_time_when_a_window_is_asked_then_begins_and_ends_where_look_ups_by_time_do() -> None:
    """A window of times begins and ends at the segments that look-ups by time find."""
    shard = shard_with(
        segment(1, 0, 9, newest_ms=100),
        segment(2, 10, 19, newest_ms=200),
        segment(3, 30, 39, newest_ms=300),
        segment(4, 40, 49, newest_ms=400),
    )
    plan = plan_of(shard, Question(bounds=RecordBounds(from_time_ms=150, to_time_ms=200)))
    assert rows(plan) == [(2, 10, 19)]
    plan = plan_of(shard, Question(bounds=RecordBounds(from_time_ms=250, to_time_ms=301)))
    assert rows(plan) == [(3, 30, 39), (4, 40, 49)]
    assert gaps(plan) == [(20, 30, GapReason.MISSING)]
    beyond = plan_of(shard, Question(bounds=RecordBounds(from_time_ms=350, to_time_ms=500)))
    assert rows(beyond) == [(4, 40, 49)]
    assert gaps(beyond) == [(50, None, GapReason.NOT_TIERED_YET)]
    assert beyond.partitions[0].next_offset == 50
    assert beyond.partitions[0].tiered_until_ms == 400


def test_expiry_when_retention_is_known_then_each_segment_says_when_it_goes() -> None:
    """A segment expires a millisecond after its retention, one without times never."""
    shard = shard_with(segment(1, 0, 9, newest_ms=100), segment(2, 10, 19, newest_ms=-1))
    plan = plan_of(shard, facts=QuestionFacts(retention_ms={"orders": 50}))
    assert [one.expires_at_ms for one in plan.segments] == [151, None]
    assert [one.expires_at_ms for one in plan_of(shard).segments] == [None, None]


# ---------------------------------------------------------------------------------------- keys


def test_keys_when_custom_metadata_names_others_then_log_and_indexes_are_there() -> None:
    """The plugin's custom metadata names the log's and indexes' key, never the manifest's."""
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
    assert (second.log_key, second.indexes_key) == (
        "elsewhere/moved.log",
        "elsewhere/moved.indexes",
    )
    assert second.manifest_key == f"{folder}{10:020d}-{moved.id.uuid}.rsm-manifest"
    assert third.indexes_key == f"{folder}{20:020d}-{foreign.id.uuid}.indexes"


def test_keys_when_no_broker_has_such_a_topic_then_are_empty() -> None:
    """A topic with a slash in its name has no keys."""
    odd = TopicIdPartition(ORDERS.topic_id, "or/ders", 0)
    plan = plan_of(shard_with(segment(1, 0, 9, of=odd)))
    assert {one.log_key for one in plan.segments} == {""}


# ------------------------------------------------------------------------------------- as whole


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

    def give(number: int) -> PythonShard:
        taken.append(number)
        return shard

    inputs = [
        PartitionInput(replace(ORDERS, partition=number), partial(give, number), 0)
        for number in (2, 0, 1)
    ]
    make_plan(Question(assigned=(("orders", (0, 2)),)), inputs, origin(), QuestionFacts())
    assert taken == [0, 2]
