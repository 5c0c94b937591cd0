"""Invariant I1: a whole replay equals any restore plus the rest, as equal state images."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given

from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import apply, batch_of, new_shard, record_set
from tests.support.records.histories import HISTORIES, DenseHistory, odd_form

if TYPE_CHECKING:
    from rlmm.metadata.events import Event


def log_of(events: list[Event], cuts: list[int], rng: random.Random) -> list[bytes]:
    batches: list[bytes] = []
    at = first = 0
    for stop in (*sorted(set(cuts)), len(events)):
        values: list[Event | bytes | None] = [
            odd_form(event) if rng.random() < 0.1 else event for event in events[first:stop]
        ]
        if rng.random() < 0.3:
            values.insert(rng.randint(0, len(values)), rng.choice((None, b"junk")))
        if values:
            batches.append(batch_of(values, at))
            at += len(values)
        if rng.random() < 0.2:
            batches.append(build_batch([], at, last_offset=at + 1))
            at += 2
        at += rng.choice((0, 0, 3))
        first = stop
    return batches


def images_of(batches: list[bytes]) -> dict[int, bytes]:
    shard = new_shard()
    images = {0: shard.image()}
    given = record_set(*batches)
    complete = not batches
    while not complete:
        complete = apply(shard, given, 1).complete
        images[shard.position] = shard.image()
    return images


def first_offset(batch: bytes) -> int:
    (found,) = walk(batch)
    assert isinstance(found, Batch)
    return found.base_offset


def check_restores(batches: list[bytes], positions: list[int], images: dict[int, bytes]) -> None:
    end = max(images)
    for position in positions:
        restored = ChosenShard.from_image(images[position])
        assert restored.position == position
        assert restored.image() == images[position]
        assert restored.validate() == []
        for back in range(len(batches) + 1):
            if back < len(batches) and first_offset(batches[back]) > position:
                break
            again = ChosenShard.from_image(images[position])
            report = apply(again, record_set(*batches[back:]))
            assert report.tally.offsets == again.position - position
            if back < len(batches):
                assert again.position == end
                assert again.image() == images[end]
                assert again.validate() == []


@given(
    HISTORIES,
    st.lists(st.integers(0, 40), max_size=6),
    st.lists(st.integers(0, 60), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
def test_i1_f4_restore_anywhere_and_the_rest_then_equals_the_whole_replay(
    events: list[Event], cuts: list[int], positions: list[int], seed: int
) -> None:
    """A restore at any position plus the rest equals the whole replay, with any redelivery."""
    batches = log_of(events, [cut for cut in cuts if cut <= len(events)], random.Random(seed))
    images = images_of(batches)
    known = sorted(images)
    check_restores(batches, [known[number % len(known)] for number in positions], images)


@pytest.mark.parametrize("seed", range(6))
def test_i1_restore_everywhere_in_a_dense_history_then_equals_the_whole_replay(seed: int) -> None:
    """A restore at every position of a dense history plus the rest equals the whole replay."""
    rng = random.Random(seed)
    history = DenseHistory(rng)
    events = [history.event() for _ in range(70)]
    batches = log_of(events, rng.sample(range(70), 6), rng)
    images = images_of(batches)
    whole = new_shard()
    apply(whole, record_set(*batches))
    assert whole.image() == images[max(images)]
    check_restores(batches, sorted(images), images)


@given(HISTORIES)
def test_image_then_depends_on_events_and_offsets_only(events: list[Event]) -> None:
    """The image is the same for events given as values, as records or as single record sets."""
    values, single, whole = new_shard(), new_shard(), new_shard()
    for offset, event in enumerate(events):
        values.apply_event(event)
        apply(single, record_set(batch_of([odd_form(event)], offset)))
    if events:
        apply(whole, record_set(batch_of(events)))
    assert values.image() == single.image() == whole.image()
