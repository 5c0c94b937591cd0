"""
The orders that the pure-Python shard keeps for listings by page: how many, how long, at what cost.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata import page_order_cache, paging
from rlmm.metadata.page_order_cache import ORDERS_MAX, ORDERS_OF_PARTITION_MAX, PageOrderCache
from rlmm.metadata.paging import TAKEN_AT_A_TIME, SortedKeys
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.row import segment_of
from tests.support.builders import segment_id, started, tp
from tests.support.engine.pages import next_page, of_epochs
from tests.support.engine.shards import METADATA_PARTITION, record_set

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata

pytestmark = pytest.mark.slow


def new_shard() -> PythonShard:
    return PythonShard(METADATA_PARTITION)


def filled(count: int) -> PythonShard:
    return of_epochs(new_shard(), range(1), count)


def orders_of(shard: PythonShard) -> object:
    return shard._states[tp().key].orders


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


@pytest.mark.parametrize("epoch", [None, 0], ids=["all", "one-epoch"])
def test_page_makes_its_own_segments(epoch: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page makes only its own segments once the order exists."""
    shard = filled(5_000)
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
    shard = of_epochs(new_shard(), range(50), 3)
    for epoch in range(50):
        assert not next_page(shard, epoch, limit=1).is_last
    orders = orders_of(shard)
    assert isinstance(orders, paging.Orders)
    assert len(orders._held()) == ORDERS_OF_PARTITION_MAX
    assert 0 not in orders._orders
    next_page(shard, 0, limit=1)
    assert events_held(monkeypatch, shard, "further") == 1


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
