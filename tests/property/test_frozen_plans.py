"""Frozen plans of any history: each offset is a gap, or read once where the engine finds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.read_plan.document import ReadPlanUnreadable, format_plan, parse_plan
from spark_tiering.read_plan.inputs import inputs_of_segments
from spark_tiering.read_plan.parquet import format_parquet, parse_parquet
from spark_tiering.read_plan.plan import GapReason, PlanSourceKind
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import parse_token
from tests.support.records.mutations import mutated
from tests.support.tier.read_plans import (
    OFFSETS_MAX,
    ORDERS,
    events_of,
    histories,
    naive_reader,
    origin,
    plan_of,
    read_by,
    segments,
    shard_of,
)

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.read_plan.plan import FrozenPartition
    from tests.support.tier.read_plans import Move

OFFSETS = st.none() | st.integers(0, OFFSETS_MAX)
TIMES = st.none() | st.integers(0, 60)


@st.composite
def bounds(draw: st.DrawFn) -> RecordBounds:
    by_time, to_time = draw(st.booleans()), draw(st.booleans())
    first = {"from_time_ms" if by_time else "from_offset": draw(TIMES if by_time else OFFSETS)}
    behind = {"to_time_ms" if to_time else "to_offset": draw(TIMES if to_time else OFFSETS)}
    pair = [*first.values(), *behind.values()]
    if by_time == to_time and None not in pair and pair[0] > pair[1]:  # type: ignore[operator]
        first = {next(iter(first)): None}
    return RecordBounds(**first, **behind)


def offsets_of(planned: FrozenPartition) -> tuple[set[int], set[int]]:
    asked = {offset for first, behind in planned.asked for offset in range(first, behind)}
    missing: set[int] = set()
    for gap in planned.gaps:
        if gap.next_offset is not None:
            offsets = set(range(gap.first_offset, gap.next_offset))
            assert offsets
            assert not offsets & missing
            missing |= offsets
    return asked, missing


@given(histories(), bounds(), st.none() | st.integers(0, OFFSETS_MAX))
def test_ranges_and_gaps_are_what_was_asked_and_what_the_engine_answers(
    history: tuple[list[SegmentMetadata], list[Move]],
    asked_for: RecordBounds,
    log_start: int | None,
) -> None:
    """The plan agrees with the engine offset by offset."""
    shard = shard_of(events_of(history))
    facts = QuestionFacts(log_starts={} if log_start is None else {ORDERS: log_start})
    plan = plan_of(shard, Question(bounds=asked_for), facts)
    for planned in plan.partitions:
        read, (asked, missing) = read_by(planned), offsets_of(planned)
        assert set(read) | missing == asked
        assert not set(read) & missing
        naive = {
            offset: uuid
            for offset, uuid in naive_reader(shard, planned).items()
            if offset >= (log_start or 0)
        }
        assert read == {offset: uuid for offset, uuid in naive.items() if offset in asked}
        if asked_for.from_offset is not None and asked:
            assert min(asked) == asked_for.from_offset
        if asked_for.to_offset is not None and asked:
            assert max(asked) == asked_for.to_offset - 1
        if asked_for == RecordBounds() and naive:
            assert asked == set(range(min(naive), max(naive) + 1))


@given(histories(), st.integers(0, 60), st.integers(0, 60))
def test_window_of_time_has_every_segment_that_may_hold_it(
    history: tuple[list[SegmentMetadata], list[Move]], one: int, other: int
) -> None:
    """The plan of a time window has exactly the segments between its look-ups by time."""
    first_ms, behind_ms = sorted((one, other))
    shard = shard_of(events_of(history))
    whole = plan_of(shard)
    part = plan_of(
        shard, Question(bounds=RecordBounds(from_time_ms=first_ms, to_time_ms=behind_ms))
    )
    for every, planned in zip(whole.partitions, part.partitions, strict=True):
        rows = every.segments
        begin = next((n for n, row in enumerate(rows) if row.max_timestamp_ms >= first_ms), None)
        end = next((n for n, row in enumerate(rows) if row.max_timestamp_ms >= behind_ms), None)
        expected = rows[begin : None if end is None else end + 1] if begin is not None else ()
        assert planned.segments == tuple(expected)
        is_open = any(gap.next_offset is None for gap in planned.gaps)
        assert is_open == (end is None)


@given(histories(), st.data())
def test_plan_and_what_is_new_since_then_are_the_whole(
    history: tuple[list[SegmentMetadata], list[Move]], data: st.DataObject
) -> None:
    """A plan and its later increment hold each offset once, late copies included."""
    some, moves = history
    moves = [move for move in moves if move[1].value < 2]  # nothing is deleted in between
    cuts = sorted(data.draw(st.lists(st.integers(0, len(moves)), max_size=3)))
    first = data.draw(OFFSETS)
    question = Question(bounds=RecordBounds(from_offset=first))
    token, seen = None, set[int]()
    for cut in [*cuts, len(moves)]:
        shard = shard_of(events_of((some, moves[:cut])))
        plan = plan_of(shard, question, since=token)
        for planned in plan.partitions:
            read = set(read_by(planned))
            assert not read & seen
            seen |= read
        token = parse_token(plan.token)
        whole = plan_of(shard, question)
        there = {offset for one in whole.partitions for offset in read_by(one)}
        # A copy that comes may replace an epoch, and with it what nobody else holds.
        assert there <= seen


@given(histories(), bounds())
def test_plan_when_it_is_kept_and_read_is_the_same(
    history: tuple[list[SegmentMetadata], list[Move]], asked_for: RecordBounds
) -> None:
    """The plan survives JSON and tables, and another order of the state gives the same bytes."""
    shard = shard_of(events_of(history))
    question = Question(("orders",), bounds=asked_for, prefix="tier/", location="s3://bucket/")
    plan = plan_of(shard, question, QuestionFacts(retention_ms={"orders": 1_000}))
    content = format_plan(plan)
    assert parse_plan(content) == plan
    assert parse_parquet(format_parquet(plan)) == plan
    again = plan_of(shard, question, QuestionFacts(retention_ms={"orders": 1_000}))
    assert format_plan(again) == content
    assert format_parquet(again) == format_parquet(plan)
    token = parse_token(plan.token)
    assert str(token) == plan.token
    assert {one: reach.next_offset for one, reach in token.reached.items()} == {
        one.partition: one.next_offset for one in plan.partitions
    }


@given(segments(), st.randoms(use_true_random=False))
def test_plan_of_manifests_ignores_their_order(some: list[SegmentMetadata], random: Random) -> None:
    """The order of a bucket's listing does not change the plan."""
    whole = replace(origin(), kind=PlanSourceKind.MANIFESTS, positions=None)
    plan = make_plan(Question(), inputs_of_segments(some), whole, QuestionFacts())
    shuffled = random.sample(some, len(some))
    assert make_plan(Question(), inputs_of_segments(shuffled), whole, QuestionFacts()) == plan
    for planned in plan.partitions:
        assert all(
            gap.reason not in {GapReason.BEING_COPIED, GapReason.BEING_DELETED}
            for gap in planned.gaps
        )


@pytest.mark.parametrize("form", ["json", "parquet"])
@given(histories(), st.randoms(use_true_random=False))
def test_damaged_plan_is_never_another_plan(
    form: str, history: tuple[list[SegmentMetadata], list[Move]], random: Random
) -> None:
    """The reader gives the plan that was written, or names the damage."""
    plan = plan_of(shard_of(events_of(history)))
    write, read = (format_plan, parse_plan) if form == "json" else (format_parquet, parse_parquet)
    content = write(plan)
    for _ in range(5):
        found = read(mutated(random, content, (b"null", b"{}")))
        assert isinstance(found, ReadPlanUnreadable) or found == plan
