"""Sizes: counters that agree with the listings, and never walk them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

import pytest

from rlmm.metadata.ids import INT32_MAX, INT32_MIN
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.metadata.slots import Slots
from tests.support.builders import partition_delete, tp
from tests.support.engine.shards import Tier, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_size_of_an_epoch_then_counts_every_state_but_deleted() -> None:
    """Open copies and running deletions take room in the tier like finished segments."""
    tier = Tier()
    tier.start("open", 0, 9, size_bytes=1)
    assert tier.size(0) == 1
    tier.copy("finished", 10, 19, size_bytes=20)
    tier.copy("leaving", 20, 29, size_bytes=300)
    tier.begin_delete("leaving")
    assert tier.size(0) == 321
    tier.delete("leaving")
    assert tier.size(0) == 21
    tier.delete("open")
    assert tier.size(0) == 20


def test_size_of_an_epoch_then_counts_a_segment_of_several_epochs_whole_in_each() -> None:
    """The size counts a segment whole in each of its epochs, as Kafka does."""
    tier = Tier()
    tier.copy("s", 0, 99, {0: 0, 1: 50}, size_bytes=10)
    tier.copy("t", 100, 199, {1: 100}, size_bytes=5)
    assert [tier.size(epoch) for epoch in range(3)] == [10, 15, 0]
    assert tier.shard.size(tp()) == 15


def test_size_of_an_epoch_then_counts_displaced_and_overwritten_segments() -> None:
    """The size counts every listed segment, with or without a slot."""
    tier = Tier()
    tier.copy("a", 0, 100, size_bytes=1)
    tier.copy("b", 101, 200, size_bytes=20)
    tier.copy("c", 0, 150, size_bytes=300)
    assert tier.size(0) == 321


def test_size_after_a_repeated_first_record_then_is_that_of_the_new_one() -> None:
    """Every epoch that lists the segment, strays included, counts its present size."""
    tier = Tier()
    tier.start("s", 0, 99, {0: 0, 1: 50}, size_bytes=10)
    tier.start("s", 0, 99, {1: 50, 2: 60}, size_bytes=7)
    assert [tier.size(epoch) for epoch in range(3)] == [7, 7, 7]
    assert tier.shard.size(tp()) == 7
    tier.delete("s")
    assert [tier.size(epoch) for epoch in range(3)] == [0, 0, 0]
    assert tier.shard.size(tp()) == 0


@pytest.mark.parametrize("size", [0, -1, INT32_MIN, INT32_MAX])
def test_size_of_odd_segments_then_is_summed_as_it_is(size: int) -> None:
    """Sizes are summed unchecked and do not overflow at 32 bits."""
    tier = Tier()
    for number in range(3):
        tier.copy(f"s{number}", number * 100, number * 100 + 99, size_bytes=size)
    assert tier.size(0) == 3 * size
    assert tier.shard.statistics().size_bytes == 3 * size


def test_size_of_a_deleted_partition_then_is_nothing() -> None:
    """The end of a partition's deletion takes its bytes out of every sum."""
    tier = Tier()
    tier.copy("s")
    tier.event(partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED))
    assert (tier.size(0), tier.shard.size(tp()), tier.shard.statistics().size_bytes) == (0, 0, 0)


def test_size_of_the_unknown_then_is_nothing() -> None:
    """The size of an unknown epoch or partition is 0."""
    tier = Tier()
    tier.copy("s")
    assert (tier.size(7), tier.shard.size(tp("nobody"))) == (0, 0)
    assert tier.shard.size_of_epoch(tp("nobody"), 0) == 0


def test_statistics_then_count_segments_by_state() -> None:
    """Over all user partitions of the shard."""
    tier = Tier()
    other = Tier(tier.shard, tp("payments"))
    tier.start("a")
    tier.copy("b")
    other.copy("b")
    other.copy("c")
    other.begin_delete("c")
    statistics = tier.shard.statistics()
    counts = (
        statistics.segments_started,
        statistics.segments_finished,
        statistics.segments_being_deleted,
    )
    assert counts == (1, 2, 1)
    assert (statistics.partitions, statistics.size_bytes) == (2, 4 * 1024)


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
    tier = Tier()
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
