"""Sizes: counters that agree with the listings, and never walk them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

import pytest

from rlmm.metadata.slots import Slots
from tests.support.builders import tp
from tests.support.engine.shards import Tier, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator


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
