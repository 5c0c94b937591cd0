"""Random histories from small pools of ids, epochs and offsets, so that segments often meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.ids import INT64_MAX, INT64_MIN, SegmentId, Uuid
from rlmm.metadata.segment import TRANSITIONS, PartitionDeleteState, SegmentState
from tests.support.builders import partition_delete, started, tp, update

if TYPE_CHECKING:
    import random

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition

PARTITIONS = (
    tp(),
    tp(partition=8),
    tp(topic_id=Uuid.of(0, 1)),
    tp("a-name-beyond-the-common-form-" + "x" * 120),
)
"""The first three share a name, an id or both; the records of the last are always decoded whole."""
UUIDS = tuple(Uuid.of(0, number) for number in range(1, 8))
EPOCHS = (0, 1, 2, -4)
LAST_MAX = 20
OFFSETS = (*range(-2, LAST_MAX + 3), INT64_MIN, INT64_MAX)
"""Every offset that a query may ask for with a different answer, and some beyond."""

_offsets = st.integers(0, LAST_MAX)
_epoch_offsets = st.one_of(*[_offsets] * 9, st.sampled_from((-1, INT64_MIN, INT64_MAX)))
_custom = st.sampled_from((None, None, b"", b"x", b"y" * 130))
_ids = st.builds(
    SegmentId, st.sampled_from((PARTITIONS[0],) * 4 + PARTITIONS), st.sampled_from(UUIDS)
)
_small = st.integers(0, 1)
_CS, _CF, _DS, _DF = SegmentState
_states = st.sampled_from((SegmentState.COPY_SEGMENT_STARTED,) * 12 + tuple(SegmentState))


@st.composite
def _adds(draw: st.DrawFn) -> Event:
    start, other = draw(_offsets), draw(_offsets)
    epochs = {0: start}
    if draw(st.integers(0, 2)) == 0:
        epochs = draw(st.dictionaries(st.sampled_from(EPOCHS), _epoch_offsets, min_size=1))
    last = INT64_MAX if draw(st.integers(0, 30)) == 30 else max(start, other)
    return started(
        draw(_ids),
        min(start, last),
        last,
        epochs,
        broker_id=draw(_small),
        size_bytes=draw(st.sampled_from((0, 1, 10, 2**31 - 1, -5))),
        custom_metadata=draw(_custom),
        state=draw(_states),
        txn_index_empty=draw(st.booleans()),
    )


@st.composite
def _updates(draw: st.DrawFn) -> Event:
    weights = (1, 12, 5, 4)
    states = [state for state in SegmentState for _ in range(weights[state])]
    return update(
        draw(_ids),
        draw(st.sampled_from(states)),
        broker_id=draw(_small),
        event_timestamp_ms=draw(_small),
        custom_metadata=draw(_custom),
    )


_partition_deletes = st.builds(
    partition_delete,
    st.sampled_from(PartitionDeleteState),
    st.sampled_from(PARTITIONS),
    broker_id=_small,
)

EVENTS: st.SearchStrategy[Event] = st.integers(0, 30).flatmap(
    lambda kind: _partition_deletes if kind == 30 else _adds() if kind < 11 else _updates()
)
NEXT = {None: (_CS,), _CS: (_CS, _CF, _CF, _CF, _DS), _CF: (_CF, _CF, _DS), _DS: (_DS, _DF, _DF)}
"""The next states of a segment, repeated by their frequency."""
HISTORIES = st.lists(EVENTS, max_size=40)


class DenseHistory:
    """Events without end: mostly the next legal one of few segments in few partitions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.states: dict[SegmentId, SegmentState] = {}

    def event(self) -> Event:
        rng = self.rng
        partition = PARTITIONS[0] if rng.random() < 0.85 else rng.choice(PARTITIONS)
        if rng.random() < 0.015:
            return self._partition_delete(partition)
        segment = SegmentId(partition, rng.choice(UUIDS))
        current = self.states.get(segment)
        state = rng.choice(NEXT[current]) if rng.random() < 0.9 else rng.choice(tuple(SegmentState))
        if state not in TRANSITIONS[current]:
            pass
        elif state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self.states[segment]
        else:
            self.states[segment] = state
        return (
            self._add(segment)
            if state is SegmentState.COPY_SEGMENT_STARTED
            else self._update(segment, state)
        )

    def _add(self, segment: SegmentId) -> Event:
        rng = self.rng
        start = rng.randint(0, LAST_MAX)
        epochs = {0: start}
        if rng.random() < 0.4:
            numbers = rng.sample(EPOCHS, rng.randint(1, 3))
            epochs = {epoch: rng.randint(0, LAST_MAX) for epoch in numbers}
        if rng.random() < 0.05:
            epochs[rng.choice(EPOCHS)] = rng.choice((-1, INT64_MIN, INT64_MAX))
        return started(
            segment,
            start,
            rng.randint(start, LAST_MAX),
            epochs,
            broker_id=rng.randint(0, 1),
            size_bytes=rng.choice((0, 1, 10, 2**31 - 1, -5)),
            custom_metadata=rng.choice((None, b"", b"y" * 130)),
            txn_index_empty=rng.random() < 0.6,
        )

    def _update(self, segment: SegmentId, state: SegmentState) -> Event:
        rng = self.rng
        custom = rng.choice((None, b"z", b"y" * 130))
        return update(segment, state, broker_id=rng.randint(0, 1), custom_metadata=custom)

    def _partition_delete(self, partition: TopicIdPartition) -> Event:
        state = self.rng.choices(tuple(PartitionDeleteState), (1, 1, 2))[0]
        if state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
            kept = {key: value for key, value in self.states.items() if key.partition != partition}
            self.states = kept
        return partition_delete(state, partition)


def odd_form(event: Event) -> bytes:
    """Encode *event* as no writer does and every reader must accept: with a longer varint first."""
    return b"\x81\x00" + encode_any(event)[1:]
