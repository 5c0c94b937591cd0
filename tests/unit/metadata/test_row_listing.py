"""Listings that are taken piece by piece."""

from __future__ import annotations

import random

import pytest

from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.engine.shards import new_shard

pytestmark = pytest.mark.slow

COUNT = 5_000


def taken(shard_listing: object, count: int) -> tuple[list[object], int]:
    found: list[object] = []
    pieces = 0
    while (piece := shard_listing.take(count)) is not None:  # type: ignore[attr-defined]
        assert len(piece) <= count
        found += piece
        pieces += 1
    return found, pieces


@pytest.mark.parametrize("epoch", [None, 0], ids=["all", "one epoch"])
def test_listing_when_taken_in_pieces_then_is_the_whole_listing(epoch: int | None) -> None:
    """The pieces of any size together are the whole listing in its order."""
    shard = new_shard()
    numbers = list(range(COUNT))
    random.Random(7).shuffle(numbers)
    for number in numbers:
        shard.apply_event(started(number, number // 2 * 10, number // 2 * 10 + 9))
        if number % 3:
            shard.apply_event(finished(number))
    whole = shard.segments(tp()) if epoch is None else shard.segments_of_epoch(tp(), epoch)
    for size in (1_000, 7):
        found, pieces = taken(shard.listing(tp(), epoch), size)
        assert found == whole
        assert pieces >= COUNT // size


def test_f88_listing_when_the_state_changes_between_pieces_then_stays_what_it_was() -> None:
    """Failure scenario F88: all pieces of a listing are of one moment."""
    shard = new_shard()
    for number in range(10):
        shard.apply_event(started(number, number * 10, number * 10 + 9))
    before = shard.segments(tp())
    listing = shard.listing(tp())
    first = listing.take(3)
    shard.apply_event(delete_started(5))
    shard.apply_event(started("new", 1_000, 1_009))
    assert first is not None
    assert first + taken(listing, 3)[0] == before


def test_listing_of_nothing_then_is_over_at_once() -> None:
    """A partition that is not known has no first piece."""
    assert new_shard().listing(tp()).take(10) is None
    assert new_shard().listing(tp(), 3).take(10) is None


def test_f85_piece_when_the_partition_is_large_then_makes_no_more_than_was_asked_for() -> None:
    """Failure scenario F85: the cost of one piece does not grow with the partition."""
    shard = new_shard()
    for number in range(COUNT):
        shard.apply_event(started(number, number, number))
    listing = shard.listing(tp())
    sizes = []
    while (piece := listing.take(100)) is not None:
        sizes.append(len(piece))
    assert set(sizes) == {0, 100}
    assert shard.segment(segment_id(0)) is not None
