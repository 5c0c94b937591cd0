"""Listings by page: their content and their cost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata import page_order_cache, paging
from rlmm.metadata.page_order_cache import ORDERS_MAX, ORDERS_OF_PARTITION_MAX, PageOrderCache
from rlmm.metadata.paging import TAKEN_AT_A_TIME, Page, PageKey, SortedKeys
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.row import segment_of
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engine.shards import new_shard, record_set

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata

pytestmark = pytest.mark.slow

COUNT = 5_000
EPOCHS = pytest.mark.parametrize("epoch", [None, 0], ids=["all", "one-epoch"])


def filled(count: int = COUNT) -> PythonShard:
    shard = new_shard()
    numbers = list(range(count))
    random.Random(7).shuffle(numbers)
    for number in numbers:
        shard.apply_event(started(number, number // 2 * 10, number // 2 * 10 + 9))
        if number % 3:
            shard.apply_event(finished(number))
    return shard


def of_epochs(epochs: range, count: int) -> PythonShard:
    shard = new_shard()
    for epoch in epochs:
        for number in range(count):
            shard.apply_event(started(f"{epoch}-{number}", number, 9, {epoch: number}))
    return shard


def next_page(
    shard: PythonShard, epoch: int | None = None, after: PageKey | None = None, limit: int = 100
) -> Page:
    while True:
        page = shard.page(tp(), epoch, after=after, limit=limit)
        if page.segments or page.is_last:
            return page
        assert page.after == after


def pages(shard: PythonShard, epoch: int | None, limit: int) -> list[Page]:
    found = [next_page(shard, epoch, limit=limit)]
    while not found[-1].is_last:
        found.append(next_page(shard, epoch, found[-1].after, limit))
    return found


def orders_of(shard: PythonShard) -> object:
    return shard._states[tp().key].orders


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


def test_order_when_the_last_page_was_given_then_is_kept_no_more() -> None:
    """A partition keeps no order after its last page."""
    shard = filled(10)
    assert orders_of(shard) is None
    page = next_page(shard, limit=4)
    assert orders_of(shard) is not None
    while not page.is_last:
        page = next_page(shard, after=page.after, limit=4)
    assert orders_of(shard) is None


def test_order_when_a_reader_never_comes_back_then_goes_with_the_changes() -> None:
    """An abandoned order is dropped after about as many changes as it has segments."""
    shard = filled(10)
    next_page(shard, limit=4)
    for number in range(TAKEN_AT_A_TIME + 11):
        assert orders_of(shard) is not None, number
        shard.apply_event(started(f"s{number}", 10_000, 10_009))
    assert orders_of(shard) is None


@EPOCHS
def test_page_makes_its_own_segments(epoch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page makes only its own segments once the order exists."""
    shard = filled()
    page = next_page(shard, epoch, limit=10)
    made: list[SegmentId] = []

    def noted(found: SegmentId, row: bytes) -> SegmentMetadata:
        made.append(found)
        return segment_of(found, row)

    monkeypatch.setattr(paging, "segment_of", noted)
    monkeypatch.setattr(paging, "_key", None)
    page = shard.page(tp(), epoch, after=page.after, limit=10)
    assert len(page.segments) == len(made) == 10


def test_order_then_is_made_in_pieces() -> None:
    """Each call sorts at most a thousand segments, and pages are empty until all are sorted."""
    shard = filled(3 * TAKEN_AT_A_TIME)
    sizes = []
    while not (page := shard.page(tp(), limit=10)).segments:
        sizes.append(len(page.segments))
    assert sizes == [0] * 2


def test_sorted_keys_then_are_a_sorted_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys act as a sorted set for any order of changes and any length of chunks."""
    monkeypatch.setattr(paging, "CHUNK_MAX", 4)
    rng, keys, expected = random.Random(3), SortedKeys(), set()
    for _ in range(3_000):
        key = bytes([rng.randrange(200)])
        if rng.random() < 0.5:
            keys.add(key)
            expected.add(key)
        else:
            keys.discard(key)
            expected.discard(key)
        behind = bytes([rng.randrange(200)])
        assert list(keys.behind(behind)) == sorted(one for one in expected if one > behind)


def events_held(monkeypatch: pytest.MonkeyPatch, shard: PythonShard, label: str) -> int:
    looked: list[bytes] = []

    def noted(row: bytes, uuid: bytes) -> bytes:
        looked.append(uuid)
        return key_of(row, uuid)

    key_of = paging._key
    with monkeypatch.context() as patch:
        patch.setattr(paging, "_key", noted)
        shard.apply_event(started(label, 5, 9, {0: 5}))
    return len(looked)


def test_orders_when_nobody_comes_back_then_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """First pages of very many leader epochs cost an event no more than those of some."""
    shard = of_epochs(range(50), 3)
    for epoch in range(50):
        assert not next_page(shard, epoch, limit=1).is_last
    orders = orders_of(shard)
    assert isinstance(orders, paging.Orders)
    assert len(orders._held()) == ORDERS_OF_PARTITION_MAX
    assert 0 not in orders._orders
    next_page(shard, 0, limit=1)
    assert events_held(monkeypatch, shard, "further") == 1


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
    shard = of_epochs(epochs, count)
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


def test_orders_of_one_engine_when_nobody_comes_back_then_are_few() -> None:
    """Over all user partitions and shards that count together; the latest are those kept."""
    kept = PageOrderCache()
    shards = [PythonShard(0, order_cache=kept), PythonShard(0, order_cache=kept)]
    for number in range(ORDERS_MAX):
        for shard in shards:
            for label in "ab":
                shard.apply_event(started(segment_id(label, tp(partition=number)), 0, 9))
            shard.page(tp(partition=number), limit=1)
    assert len(kept) == ORDERS_MAX
    first = shards[0]._states[tp(partition=0).key]
    last = shards[1]._states[tp(partition=ORDERS_MAX - 1).key]
    assert first.orders is not None
    assert last.orders is not None
    assert not first.orders._held()
    assert last.orders._held()


@pytest.mark.parametrize("others", ["pages", "record sets"])
def test_order_when_abandoned_then_goes(others: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order without readers goes after enough events or pages elsewhere in the engine."""
    monkeypatch.setattr(page_order_cache, "ABANDONED_TURNS", 20)
    shard = new_shard()
    for label in "ab":
        shard.apply_event(started(label, 0, 9))
        shard.apply_event(started(segment_id(label, tp(partition=1)), 0, 9))
    assert not shard.page(tp(), limit=1).is_last
    for _ in range(21):
        assert len(shard._order_cache)
        if others == "pages":
            shard.page(tp(partition=1), limit=2)
        else:
            shard.apply(record_set(b""))
    assert not len(shard._order_cache)
    orders = orders_of(shard)
    assert isinstance(orders, paging.Orders)
    assert not orders._held()


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
    assert set(sizes) == {0, 100}
    assert shard.segment(segment_id(0)) is not None
