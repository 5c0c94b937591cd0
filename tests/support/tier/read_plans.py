"""Partitions for read plans, and a naive reader of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import INT64_MAX, SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.read_plan.inputs import PartitionInput, StateOrigin
from spark_tiering.read_plan.plan import PlanSourceKind
from spark_tiering.read_plan.planner import make_plan
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tokens import parse_token
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlmm.metadata.events import Event
    from spark_tiering.read_plan.plan import FrozenPartition, FrozenPlan, GapReason
    from spark_tiering.read_plan.tokens import PlanToken

STARTED, FINISHED, DELETING, DELETED = SegmentState
ORDERS = TopicIdPartition(Uuid(bytes(range(16))), "orders", 0)
CLUSTER = "cluster-of-tests"
METADATA_TOPIC = Uuid(bytes(range(1, 17)))
OFFSETS_MAX = 60
SIZE_BYTES = 1_000

Move = tuple[int, SegmentState]


def segment(
    number: int,
    first: int,
    last: int,
    *,
    epochs: Sequence[tuple[int, int]] = (),
    newest_ms: int = 0,
    of: TopicIdPartition = ORDERS,
    state: SegmentState = FINISHED,
) -> SegmentMetadata:
    """Build segment *number*, of epoch 0 by default."""
    return SegmentMetadata(
        SegmentId(of, Uuid(number.to_bytes(16))), first, last, 1, newest_ms, number,
        tuple(epochs) or ((0, first),), SIZE_BYTES + number, None, state, txn_index_empty=True,
    )  # fmt: skip


def event_of(one: SegmentMetadata, state: SegmentState) -> SegmentMetadata | SegmentUpdate:
    if state is STARTED:
        return replace(one, state=STARTED)
    return SegmentUpdate(one.id, one.broker_id, one.event_timestamp_ms, None, state)


def shard_of(events: Iterable[Event]) -> ChosenShard:
    """Return the state after *events*; refused events change nothing."""
    shard = ChosenShard(0)
    for event in events:
        shard.apply_event(event)
    return shard


def shard_with(*segments: SegmentMetadata) -> ChosenShard:
    events: list[Event] = []
    for one in segments:
        events += [event_of(one, state) for state in (STARTED, FINISHED) if state <= one.state]
        if one.state is DELETING:
            events.append(event_of(one, DELETING))
    return shard_of(events)


def origin(positions: dict[int, int] | None = None) -> StateOrigin:
    return StateOrigin(
        PlanSourceKind.METADATA, CLUSTER, METADATA_TOPIC, 50, positions or {0: 1, 1: 7}
    )


def plan_of(
    shard: ChosenShard,
    question: Question | None = None,
    facts: QuestionFacts | None = None,
    since: PlanToken | None = None,
) -> FrozenPlan:
    inputs = [PartitionInput(one, lambda: shard, 0) for one in shard.partitions()]
    return make_plan(question or Question(), inputs, origin(), facts or QuestionFacts(), since)


def naive_reader(shard: ChosenShard, planned: FrozenPartition) -> dict[int, Uuid]:
    """Return the segment that a broker would read, by offset, in the epoch of the lineage."""
    found = {}
    for offset in range(OFFSETS_MAX):
        epochs = [epoch for epoch, first in planned.epochs if first <= offset]
        answer = shard.segment_for(planned.partition, epochs[-1], offset) if epochs else None
        if answer is not None and answer.start_offset <= offset <= answer.last_offset:
            found[offset] = answer.id.uuid
    return found


def read_by(planned: FrozenPartition) -> dict[int, Uuid]:
    """Return the segment that the plan reads, by offset; an offset read twice is an error."""
    found: dict[int, Uuid] = {}
    for one in planned.segments:
        for offset in range(one.read_first, min(one.read_last, INT64_MAX - 1) + 1):
            assert offset not in found, f"{offset} is read twice"
            found[offset] = one.uuid
    return found


Row = tuple[int, int, int]


def rows(plan: FrozenPlan) -> list[Row]:
    return [(int.from_bytes(one.uuid), one.read_first, one.read_last) for one in plan.segments]


def gaps(plan: FrozenPlan) -> list[tuple[int, int | None, GapReason]]:
    return [(gap.first_offset, gap.next_offset, gap.reason) for _, gap in plan.gaps]


@st.composite
def epochs_of(draw: st.DrawFn, first: int, last: int) -> tuple[tuple[int, int], ...]:
    epoch = draw(st.integers(0, 3))
    pairs = {epoch: first if draw(st.integers(0, 9)) else draw(st.integers(0, last + 2))}
    if draw(st.booleans()):
        pairs[epoch + draw(st.integers(1, 2))] = draw(st.integers(first, last + 1))
    return tuple(pairs.items())


@st.composite
def segments(draw: st.DrawFn, count_max: int = 10) -> list[SegmentMetadata]:
    found = []
    for number in range(1, draw(st.integers(0, count_max)) + 1):
        first = draw(st.integers(0, OFFSETS_MAX - 12))
        last = first + draw(st.integers(0, 11))
        found.append(
            segment(
                number,
                first,
                last,
                epochs=draw(epochs_of(first, last)),
                newest_ms=draw(st.integers(-1, 50)),
            )
        )
    return found


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[SegmentMetadata], list[Move]]:
    some = draw(segments())
    moves: list[Move] = [(at, STARTED) for at in range(len(some))]
    for at in range(len(some)):
        reached = draw(st.sampled_from((0, 1, 1, 1, 1, 2, 3)))
        moves += [(at, state) for state in (FINISHED, DELETING, DELETED)[:reached]]
    return some, draw(st.permutations(moves)) if draw(st.booleans()) else moves


def events_of(history: tuple[list[SegmentMetadata], list[Move]]) -> list[Event]:
    some, moves = history
    return [event_of(some[at], state) for at, state in moves]


QUESTION = Question(
    assigned=(("orders", (0, 1)),),
    bounds=RecordBounds(to_time_ms=90),
    bounds_of={("orders", 1): RecordBounds(7, 9)},
    prefix="tier/",
    location="s3://bucket/",
)
FACTS = QuestionFacts({"orders": 1_000}, {ORDERS: 2}, {ORDERS: ((0, 0), (3, 25))})


def _example() -> FrozenPlan:
    before = plan_of(shard_with(segment(1, 0, 9)))
    shard = shard_with(
        segment(1, 0, 9, newest_ms=10),
        segment(2, 20, 29, newest_ms=20, epochs=((0, 20), (3, 25))),
        segment(3, 30, 39, state=STARTED),
        segment(4, 40, 49, newest_ms=30, epochs=((3, 40),)),
        segment(5, 45, 46, state=DELETING),
    )
    return plan_of(shard, QUESTION, FACTS, parse_token(before.token))


EXAMPLE = _example()
"""A plan with something of everything, the one in `tests/data/documents`."""
