"""
The insides of the pure-Python shard: what a question or a change touches, and what is kept.

Other engines keep the state in another form, so these tests run on this one alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

import pytest

from rlmm.metadata.epoch_state import EpochState
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.slots import Slots
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engine.shards import METADATA_PARTITION, Tier, begin_delete, copy, state_of
from tests.support.records.record_sets import FINISHED, life

if TYPE_CHECKING:
    from collections.abc import Iterator


def new_shard() -> PythonShard:
    return PythonShard(METADATA_PARTITION)


def test_next_with_txn_index_of_none_then_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk looks at no segment when the epoch's counter of indexes is 0."""
    tier = Tier(new_shard())
    tier.play(
        *(copy(f"s{n}", n * 10, n * 10 + 9, txn_index_empty=n != 7) for n in range(20)),
        {"next_txn 0": {0: "s7"}},
        begin_delete("s7"),
    )
    monkeypatch.setattr(EpochState, "lookup", None)
    assert tier.next_txn(0, 0) is None


class Untouchable(dict[bytes, bytes]):
    """Rows that raise on any access."""

    def _refuse(self, *_: object) -> Never:
        raise AssertionError("a size query touched the rows")

    def __iter__(self) -> Iterator[bytes]:
        self._refuse()

    __getitem__ = get = keys = values = items = __contains__ = __len__ = _refuse


@pytest.mark.breaks_shards
def test_f92_size_queries_then_touch_no_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and counts are read from counters: not one row and not one listing is looked at."""
    tier = Tier(new_shard())
    for number in range(50):
        tier.copy(f"s{number}", number * 10, number * 10 + 9, size_bytes=2)
    state = state_of(tier.shard)
    state.rows = Untouchable()
    monkeypatch.setattr(Slots, "__iter__", None)
    monkeypatch.setattr(Slots, "ids", None)
    state.epochs[0].unreferenced = None  # type: ignore[assignment]
    assert tier.size(0) == 100
    assert tier.shard.size(tp()) == 100
    assert tier.shard.statistics().segments_finished == 50
    assert tier.highest(0) == 499
    with pytest.raises(AssertionError, match="touched the rows"):
        tier.listed()


@pytest.mark.breaks_shards
def test_f34_oldest_open_copy_then_costs_no_walk_over_what_is_finished() -> None:
    """The search looks only at open copies, the newest epochs first."""
    shard = new_shard()
    for number in range(100):
        for event in life(number, number * 10)[:2]:
            shard.apply_event(event)
    shard.apply_event(started("open", 0, 9, {9: 0}, event_timestamp_ms=42))
    state = state_of(shard)
    state.epochs[0].unreferenced = None  # type: ignore[assignment]
    state.epochs = {0: state.epochs[0], 9: state.epochs[9]}
    state.rows = {segment_id("open").uuid: state.rows[segment_id("open").uuid]}
    assert shard.statistics().oldest_started_ms == 42


def test_oldest_open_copy_when_many_were_displaced_then_only_open_ones_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Displaced copies cost the figure of the oldest open copy nothing but one set difference."""
    shard = new_shard()
    for number in range(50):
        for label in (f"a{number}", f"b{number}"):
            shard.apply_event(started(label, number, number))
            shard.apply_event(finished(label))
    shard.apply_event(started("open", 10**6, 10**6, event_timestamp_ms=5))
    rows = shard._states[tp().key].rows
    looked_at: list[bytes] = []

    class Rows(dict[bytes, bytes]):
        def __getitem__(self, uuid: bytes) -> bytes:
            looked_at.append(uuid)
            return super().__getitem__(uuid)

    shard._states[tp().key].rows = Rows(rows)
    assert shard.statistics().oldest_started_ms == 5
    assert looked_at == [segment_id("open").uuid]


def test_state_when_it_is_dropped_then_goes_in_steps() -> None:
    """A state of many user partitions is not freed in one turn."""
    shard = new_shard()
    for number in range(2_500):
        shard.apply_event(started(segment_id("a", tp("orders", number))))
    steps = 0
    for _ in shard.clearing():
        steps += 1
        assert len(shard._states) in (2_000 - 1, 1_000 - 1)
    assert (steps, shard._states) == (2, {})


def test_partition_whose_deletion_is_finished_then_has_no_state() -> None:
    """A deleted partition costs a key and thirteen bytes, in a shard from an image, too."""
    shard = new_shard()
    for event in (started("a"), finished("a"), partition_delete(FINISHED)):
        shard.apply_event(event)
    moved = new_shard()
    moved.import_partition(shard.partition_image(tp()) or b"")
    for one in (shard, moved, PythonShard.from_image(shard.image())):
        assert (len(one._states), len(one._ended)) == (0, 1)
    shard.apply_event(started("b"))
    assert (list(shard._states), len(shard._ended)) == ([tp().key], 0)
