"""Listings: complete, in Kafka's order, and values that nothing changes afterwards."""

from __future__ import annotations

import pytest

from tests.support.builders import segment_id, started, tp
from tests.support.engine.shards import Tier


def test_f77_listings_then_show_every_state_but_deleted() -> None:
    """Started, finished, displaced and being deleted segments are all listed; deleted ones not."""
    tier = Tier()
    tier.start("started", 300, 399)
    tier.copy("displaced", 110, 180)
    tier.copy("finished", 100, 199)
    tier.copy("leaving", 200, 299)
    tier.begin_delete("leaving")
    tier.copy("gone", 0, 99)
    tier.delete("gone")
    expected = ["finished", "displaced", "leaving", "started"]
    assert tier.listed() == expected
    assert tier.listed_in(0) == expected


def test_f77_listings_where_segments_were_abandoned_then_show_them() -> None:
    """A copy that never finished is listed, also when its deletion began at once."""
    tier = Tier()
    tier.start("open")
    tier.start("dropped", 100, 199)
    tier.begin_delete("dropped")
    assert tier.listed_in(0) == ["open", "dropped"]


def test_list_of_all_then_rises_by_start_offset_and_id() -> None:
    """The list rises by start offset and then by id, whatever the order of arrival."""
    tier = Tier()
    for number, start in ((5, 70), (2, 10), (9, 10), (1, 300), (4, 10)):
        tier.shard.apply_event(started(number, start, 400))
    listed = [segment.id for segment in tier.shard.segments(tp())]
    assert listed == [segment_id(number) for number in (2, 4, 9, 5, 1)]


def test_list_of_an_epoch_where_all_have_slots_then_goes_by_slot() -> None:
    """The slot is the offset listed for the epoch, which need not follow the start offsets."""
    tier = Tier()
    tier.copy("late", 0, 100, {0: 0, 1: 90})
    tier.copy("early", 50, 95, {1: 60})
    assert tier.slots(1) == {60: "early", 90: "late"}
    assert tier.listed_in(1) == ["early", "late"]


def test_list_of_an_epoch_where_one_has_no_slot_then_goes_by_start_offset() -> None:
    """A single segment without a slot orders the listing by start offsets, as in Kafka."""
    tier = Tier()
    tier.copy("late", 0, 100, {0: 0, 1: 90})
    tier.copy("early", 50, 95, {1: 60})
    tier.start("open", 70, 80, {1: 70})
    assert tier.listed_in(1) == ["late", "early", "open"]


def test_list_of_an_epoch_where_starts_are_equal_then_names_the_slot_holders_first() -> None:
    """Segments of equal start stand by slot first, and those without a slot by id behind them."""
    tier = Tier()
    tier.copy("b", 0, 100, {0: 0, 1: 50})
    tier.copy("d", 0, 90, {1: 10})
    tier.copy("a", 0, 80, {1: 40})
    tier.begin_delete("a")
    tier.start("c", 0, 9, {1: 0})
    assert tier.slots(1) == {10: "d", 50: "b"}
    without_slot = sorted("ac", key=lambda label: segment_id(label).uuid)
    assert tier.listed_in(1) == ["d", "b", *without_slot]


def test_list_of_an_epoch_then_shows_a_segment_in_each_epoch_that_it_names() -> None:
    """A segment of several epochs belongs to all of them, also where it covers nothing."""
    tier = Tier()
    tier.copy("s", 0, 100, {0: 0, 1: 50, 2: 50})
    assert [tier.listed_in(epoch) for epoch in range(4)] == [["s"], ["s"], ["s"], []]


def test_list_of_an_unknown_epoch_or_partition_then_is_empty() -> None:
    """An unknown epoch or partition has an empty listing, as has a known one without segments."""
    tier = Tier()
    tier.copy("s")
    tier.delete("s")
    assert tier.listed() == []
    assert tier.listed_in(0) == []
    assert tier.listed_in(5) == []
    assert tier.shard.segments(tp("nobody")) == []


def test_f74_displaced_segments_then_stay_listed_until_they_are_deleted() -> None:
    """Displaced segments stay in the listing, so retention finds and deletes them."""
    tier = Tier()
    tier.copy("a", 0, 100)
    tier.copy("b", 101, 200)
    tier.copy("c", 0, 150)
    assert tier.listed_in(0) == ["c", "a", "b"]
    tier.delete("a")
    assert tier.listed_in(0) == ["c", "b"]
    assert tier.unreferenced(0) == set()


@pytest.mark.parametrize("states", [1, 2, 3], ids=["add-again", "finished", "being-deleted"])
def test_stray_then_is_listed_in_its_old_epoch_and_leaves_with_its_deletion(states: int) -> None:
    """An epoch that only an earlier first record named lists the id for as long as it exists."""
    tier = Tier()
    tier.start("s", 0, 99, {0: 0, 2: 50})
    tier.start("s", 0, 99, {1: 0, 2: 60})
    if states > 1:
        tier.finish("s")
    if states > 2:
        tier.begin_delete("s")
    assert [tier.listed_in(epoch) for epoch in range(3)] == [["s"], ["s"], ["s"]]
    tier.delete("s")
    assert [tier.listed_in(epoch) for epoch in range(3)] == [[], [], []]


def test_stray_when_the_epoch_is_named_again_then_is_none_any_more() -> None:
    """A third first record that names the epoch makes a stray segment a full member again."""
    tier = Tier()
    for epochs in ({0: 0}, {1: 0}, {0: 0}):
        tier.start("s", 0, 99, epochs)
    tier.finish("s")
    assert (tier.at(0, 5), tier.at(1, 5)) == ("s", None)
    assert (tier.listed_in(0), tier.listed_in(1)) == (["s"], ["s"])
    tier.delete("s")
    assert (tier.listed_in(0), tier.listed_in(1)) == ([], [])


def test_stray_of_a_deleted_segment_then_is_not_inherited_by_its_next_life() -> None:
    """A deleted id that returns has only the epochs of its new first record."""
    tier = Tier()
    tier.start("s", 0, 99, {0: 0})
    tier.start("s", 0, 99, {1: 0})
    tier.delete("s")
    tier.start("s", 0, 99, {2: 0})
    assert [tier.listed_in(epoch) for epoch in range(3)] == [[], [], ["s"]]


def test_answers_of_listings_then_stay_what_they_were() -> None:
    """A listing is a snapshot, not a view."""
    tier = Tier()
    tier.copy("s")
    everything, of_epoch = tier.shard.segments(tp()), tier.shard.segments_of_epoch(tp(), 0)
    tier.delete("s")
    assert len(everything) == len(of_epoch) == 1
