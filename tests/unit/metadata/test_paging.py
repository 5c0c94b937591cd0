"""Listings by page: their content and their cost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata import paging
from rlmm.metadata.page_order_cache import ORDERS_OF_PARTITION_MAX
from rlmm.metadata.paging import TAKEN_AT_A_TIME, Page, PageKey
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.pages import next_page, of_epochs
from tests.support.engine.shards import new_shard

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from tests.support.engine.chosen import ChosenShard

pytestmark = pytest.mark.slow

COUNT = 5_000
EPOCHS = pytest.mark.parametrize("epoch", [None, 0], ids=["all", "one-epoch"])


def filled(count: int = COUNT) -> ChosenShard:
    shard = new_shard()
    numbers = list(range(count))
    random.Random(7).shuffle(numbers)
    for number in numbers:
        shard.apply_event(started(number, number // 2 * 10, number // 2 * 10 + 9))
        if number % 3:
            shard.apply_event(finished(number))
    return shard


def pages(shard: ChosenShard, epoch: int | None, limit: int) -> list[Page]:
    found = [next_page(shard, epoch, limit=limit)]
    while not found[-1].is_last:
        found.append(next_page(shard, epoch, found[-1].after, limit))
    return found


def by_start_and_id(listed: list[SegmentMetadata]) -> list[SegmentMetadata]:
    return sorted(listed, key=lambda segment: (segment.start_offset, segment.id.uuid))


@EPOCHS
@pytest.mark.parametrize("limit", [1, 7, 1_000, COUNT, 2 * COUNT])
def test_pages_when_nothing_changes_then_are_the_listing(epoch: int | None, limit: int) -> None:
    """Together they hold every segment once, by start and id, all pages full but the last."""
    shard = filled(COUNT if limit > 1 else 50)
    whole = shard.segments(tp()) if epoch is None else shard.segments_of_epoch(tp(), epoch)
    found = pages(shard, epoch, limit)
    assert [segment for page in found for segment in page.segments] == by_start_and_id(whole)
    assert {len(page.segments) for page in found[:-1]} <= {limit}
    assert epoch is not None or by_start_and_id(whole) == whole


def test_pages_where_a_partition_or_an_epoch_is_empty_then_are_one_empty_page() -> None:
    """An empty partition or epoch has one empty page, which is the last."""
    shard = new_shard()
    assert shard.page(tp(), limit=5) == Page((), None, is_last=True)
    shard.apply_event(started("a"))
    assert shard.page(tp(), 3, limit=5) == Page((), None, is_last=True)
    assert [len(page.segments) for page in pages(shard, 0, 5)] == [1]


@EPOCHS
def test_pages_when_the_partition_is_deleted_meanwhile_then_end(epoch: int | None) -> None:
    """The pages end at a deletion, and segments of a new partition are shown."""
    shard = filled(10)
    first = next_page(shard, epoch, limit=4)
    for state in PartitionDeleteState:
        shard.apply_event(partition_delete(state))
    assert shard.page(tp(), epoch, after=first.after, limit=4) == Page(
        (), first.after, is_last=True
    )
    shard.apply_event(started("new", 1_000, 1_009))
    (new,) = next_page(shard, epoch, first.after).segments
    assert new.id == segment_id("new")


@pytest.mark.parametrize(
    ("times", "count", "limit", "taken"),
    [(3, 5, 1, TAKEN_AT_A_TIME), (2, 7, 3, 2)],
    ids=["given-up", "long-in-the-making"],
)
def test_orders_serve_more_readers_than_are_kept(
    monkeypatch: pytest.MonkeyPatch, times: int, count: int, limit: int, taken: int
) -> None:
    """Readers take turns; each is shown everything once and reaches its last page."""
    monkeypatch.setattr(paging, "TAKEN_AT_A_TIME", taken)
    epochs = range(times * ORDERS_OF_PARTITION_MAX)
    shard = of_epochs(new_shard(), epochs, count)
    shown: dict[int, list[SegmentMetadata]] = {epoch: [] for epoch in epochs}
    after: dict[int, PageKey | None] = dict.fromkeys(epochs)
    reading = list(epochs)
    for _ in range(1_000):
        for epoch in list(reading):
            page = shard.page(tp(), epoch, after=after[epoch], limit=limit)
            shown[epoch] += page.segments
            after[epoch] = page.after
            assert page.is_last == (len(shown[epoch]) == count)
            if page.is_last:
                reading.remove(epoch)
    assert not reading
    assert shown == {epoch: shard.segments_of_epoch(tp(), epoch) for epoch in epochs}


def taken_from(shard_listing: object, count: int) -> tuple[list[object], int]:
    found: list[object] = []
    pieces = 0
    while (piece := shard_listing.take(count)) is not None:  # type: ignore[attr-defined]
        assert len(piece) <= count
        found += piece
        pieces += 1
    return found, pieces


@EPOCHS
def test_listing_when_taken_in_pieces_then_is_the_whole_listing(epoch: int | None) -> None:
    """The pieces of any size together are the whole listing in its order."""
    shard = filled()
    whole = shard.segments(tp()) if epoch is None else shard.segments_of_epoch(tp(), epoch)
    for size in (1_000, 7):
        found, pieces = taken_from(shard.listing(tp(), epoch), size)
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
    assert first + taken_from(listing, 3)[0] == before


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
    assert set(sizes) - {0} == {100}
    assert shard.segment(segment_id(0)) is not None
