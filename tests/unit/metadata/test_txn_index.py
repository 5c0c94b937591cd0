"""The next segment with a transaction index: a walk through one epoch without a gap."""

from __future__ import annotations

import pytest

from rlmm.metadata.epoch import EpochState
from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from tests.support.builders import tp
from tests.support.engine.shards import Tier


@pytest.fixture(autouse=True, params=[0, 64], ids=["by-stretch", "by-step"])
def _steps_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlmm.metadata.epoch.STEPS_MAX", request.param)


def test_next_with_txn_index_then_is_the_segment_of_the_offset_if_it_has_one() -> None:
    """The segment of the offset itself is the answer if it may have an index."""
    tier = Tier()
    tier.copy("a", 0, 99)
    tier.copy("b", 100, 199)
    assert [tier.next_txn(0, offset) for offset in (0, 99, 100)] == ["a", "a", "b"]


def test_next_with_txn_index_then_steps_over_segments_whose_index_is_empty() -> None:
    """The walk goes from segment to segment as long as each begins where the last one ended."""
    tier = Tier()
    for number in range(5):
        tier.copy(f"s{number}", number * 10, number * 10 + 9, txn_index_empty=number != 3)
    assert [tier.next_txn(0, offset) for offset in (0, 15, 39)] == ["s3", "s3", "s3"]
    assert tier.next_txn(0, 40) is None


def test_next_with_txn_index_where_there_is_a_gap_then_stops() -> None:
    """The walk finds nothing behind a gap."""
    tier = Tier()
    tier.copy("a", 0, 99, txn_index_empty=True)
    tier.copy("c", 110, 199)
    assert tier.next_txn(0, 50) is None
    assert tier.next_txn(0, 100) is None
    assert tier.next_txn(0, 110) == "c"


@pytest.mark.parametrize("state", ["CS", "DS"])
def test_next_with_txn_index_where_a_segment_is_not_finished_then_stops(state: str) -> None:
    """Open copies and running deletions are holes."""
    tier = Tier()
    tier.copy("a", 0, 9, txn_index_empty=True)
    tier.copy("b", 10, 19, txn_index_empty=True) if state == "DS" else tier.start("b", 10, 19)
    if state == "DS":
        tier.begin_delete("b")
    tier.copy("c", 20, 29)
    assert tier.next_txn(0, 0) is None


def test_next_with_txn_index_where_a_segment_goes_on_in_a_later_epoch_then_stops() -> None:
    """The walk steps behind the segment's end, which is not of this epoch any more."""
    tier = Tier()
    tier.copy("a", 0, 99, {0: 0, 1: 50}, txn_index_empty=True)
    tier.copy("b", 100, 199, {1: 100})
    assert tier.next_txn(0, 10) is None
    assert tier.next_txn(1, 60) == "b"


def test_next_with_txn_index_where_a_finished_segment_covers_the_hole_then_goes_on() -> None:
    """The walk takes the cover-aware look-up at every stop."""
    tier = Tier()
    tier.copy("wide", 0, 200)
    tier.copy("late", 0, 100, txn_index_empty=True)
    assert tier.slots(0) == {0: "late"}
    assert tier.next_txn(0, 50) == "wide"


def test_next_with_txn_index_where_the_last_offset_is_the_largest_then_ends() -> None:
    """The walk ends at the largest offset and does not begin again below."""
    tier = Tier()
    tier.copy("a", 0, INT64_MAX, txn_index_empty=True)
    tier.copy("b", 0, 9, {1: INT64_MIN})
    tier.copy("c", 5, 7, {0: -10})
    assert tier.next_txn(0, 50) is None
    assert tier.at(0, INT64_MAX) == "a"


def test_next_with_txn_index_where_the_walk_comes_back_to_a_segment_then_ends() -> None:
    """An epoch listed beyond its segment's end would be walked for ever."""
    tier = Tier()
    tier.copy("a", 0, 100, {0: 0, 1: 200}, txn_index_empty=True)
    tier.copy("other", 500, 600)
    assert tier.at(0, 150) == "a"
    assert [tier.next_txn(0, offset) for offset in (50, 100, 101, 150)] == [None] * 4


def test_next_with_txn_index_where_the_epoch_is_listed_behind_the_segment_then_ends() -> None:
    """The next offset must rise; here it would fall behind the one asked for."""
    tier = Tier()
    tier.copy("a", 0, 100, {0: 150, 1: 300}, txn_index_empty=True)
    tier.copy("other", 500, 600)
    assert tier.next_txn(0, 160) is None


def test_next_with_txn_index_in_an_unknown_epoch_then_finds_nothing() -> None:
    """The walk finds nothing in an unknown epoch or in one of open copies only."""
    tier = Tier()
    tier.start("s")
    assert (tier.next_txn(0, 5), tier.next_txn(9, 5)) == (None, None)
    assert tier.shard.next_segment_with_txn_index(tp("nobody"), 0, 5) is None


def test_next_with_txn_index_where_none_is_left_then_is_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The walk looks at no segment when the epoch's counter of indexes is 0."""
    tier = Tier()
    for number in range(20):
        tier.copy(f"s{number}", number * 10, number * 10 + 9, txn_index_empty=number != 7)
    assert tier.next_txn(0, 0) == "s7"
    tier.begin_delete("s7")
    monkeypatch.setattr(EpochState, "lookup", None)
    assert tier.next_txn(0, 0) is None
