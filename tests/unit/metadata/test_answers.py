"""Answers of a shard after a history: look-ups, listings, highest offsets, sizes, indexes."""

from __future__ import annotations

import pytest

from rlmm.metadata.epoch import EpochState
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from rlmm.metadata.python_shard import PythonShard
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import partition_delete, segment_id, started, tp
from tests.support.engine.shards import (
    Step,
    Tier,
    begin_delete,
    copy,
    delete,
    finish,
    new_shard,
    put,
    start,
)

END = put(partition_delete(PartitionDeleteState.DELETE_PARTITION_FINISHED))
THREE_EPOCHS = {0: 0, 1: 50, 2: 50}

LOOKUPS: dict[str, list[Step]] = {
    "f71: an epoch ends where the next begins, and begins at the offset listed for it": [
        copy("s", 0, 100, {0: 0, 1: 50}),
        {"at 0": {0: "s", 49: "s", 50: None, 60: None}},
        {"at 1": {49: None, 50: "s", 100: "s", 101: None}},
    ],
    "f73: the older segment answers as soon as the deletion of the newer one begins": [
        *(copy("older"), copy("newer"), begin_delete("newer"), {"at 0": {50: "older"}}),
        *(delete("newer"), {"at 0": {50: "older"}}, begin_delete("older"), {"at 0": {50: None}}),
    ],
    "a segment answers while its copy is finished and its deletion has not begun": [
        *(start("s"), {"at 0": {50: None}}, finish("s"), {"at 0": {50: "s"}}),
        *(begin_delete("s"), {"at 0": {50: None}}, delete("s"), {"at 0": {50: None}}),
    ],
    "the order of finishes decides among segments without a slot, not that of starts": [
        *(start("d", 0, 100), start("c", 0, 400), start("b", 0, 300), start("a", 0, 500)),
        *(finish("a"), finish("b"), finish("c"), finish("d")),
        {"at 0": {50: "d", 200: "c", 350: "c", 450: "a"}},
        *(begin_delete("c"), {"at 0": {50: "d", 200: "b", 350: "a", 450: "a"}}),
        *(begin_delete("d"), {"at 0": {50: "b"}}),
    ],
    "a hidden segment that finishes again is the newest, without a new slot": [
        *(copy("wide", 0, 300), copy("narrow", 100, 200), copy("other", 0, 250)),
        *({"at 0": {220: "other"}}, finish("wide")),
        {"at 0": {220: "wide"}, "slots 0": {0: "wide"}},
    ],
    "answers follow every event, also those that a look-up before has prepared for": [
        *(copy("wide", 0, 300), copy("late", 0, 100), {"at 0": {200: "wide"}}),
        *(copy("next", 301, 400), {"at 0": {200: "wide"}}),
        *(copy("again", 0, 250), {"at 0": {200: "again", 280: "wide"}}),
        *(begin_delete("wide"), {"at 0": {280: None, 200: "again"}}),
    ],
    "a segment that keeps its slot is hidden from the moment that another cuts into it": [
        *(copy("first", 0, 300), copy("second", 0, 200), copy("third", 400, 600)),
        *({"at 0": {250: "first"}}, copy("cut", 450, 500)),
        {"at 0": {550: "third"}, "slots 0": {0: "second", 400: "third", 450: "cut"}},
    ],
    "the segment that reaches further answers at each end of nested and crossing ranges": [
        *(copy("outer", 0, 1000), copy("left", 100, 400), copy("inner", 200, 300)),
        *(copy("right", 350, 600), copy("block", 0, 50), copy("winner", 0, 10_000)),
        *(begin_delete("winner"), {"slots 0": {}}),
        {"at 0": {0: "block", 99: "outer", 1000: "outer", 601: "outer", 1001: None}},
        {"at 0": dict.fromkeys((100, 199, 301, 349), "left")},
        {"at 0": {200: "inner", 300: "inner"} | dict.fromkeys((350, 400, 401, 600), "right")},
    ],
    "an epoch that only an earlier first record named lists the segment and finds nothing": [
        *(start("s", 0, 99, {0: 0}), start("s", 0, 99, {1: 0}), finish("s")),
        {"at 0": {50: None}, "at 1": {50: "s"}, "listed_in 0": ["s"], "listed_in 1": ["s"]},
        {"highest 0": None, "highest 1": 99},
        *(copy("t", 0, 49, {0: 0}), {"at 0": {20: "t", 50: None}}),
    ],
    "odd epochs: an epoch without records inside a segment": [
        copy("s", 0, 100, THREE_EPOCHS),
        {"at 0": {49: "s"}, "at 1": {49: None, 50: None}, "at 2": {50: "s", 100: "s"}},
    ],
    "odd epochs: an offset before the segment": [
        *(copy("s", 50, 100, {0: 10}), {"at 0": {9: None, 10: "s", 50: "s", 100: "s"}}),
    ],
    "odd epochs: an offset behind the segment": [
        *(copy("s", 0, 100, {0: 150}), {"at 0": {50: None, 100: None, 150: None}}),
    ],
    "odd epochs: an end behind the segment": [
        copy("s", 0, 100, {0: 0, 1: 200}),
        {"at 0": {150: "s", 199: "s", 200: None}, "at 1": {200: None}},
    ],
    "odd epochs: offsets fall while epochs rise": [
        copy("s", 0, 100, {0: 90, 1: 50}),
        {"at 0": {90: None, 49: None}, "at 1": {50: "s", 95: "s"}},
    ],
    "odd epochs: a negative epoch": [
        *(copy("s", 0, 9, {-5: 0}), {"at -5": {5: "s"}, "at 0": {5: None}}),
    ],
    "odd epochs: the largest offset": [
        *(copy("s", 0, INT64_MAX), {"at 0": {INT64_MAX: "s", -1: None, INT64_MIN: None}}),
    ],
    "odd epochs: the least offset follows the epoch": [
        copy("s", 0, 9, {0: 0, 1: INT64_MIN}),
        {"at 0": {INT64_MAX: "s", 0: "s"}, "at 1": {INT64_MIN: "s", 9: "s"}},
    ],
    "odd epochs: a negative offset": [
        *(copy("s", 0, 9, {0: -7}), {"at 0": {-7: "s", -8: None, 9: "s"}}),
    ],
    "an unknown epoch has no segment": [copy("s"), {"at 9": {5: None}}],
}
LISTINGS: dict[str, list[Step]] = {
    "f77: started, finished, displaced and leaving segments are listed, deleted ones not": [
        *(start("started", 300, 399), copy("displaced", 110, 180), copy("finished", 100, 199)),
        *(copy("leaving", 200, 299), begin_delete("leaving")),
        *(copy("gone", 0, 99), delete("gone")),
        {"listed": ["finished", "displaced", "leaving", "started"]},
        {"listed_in 0": ["finished", "displaced", "leaving", "started"]},
    ],
    "f77: abandoned copies are listed, also when their deletion began at once": [
        *(start("open"), start("dropped", 100, 199), begin_delete("dropped")),
        {"listed_in 0": ["open", "dropped"]},
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
    "a segment of several epochs is listed in each, also where it covers nothing": [
        copy("s", 0, 100, THREE_EPOCHS),
        {"listed_in 0": ["s"], "listed_in 1": ["s"], "listed_in 2": ["s"], "listed_in 3": []},
    ],
    "an unknown epoch and a partition without segments have an empty listing": [
        *(copy("s"), delete("s"), {"listed": [], "listed_in 0": [], "listed_in 5": []}),
    ],
    "f74: displaced segments stay listed until they are deleted": [
        *(copy("a", 0, 100), copy("b", 101, 200), copy("c", 0, 150)),
        *({"listed_in 0": ["c", "a", "b"]}, delete("a")),
        {"listed_in 0": ["c", "b"], "unreferenced 0": set()},
    ],
    **{
        f"a stray is listed in its old epoch until its deletion: {state}": [
            *(start("s", 0, 99, {0: 0, 2: 50}), start("s", 0, 99, {1: 0, 2: 60}), *steps),
            {"listed_in 0": ["s"], "listed_in 1": ["s"], "listed_in 2": ["s"]},
            *(delete("s"), {"listed_in 0": [], "listed_in 1": [], "listed_in 2": []}),
        ]
        for state, steps in {
            "added again": [],
            "finished": [finish("s")],
            "being deleted": [finish("s"), begin_delete("s")],
        }.items()
    },
    "a stray whose epoch is named again is a full member again": [
        *(start("s", 0, 99, {0: 0}), start("s", 0, 99, {1: 0}), start("s", 0, 99, {0: 0})),
        *(finish("s"), {"at 0": {5: "s"}, "at 1": {5: None}}),
        *({"listed_in 0": ["s"], "listed_in 1": ["s"]}, delete("s")),
        {"listed_in 0": [], "listed_in 1": []},
    ],
    "a deleted id that returns has only the epochs of its new first record": [
        *(start("s", 0, 99, {0: 0}), start("s", 0, 99, {1: 0}), delete("s")),
        *(start("s", 0, 99, {2: 0}), {"listed_in 0": [], "listed_in 1": [], "listed_in 2": ["s"]}),
    ],
}
HIGHEST: dict[str, list[Step]] = {
    "f76: the tail that belongs to a later epoch does not count for the earlier one": [
        copy("s", 0, 100, {0: 0, 1: 20, 2: 80}),
        {"highest 0": 19, "highest 1": 79, "highest 2": 100, "highest 3": None},
    ],
    "f76: deletions do not lower it": [
        *(copy("a", 0, 99), copy("b", 100, 199), begin_delete("b"), {"highest 0": 199}),
        *(delete("a", "b"), {"highest 0": 199, "listed": []}),
    ],
    "started and aborted copies do not count": [
        *(start("s"), {"highest 0": None}, delete("s"), {"highest 0": None}),
    ],
    "a later finish below it changes nothing, whether it takes a slot or not": [
        *(copy("long", 0, 200), copy("short", 0, 100), copy("inner", 50, 60), {"highest 0": 200}),
    ],
    "a copy that finished out of order counts although those before it are open": [
        *(start("first", 0, 99), copy("second", 100, 199)),
        {"highest 0": 199, "at 0": {50: None}},
    ],
    "an epoch without records ends before the next begins, as in Kafka": [
        copy("s", 0, 100, THREE_EPOCHS),
        {"highest 0": 49, "highest 1": 49, "highest 2": 100},
    ],
    "one below the least offset is the largest, as in Java": [
        copy("s", 0, 9, {0: 0, 1: INT64_MIN, 2: -3}),
        {"highest 0": INT64_MAX, "highest 1": -4, "highest 2": 9},
    ],
    "the end of the partition's deletion alone takes it away": [
        *(copy("a", 0, 99), END, {"highest 0": None}),
    ],
}
SIZES: dict[str, list[Step]] = {
    "open copies and running deletions count like finished segments": [
        *(start("open", 0, 9, size_bytes=1), {"size 0": 1}, copy("s", 10, 19, size_bytes=20)),
        *(copy("leaving", 20, 29, size_bytes=300), begin_delete("leaving"), {"size 0": 321}),
        *(delete("leaving"), {"size 0": 21}, delete("open"), {"size 0": 20}),
    ],
    "a segment of several epochs counts whole in each": [
        copy("s", 0, 99, {0: 0, 1: 50}, size_bytes=10),
        copy("t", 100, 199, {1: 100}, size_bytes=5),
        {"size 0": 10, "size 1": 15, "size 2": 0, "size": 15},
    ],
    "displaced and overwritten segments count": [
        *(copy("a", 0, 100, size_bytes=1), copy("b", 101, 200, size_bytes=20)),
        *(copy("c", 0, 150, size_bytes=300), {"size 0": 321}),
    ],
    "every epoch that lists a segment counts the size of its newest first record": [
        start("s", 0, 99, {0: 0, 1: 50}, size_bytes=10),
        start("s", 0, 99, {1: 50, 2: 60}, size_bytes=7),
        *({"size 0": 7, "size 1": 7, "size 2": 7, "size": 7}, delete("s")),
        {"size 0": 0, "size 1": 0, "size 2": 0, "size": 0},
    ],
    **{
        f"odd sizes are summed as they are: {size}": [
            *(copy(f"s{n}", n * 100, n * 100 + 99, size_bytes=size) for n in range(3)),
            {"size 0": 3 * size, "size": 3 * size},
        ]
        for size in (0, -1, INT32_MIN, INT32_MAX)
    },
    "a deleted partition has no size": [copy("s"), END, {"size 0": 0, "size": 0}],
    "an unknown epoch has no size": [copy("s"), {"size 7": 0}],
}


def _replay(story: list[Step]) -> Tier:
    tier = Tier()
    tier.play(*story)
    return tier


@pytest.mark.parametrize("story", LOOKUPS.values(), ids=LOOKUPS)
def test_f71_f73_lookup_after_a_history_then_finds_the_finished_segment(story: list[Step]) -> None:
    """A look-up finds the finished segment that covers the offset in the epoch."""
    assert not _replay(story).shard.statistics().rejected_by_reason


@pytest.mark.parametrize("story", LISTINGS.values(), ids=LISTINGS)
def test_f74_f77_listing_after_a_history_then_is_complete_and_in_order(story: list[Step]) -> None:
    """A listing shows every segment that is not deleted, in Kafka's order."""
    _replay(story)


@pytest.mark.parametrize("story", HIGHEST.values(), ids=HIGHEST)
def test_f76_highest_offset_after_a_history_then_only_rises(story: list[Step]) -> None:
    """The highest offset is that of the finished copies in the epoch, also after a restore."""
    shard = _replay(story).shard
    restored = PythonShard.from_image(shard.image())
    for epoch in range(4):
        assert restored.highest_offset(tp(), epoch) == shard.highest_offset(tp(), epoch)


@pytest.mark.parametrize("story", SIZES.values(), ids=SIZES)
def test_size_after_a_history_then_counts_every_listed_segment(story: list[Step]) -> None:
    """The size sums the segments that are listed, and the statistics have the same sum."""
    shard = _replay(story).shard
    assert shard.statistics().size_bytes == shard.size(tp())


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


WALKS: dict[str, list[Step]] = {
    "the segment of the offset itself is the answer if it may have an index": [
        *(copy("a", 0, 99), copy("b", 100, 199)),
        {"next_txn 0": {0: "a", 99: "a", 100: "b"}},
    ],
    "the walk steps over segments without an index": [
        *(copy(f"s{n}", n * 10, n * 10 + 9, txn_index_empty=n != 3) for n in range(5)),
        {"next_txn 0": {0: "s3", 15: "s3", 39: "s3", 40: None}},
    ],
    "a gap ends the walk": [
        *(copy("a", 0, 99, txn_index_empty=True), copy("c", 110, 199)),
        {"next_txn 0": {50: None, 100: None, 110: "c"}},
    ],
    "an open copy is a gap": [
        *(copy("a", 0, 9, txn_index_empty=True), start("b", 10, 19), copy("c", 20, 29)),
        {"next_txn 0": {0: None}},
    ],
    "a running deletion is a gap": [
        *(copy("a", 0, 9, txn_index_empty=True), copy("b", 10, 19, txn_index_empty=True)),
        *(begin_delete("b"), copy("c", 20, 29), {"next_txn 0": {0: None}}),
    ],
    "the end of a segment in a later epoch ends the walk": [
        *(copy("a", 0, 99, {0: 0, 1: 50}, txn_index_empty=True), copy("b", 100, 199, {1: 100})),
        {"next_txn 0": {10: None}, "next_txn 1": {60: "b"}},
    ],
    "a finished segment that covers the hole goes on": [
        *(copy("wide", 0, 200), copy("late", 0, 100, txn_index_empty=True)),
        {"slots 0": {0: "late"}, "next_txn 0": {50: "wide"}},
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
    "an unknown epoch and one of open copies have none": [
        *(start("s"), {"next_txn 0": {5: None}, "next_txn 9": {5: None}}),
    ],
}


@pytest.mark.parametrize("steps_max", [0, 64], ids=["by-stretch", "by-step"])
@pytest.mark.parametrize("story", WALKS.values(), ids=WALKS)
def test_next_with_txn_index_after_a_history_then_is_that_of_the_walk(
    story: list[Step], steps_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next segment with an index is found by a walk through one epoch without a gap."""
    monkeypatch.setattr("rlmm.metadata.epoch.STEPS_MAX", steps_max)
    _replay(story)


def test_next_with_txn_index_where_none_is_left_then_is_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The walk looks at no segment when the epoch's counter of indexes is 0."""
    tier = _replay(
        [
            *(copy(f"s{n}", n * 10, n * 10 + 9, txn_index_empty=n != 7) for n in range(20)),
            *({"next_txn 0": {0: "s7"}}, begin_delete("s7")),
        ]
    )
    monkeypatch.setattr(EpochState, "lookup", None)
    assert tier.next_txn(0, 0) is None
