"""Plans since another plan: new segments, and the fate of earlier ones and of gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.read_plan.inputs import PartitionInput
from spark_tiering.read_plan.plan import GapReason
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import parse_token
from tests.support.tier.read_plans import (
    DELETING,
    ORDERS,
    STARTED,
    gaps,
    origin,
    plan_of,
    rows,
    segment,
    shard_with,
)

OTHER_ID = Uuid(bytes(range(100, 116)))


def test_since_when_segments_came_then_only_these_are_new() -> None:
    """Segments copied since, also into earlier gaps, are new; those copied again are not."""
    copied = (segment(1, 0, 99), segment(3, 200, 249))
    first = plan_of(shard_with(*copied, segment(2, 100, 199, state=STARTED)))
    late = (segment(2, 100, 199), segment(4, 0, 120), segment(5, 240, 299))
    after = shard_with(*copied, *late)
    new = plan_of(after, since=parse_token(first.token))
    assert rows(new) == [(2, 100, 199), (5, 250, 299)]
    assert new.since == first.token
    assert new.partitions[0].asked == ((100, 200), (250, 300))
    nothing = plan_of(after, since=parse_token(new.token))
    assert rows(nothing) == []
    assert gaps(nothing) == []


def test_since_when_what_was_expired_before_it_was_read_then_it_is_a_gap() -> None:
    """A range that expired unread is a new gap once, and still missing in later plans."""
    first = plan_of(shard_with(segment(1, 0, 99)))
    later = shard_with(segment(3, 200, 299))
    second = plan_of(later, since=parse_token(first.token))
    assert rows(second) == [(3, 200, 299)]
    assert gaps(second) == [(100, 200, GapReason.BELOW_TIER)]
    third = plan_of(later, since=parse_token(second.token))
    assert gaps(third) == []
    assert third.warnings == (
        "orders-0: 100 offsets that the plan before lacked are still not there",
    )


def test_since_when_all_of_a_partition_is_gone_then_it_is_named() -> None:
    """A partition that expired whole is named as a gap."""
    first = plan_of(shard_with(segment(1, 0, 99)))
    second = plan_of(shard_with(segment(1, 0, 99, state=DELETING)), since=parse_token(first.token))
    assert rows(second) == []
    assert second.warnings == (
        "orders-0: the tier has nothing of it any more; it was planned up to 99",
    )
    third = plan_of(shard_with(segment(9, 300, 399)), since=parse_token(second.token))
    assert gaps(third) == [(100, 300, GapReason.BELOW_TIER)]


def test_since_when_a_topic_was_made_anew_then_its_successor_is_read_from_its_start() -> None:
    """A recreated topic is read from its start, and the deleted one is named."""
    first = plan_of(shard_with(segment(1, 0, 99)))
    anew = replace(ORDERS, topic_id=OTHER_ID)
    second = plan_of(shard_with(segment(2, 0, 49, of=anew)), since=parse_token(first.token))
    assert rows(second) == [(2, 0, 49)]
    assert second.warnings == (
        f"orders-0: topic id {ORDERS.topic_id} is not there any more; the topic was made anew: "
        f"{OTHER_ID}",
    )


def test_since_when_a_partition_is_new_then_all_of_it_is() -> None:
    """All offsets of a new partition are new."""
    first = plan_of(shard_with(segment(1, 0, 99)))
    grown = replace(ORDERS, partition=1)
    shard = shard_with(segment(1, 0, 99), segment(2, 0, 9, of=grown))
    second = plan_of(shard, since=parse_token(first.token))
    assert rows(second) == [(2, 0, 9)]


def test_since_when_an_older_segment_is_tiered_later_then_it_is_new() -> None:
    """An older segment tiered later is new behind a plan that began at the tier's start."""
    later = shard_with(segment(2, 50, 99), segment(3, 100, 149), segment(1, 20, 49))
    open_begin = plan_of(shard_with(segment(2, 50, 99)))
    assert rows(plan_of(later, since=parse_token(open_begin.token))) == [(1, 20, 49), (3, 100, 149)]
    question = Question(bounds=RecordBounds(from_offset=50))
    told = plan_of(shard_with(segment(2, 50, 99)), question)
    assert rows(plan_of(later, question, since=parse_token(told.token))) == [(3, 100, 149)]


def test_since_when_the_token_is_of_other_metadata_then_is_refused() -> None:
    """A token of other metadata is refused, because its offsets mean nothing here."""
    plan = plan_of(shard_with(segment(1, 0, 99)))
    inputs = [PartitionInput(ORDERS, shard_with, 0)]
    for changed in ({"cluster_id": "another"}, {"metadata_topic_id": OTHER_ID}):
        other = replace(origin(), **changed)
        with pytest.raises(InvalidArgument, match="and this is"):
            make_plan(Question(), inputs, other, QuestionFacts(), parse_token(plan.token))
