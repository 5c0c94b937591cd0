"""Questions to a shard between events: the next transaction index, and pages of a listing."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata import paging
from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_finished,
    delete_started,
    finished,
    partition_delete,
    started,
    tp,
)
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.events import Event
    from rlmm.metadata.paging import Page, PageKey
    from rlmm.metadata.segment import SegmentMetadata

PIECES = 30
SPAN = 5


@pytest.fixture(params=[(1, 0), (2, 1), (3, 0), (4, 2), (1024, 0), (2, 64)], ids=str)
def _short_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk_max, steps_max = request.param
    monkeypatch.setattr("rlmm.metadata.slots.CHUNK_MAX", chunk_max)
    monkeypatch.setattr("rlmm.metadata.epoch_state.STEPS_MAX", steps_max)


def walk(shard: ChosenShard, epoch: int, offset: int) -> SegmentMetadata | None:
    while (found := shard.segment_for(tp(), epoch, offset)) is not None and found.txn_index_empty:
        if not offset <= found.last_offset < INT64_MAX:
            return None
        offset = found.last_offset + 1
    return found


def require_equal(shard: ChosenShard, epoch: int, offset: int) -> None:
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


def copies(rng: random.Random, end_at: int | None) -> Iterator[Event]:
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
        if label == end_at:
            yield partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED)
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
    """The search agrees with the walk after every event, the end of the partition among them."""
    rng = random.Random(seed)
    shard = ChosenShard(0)
    asked_share = rng.choice((0.1, 1))
    for event in copies(rng, None if seed % 3 else 2 * PIECES):
        shard.apply_event(event)
        if rng.random() < asked_share:
            for offset in (0, rng.randrange(PIECES * SPAN), rng.randrange(PIECES * SPAN)):
                require_equal(shard, 0, offset)
        assert shard.validate() == []
    for restored in (shard, ChosenShard.from_image(shard.image())):
        for epoch in (0, 1):
            for offset in range(-5, (PIECES + 10) * SPAN):
                require_equal(restored, epoch, offset)
        assert restored.validate() == []


LABELS = st.integers(0, 11)
EPOCH_SETS = st.sampled_from([{0: 0}, {1: 0}, {0: 0, 1: 40}, {0: 0, 2: 50}])
EVENTS = st.one_of(
    st.builds(
        lambda label, start, epochs: started(label, start * 10, start * 10 + 99, epochs),
        LABELS,
        st.integers(0, 5),
        EPOCH_SETS,
    ),
    st.builds(finished, LABELS),
    st.builds(delete_started, LABELS),
    st.builds(delete_finished, LABELS),
)
RARELY = st.sampled_from([None] * 30 + [partition_delete(state) for state in PartitionDeleteState])
STEPS = st.lists(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, RARELY), max_size=6), max_size=30)


def shown_of(page: Page) -> list[tuple[int, bytes]]:
    return [(segment.start_offset, segment.id.uuid) for segment in page.segments]


def listed_in(shard: ChosenShard, epoch: int | None) -> set[tuple[int, bytes]]:
    found = shard.segments(tp()) if epoch is None else shard.segments_of_epoch(tp(), epoch)
    return {(segment.start_offset, segment.id.uuid) for segment in found}


@given(
    before=st.lists(EVENTS, max_size=60),
    steps=STEPS,
    epoch=st.sampled_from([None, 0, 1, 2]),
    limit=st.integers(1, 4),
    taken=st.integers(1, 5),
    chunk=st.integers(2, 6),
)
def test_pages_when_events_come_in_between_then_show_what_stays_once_and_in_order(
    before: list[object],
    steps: list[list[object]],
    epoch: int | None,
    limit: int,
    taken: int,
    chunk: int,
) -> None:
    """A segment that stays listed is shown once; pages show only segments that are there."""
    kept = paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX
    paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX = taken, chunk  # type: ignore[misc]
    try:
        shard = ChosenShard(0)
        for event in before:
            shard.apply_event(event)  # type: ignore[arg-type]
        always, shown = listed_in(shard, epoch), []
        after: PageKey | None = None
        pending = iter(steps)
        while True:
            page = shard.page(tp(), epoch, after=after, limit=limit)
            now = listed_in(shard, epoch)
            assert set(shown_of(page)) <= now
            assert len(page.segments) <= limit
            shown += shown_of(page)
            if page.is_last:
                break
            after = page.after
            for event in next(pending, []):
                shard.apply_event(event)  # type: ignore[arg-type]
                always &= listed_in(shard, epoch)
            shard.page(tp(), epoch, limit=3)
            assert shard.validate() == []
    finally:
        paging.TAKEN_AT_A_TIME, paging.CHUNK_MAX = kept  # type: ignore[misc]
    assert shown == sorted(set(shown))
    assert always <= set(shown)
