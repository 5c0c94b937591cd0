"""Answers of a shard after a history, by name; `tests/property` compares any history."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied, Remark
from tests.support.builders import segment_id, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.shards import (
    Tier,
    begin_delete,
    copy,
    delete,
    finish,
    new_shard,
    start,
)

LOOKUPS: dict[str, list[Any]] = {
    "f71: an epoch ends where the next begins, and begins at the offset listed for it": [
        copy("s", 0, 100, {0: 0, 1: 50}),
        {"at 0": {0: "s", 49: "s", 50: None, 60: None}},
        {"at 1": {49: None, 50: "s", 100: "s", 101: None}},
    ],
    "f73: the older segment answers as soon as the deletion of the newer one begins": [
        *(copy("older"), copy("newer"), begin_delete("newer"), {"at 0": {50: "older"}}),
        *(delete("newer"), {"at 0": {50: "older"}}, begin_delete("older"), {"at 0": {50: None}}),
    ],
    "the order of finishes decides among segments without a slot, not that of starts": [
        *(start("d", 0, 100), start("c", 0, 400), start("b", 0, 300), start("a", 0, 500)),
        *(finish("a"), finish("b"), finish("c"), finish("d")),
        {"at 0": {50: "d", 200: "c", 350: "c", 450: "a"}},
        *(begin_delete("c"), {"at 0": {50: "d", 200: "b", 350: "a", 450: "a"}}),
        *(begin_delete("d"), {"at 0": {50: "b"}}),
    ],
    "the segment that reaches further answers at each end of nested and crossing ranges": [
        *(copy("outer", 0, 1000), copy("left", 100, 400), copy("inner", 200, 300)),
        *(copy("right", 350, 600), copy("block", 0, 50), copy("winner", 0, 10_000)),
        *(begin_delete("winner"), {"slots 0": {}}),
        {"at 0": {0: "block", 99: "outer", 1000: "outer", 601: "outer", 1001: None}},
        {"at 0": dict.fromkeys((100, 199, 301, 349), "left")},
        {"at 0": {200: "inner", 300: "inner"} | dict.fromkeys((350, 400, 401, 600), "right")},
    ],
    "odd epochs: the largest offset": [
        *(copy("s", 0, INT64_MAX), {"at 0": {INT64_MAX: "s", -1: None, INT64_MIN: None}})
    ],
    "odd epochs: the least offset follows the epoch": [
        copy("s", 0, 9, {0: 0, 1: INT64_MIN}),
        {"at 0": {INT64_MAX: "s", 0: "s"}, "at 1": {INT64_MIN: "s", 9: "s"}},
    ],
}
DISPLACEMENTS: dict[str, list[Any]] = {
    "superset-displaces": [
        *(copy("a", 10, 100), copy("b", 5, 150)),
        {"at 0": {4: None, 5: "b", 50: "b", 150: "b", 151: None}, "slots 0": {5: "b"}},
        {"listed_in 0": ["b", "a"], "unreferenced 0": {"a"}},
    ],
    "duplicate-replaces": [
        *(copy("a", 10, 100), copy("b", 10, 100)),
        {"at 0": {9: None, 10: "b", 100: "b"}, "slots 0": {10: "b"}},
        {"listed_in 0": ["b", "a"], "unreferenced 0": {"a"}},
    ],
    "same-start-longer-replaces": [
        *(copy("a", 10, 100), copy("b", 10, 150)),
        {"at 0": {11: "b", 111: "b"}, "slots 0": {10: "b"}},
        {"listed_in 0": ["b", "a"], "unreferenced 0": {"a"}},
    ],
    "one-displaces-all": [
        *(copy("a", 10, 100), copy("b", 5, 150), copy("c", 148, 155), copy("d", 4, 200)),
        {"at 0": {4: "d", 149: "d", 200: "d"}, "slots 0": {4: "d"}},
        {"listed_in 0": ["d", "b", "a", "c"], "unreferenced 0": {"a", "b", "c"}},
    ],
    "displaces-two-keeps-one": [
        *(copy("a", 0, 9), copy("b", 10, 19), copy("c", 20, 29), copy("d", 5, 40)),
        {"at 0": {3: "a", 7: "d", 12: "d", 40: "d"}, "slots 0": {0: "a", 5: "d"}},
        {"listed_in 0": ["a", "d", "b", "c"], "unreferenced 0": {"b", "c"}},
    ],
    "below-the-watermark-displaces-nothing": [
        *(copy("a", 0, 9), copy("b", 10, 19), copy("c", 5, 15)),
        {"at 0": {3: "a", 7: "c", 12: "b", 19: "b"}, "slots 0": {0: "a", 5: "c", 10: "b"}},
        {"listed_in 0": ["a", "c", "b"], "unreferenced 0": set()},
    ],
    "f74-overwritten-stays-listed": [
        *(copy("a", 0, 100), copy("b", 101, 200), copy("c", 0, 150)),
        {"at 0": {50: "c", 150: "b", 200: "b"}, "slots 0": {0: "c", 101: "b"}},
        {"listed_in 0": ["c", "a", "b"], "unreferenced 0": {"a"}},
    ],
    "f75-late-shorter-of-equal-start": [
        *(copy("a", 0, 200), copy("b", 0, 100)),
        {"at 0": {50: "b", 100: "b", 101: "a", 200: "a", 201: None}, "slots 0": {0: "b"}},
        {"listed_in 0": ["b", "a"], "unreferenced 0": {"a"}},
    ],
    "f75-late-part-in-the-middle": [
        *(copy("a", 0, 200), copy("b", 50, 100)),
        {"at 0": {20: "a", 75: "b", 101: "a", 150: "a", 201: None}, "slots 0": {0: "a", 50: "b"}},
        {"listed_in 0": ["a", "b"], "unreferenced 0": set()},
    ],
    "repeated-finish-takes-the-slot-back": [
        *(copy("a", 0, 100), copy("b", 0, 200), finish("a")),
        {"at 0": {50: "a", 100: "a", 101: "b", 200: "b"}, "slots 0": {0: "a"}},
        {"listed_in 0": ["a", "b"], "unreferenced 0": {"b"}},
    ],
    "f73-deletion-of-the-slot-holder": [
        *(copy("a", 0, 100), copy("b", 0, 200), delete("b")),
        {"at 0": {50: "a", 100: "a", 101: None, 200: None}, "slots 0": {}},
        {"listed_in 0": ["a"], "unreferenced 0": {"a"}},
    ],
    "watermark-of-a-deleted-segment": [
        *(copy("a", 0, 100), copy("b", 101, 200), delete("b"), copy("c", 0, 150)),
        {"at 0": {50: "c", 120: "c", 151: None}, "slots 0": {0: "c"}},
        {"listed_in 0": ["c", "a"], "unreferenced 0": {"a"}},
    ],
    "newcomer-leaves-the-epoch-earlier": [
        *(copy("a", 0, 100, {0: 0}), copy("b", 0, 200, {0: 0, 1: 80})),
        {
            "at 0": {50: "b", 79: "b", 80: "a", 100: "a"},
            "at 1": {79: None, 90: "b"},
            "slots 0": {0: "b"},
        },
        {"listed_in 0": ["b", "a"], "unreferenced 0": {"a"}},
    ],
    "displaced-in-one-epoch-only": [
        *(copy("a", 0, 100, {0: 0, 1: 50}), copy("b", 50, 150, {1: 50})),
        {"at 0": {20: "a", 60: None}, "at 1": {49: None, 60: "b", 150: "b"}, "slots 1": {50: "b"}},
        {"listed_in 1": ["a", "b"], "unreferenced 1": {"a"}},
    ],
}
"""Segments that finish in some order, and the answers afterwards, as in Kafka's table."""
LISTINGS: dict[str, list[Any]] = {
    "f77: started, finished, displaced and leaving segments are listed, deleted ones not": [
        *(start("started", 300, 399), copy("displaced", 110, 180), copy("finished", 100, 199)),
        *(copy("leaving", 200, 299), begin_delete("leaving")),
        *(copy("gone", 0, 99), delete("gone")),
        {"listed": ["finished", "displaced", "leaving", "started"]},
        {"listed_in 0": ["finished", "displaced", "leaving", "started"]},
    ],
    "an epoch where all have slots goes by slot, which need not follow the starts": [
        *(copy("late", 0, 100, {0: 0, 1: 90}), copy("early", 50, 95, {1: 60})),
        {"slots 1": {60: "early", 90: "late"}, "listed_in 1": ["early", "late"]},
        # a single segment without a slot orders it by start offsets, as in Kafka
        *(start("open", 70, 80, {1: 70}), {"listed_in 1": ["late", "early", "open"]}),
    ],
    "segments of equal start stand by slot first, then those without a slot by id": [
        *(copy("b", 0, 100, {0: 0, 1: 50}), copy("d", 0, 90, {1: 10}), copy("a", 0, 80, {1: 40})),
        *(begin_delete("a"), start("c", 0, 9, {1: 0}), {"slots 1": {10: "d", 50: "b"}}),
        {"listed_in 1": ["d", "b", *sorted("ac", key=lambda label: segment_id(label).uuid)]},
    ],
    "f74: displaced segments stay listed until they are deleted": [
        *(copy("a", 0, 100), copy("b", 101, 200), copy("c", 0, 150)),
        *({"listed_in 0": ["c", "a", "b"]}, delete("a")),
        {"listed_in 0": ["c", "b"], "unreferenced 0": set()},
    ],
}
HIGHEST: dict[str, list[Any]] = {
    "f76: the tail that belongs to a later epoch does not count for the earlier one": [
        copy("s", 0, 100, {0: 0, 1: 20, 2: 80}),
        {"highest 0": 19, "highest 1": 79, "highest 2": 100, "highest 3": None},
    ],
    "f76: deletions do not lower it": [
        *(copy("a", 0, 99), copy("b", 100, 199), begin_delete("b"), {"highest 0": 199}),
        *(delete("a", "b"), {"highest 0": 199, "listed": []}),
    ],
    "one below the least offset is the largest, as in Java": [
        copy("s", 0, 9, {0: 0, 1: INT64_MIN, 2: -3}),
        {"highest 0": INT64_MAX, "highest 1": -4, "highest 2": 9},
    ],
}


def _replay(story: list[Any]) -> Tier:
    tier = Tier()
    tier.play(*story)
    return tier


@pytest.mark.parametrize("story", LOOKUPS.values(), ids=LOOKUPS)
def test_f71_f73_lookup_after_a_history_then_finds_the_finished_segment(story: list[Any]) -> None:
    """A look-up finds the finished segment that covers the offset in the epoch."""
    assert not _replay(story).shard.statistics().rejected_by_reason


@pytest.mark.parametrize("story", DISPLACEMENTS.values(), ids=DISPLACEMENTS)
def test_f73_f74_f75_lookup_after_a_displacement_then_misses_no_data(story: list[Any]) -> None:
    """The look-up answers as Kafka does, and also finds segments that Kafka misses."""
    _replay(story)


def test_f72_larger_segment_then_answers_beyond_the_older_one() -> None:
    """5-100 displaces 10-90, and 95 is found."""
    tier = _replay([copy("older", 10, 90)])
    assert tier.copy("larger", 5, 100) == Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
    assert tier.at(0, 95) == "larger"


@pytest.mark.parametrize("story", LISTINGS.values(), ids=LISTINGS)
def test_f74_f77_listing_after_a_history_then_is_complete_and_in_order(story: list[Any]) -> None:
    """A listing shows every segment that is not deleted, in Kafka's order."""
    _replay(story)


@pytest.mark.parametrize("story", HIGHEST.values(), ids=HIGHEST)
def test_f76_highest_offset_after_a_history_then_only_rises(story: list[Any]) -> None:
    """The highest offset is that of the finished copies in the epoch, also after a restore."""
    shard = _replay(story).shard
    restored = ChosenShard.from_image(shard.image())
    for epoch in range(4):
        assert restored.highest_offset(tp(), epoch) == shard.highest_offset(tp(), epoch)


def test_list_of_all_then_rises_by_start_offset_and_id() -> None:
    """The list rises by start offset and then by id, whatever the order of arrival."""
    shard = new_shard()
    for number, first in ((5, 70), (2, 10), (9, 10), (1, 300), (4, 10)):
        shard.apply_event(started(number, first, 400))
    assert [one.id for one in shard.segments(tp())] == [segment_id(n) for n in (2, 4, 9, 5, 1)]


def test_question_about_an_unknown_partition_then_has_an_empty_answer() -> None:
    """An unknown partition has no segments, no offsets and no size, and raises no error."""
    shard, unknown = _replay([copy("s")]).shard, tp("nobody")
    assert shard.segment_for(unknown, 0, 5) is None
    assert shard.next_segment_with_txn_index(unknown, 0, 5) is None
    assert shard.segments(unknown) == []
    assert (shard.epoch_view(unknown, 0), shard.epoch_view(tp(), 9)) == (None, None)
    assert (shard.size(unknown), shard.size_of_epoch(unknown, 0)) == (0, 0)


def test_answers_then_stay_what_they_were() -> None:
    """Answers are values: later events do not reach into them."""
    tier = _replay([copy("s")])
    found, view = tier.shard.segment_for(tp(), 0, 5), tier.shard.epoch_view(tp(), 0)
    everything, of_epoch = tier.shard.segments(tp()), tier.shard.segments_of_epoch(tp(), 0)
    tier.delete("s")
    assert found is not None
    assert found.state is SegmentState.COPY_SEGMENT_FINISHED
    assert view is not None
    assert list(view.slots) == [0]
    assert len(everything) == len(of_epoch) == 1


WALKS: dict[str, list[Any]] = {
    "the end of a segment in a later epoch ends the walk": [
        *(copy("a", 0, 99, {0: 0, 1: 50}, txn_index_empty=True), copy("b", 100, 199, {1: 100})),
        {"next_txn 0": {10: None}, "next_txn 1": {60: "b"}},
    ],
    "the largest offset ends the walk": [
        *(copy("a", 0, INT64_MAX, txn_index_empty=True), copy("b", 0, 9, {1: INT64_MIN})),
        *(copy("c", 5, 7, {0: -10}), {"next_txn 0": {50: None}, "at 0": {INT64_MAX: "a"}}),
    ],
    "an epoch that is listed beyond its segment's end is not walked for ever": [
        *(copy("a", 0, 100, {0: 0, 1: 200}, txn_index_empty=True), copy("other", 500, 600)),
        {"at 0": {150: "a"}, "next_txn 0": {50: None, 100: None, 101: None, 150: None}},
    ],
    "a next offset that would not rise ends the walk": [
        *(copy("a", 0, 100, {0: 150, 1: 300}, txn_index_empty=True), copy("other", 500, 600)),
        {"next_txn 0": {160: None}},
    ],
}


@pytest.mark.parametrize("steps_max", [0, 64], ids=["by-stretch", "by-step"])
@pytest.mark.parametrize("story", WALKS.values(), ids=WALKS)
def test_next_with_txn_index_after_a_history_then_is_that_of_the_walk(
    story: list[Any], steps_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next segment with an index is found by a walk through one epoch without a gap."""
    monkeypatch.setattr("rlmm.metadata.epoch_state.STEPS_MAX", steps_max)
    _replay(story)


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
