"""The search for the next transaction index against the literal walk, while events come in."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.events import Event
    from rlmm.metadata.segment import SegmentMetadata

PIECES = 30
SPAN = 5


@pytest.fixture(params=[(1, 0), (3, 0), (4, 2), (1024, 0), (2, 64)], ids=str)
def _short_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk_max, steps_max = request.param
    monkeypatch.setattr("rlmm.metadata.slots.CHUNK_MAX", chunk_max)
    monkeypatch.setattr("rlmm.metadata.epoch_state.STEPS_MAX", steps_max)


def walk(shard: PythonShard, epoch: int, offset: int) -> SegmentMetadata | None:
    while (found := shard.segment_for(tp(), epoch, offset)) is not None and found.txn_index_empty:
        if not offset <= found.last_offset < INT64_MAX:
            return None
        offset = found.last_offset + 1
    return found


def require_equal(shard: PythonShard, epoch: int, offset: int) -> None:
    found = shard.next_segment_with_txn_index(tp(), epoch, offset)
    assert found == walk(shard, epoch, offset), (epoch, offset)


def piece(rng: random.Random, number: int, label: int) -> Event:
    start, last = number * SPAN, number * SPAN + SPAN - 1
    if rng.random() < 0.1:
        start += rng.randint(0, 2 * SPAN)
        last = start + rng.randint(0, 4 * SPAN)
    epochs = {0: start}
    if rng.random() < 0.1:
        epochs = rng.choice(({0: start, 1: last}, {0: last + 3, 1: last}, {0: start - 3}))
    return started(label, start, last, epochs, txn_index_empty=rng.random() < 0.85)


def copies(rng: random.Random) -> Iterator[Event]:
    numbers = list(range(PIECES))
    order = rng.random()
    if order < 0.3:
        rng.shuffle(numbers)
    elif order < 0.5:
        numbers.reverse()
    for number in numbers:
        yield piece(rng, number, number)
        if rng.random() < 0.97:
            yield finished(number)
    for label in range(PIECES, 3 * PIECES):
        match rng.randrange(5):
            case 0 | 1:
                gone = rng.randrange(label)
                yield delete_started(gone)
                yield delete_finished(gone)
            case 2:
                yield finished(rng.randrange(label))
            case _:
                yield piece(rng, rng.randrange(PIECES + 5), label)
                yield finished(label)


@pytest.mark.usefixtures("_short_chunks")
@pytest.mark.parametrize("seed", range(12))
def test_next_with_txn_index_between_events_then_equals_the_walk(seed: int) -> None:
    """The search agrees with the walk after every event, also in logs with long stretches."""
    rng = random.Random(seed)
    shard = PythonShard(0)
    asked_share = rng.choice((0.1, 1))
    for event in copies(rng):
        shard.apply_event(event)
        if rng.random() < asked_share:
            for offset in (0, rng.randrange(PIECES * SPAN), rng.randrange(PIECES * SPAN)):
                require_equal(shard, 0, offset)
        assert shard.validate() == []
    for restored in (shard, PythonShard.from_image(shard.image())):
        for epoch in (0, 1):
            for offset in range(-5, (PIECES + 10) * SPAN):
                require_equal(restored, epoch, offset)
        assert restored.validate() == []


LABELS = st.integers(0, 9)
EVENTS = st.one_of(
    st.builds(
        lambda label, number, length, empty: started(
            label, number * 2, (number + length) * 2 - 1, txn_index_empty=empty
        ),
        LABELS,
        st.integers(0, 9),
        st.sampled_from((1, 1, 1, 2, 4)),
        st.sampled_from((True, True, True, False)),
    ),
    st.builds(finished, LABELS),
    st.builds(finished, LABELS),
    st.builds(delete_started, LABELS),
    st.builds(delete_finished, LABELS),
)


@given(
    events=st.lists(st.tuples(EVENTS, st.none() | st.integers(0, 22)), max_size=60),
    chunk_max=st.integers(1, 4),
    steps_max=st.integers(0, 2),
    ends=st.booleans(),
)
def test_next_with_txn_index_after_any_events_then_finds_what_the_walk_finds(
    events: list[tuple[Event, int | None]], chunk_max: int, steps_max: int, *, ends: bool
) -> None:
    """Events and questions in any order, the end of the user partition among them."""
    shard = PythonShard(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlmm.metadata.slots.CHUNK_MAX", chunk_max)
        patch.setattr("rlmm.metadata.epoch_state.STEPS_MAX", steps_max)
        for number, (event, asked) in enumerate(events):
            if ends and number == len(events) // 2:
                shard.apply_event(partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED))
            shard.apply_event(event)
            if asked is not None:
                require_equal(shard, 0, asked)
            assert shard.validate() == []
        for offset in range(24):
            require_equal(shard, 0, offset)
