"""Look-ups of an offset in an epoch: Kafka's slots first, then any segment that covers it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import APPLIED, Applied, Remark
from tests.support.builders import tp
from tests.support.engine.shards import Tier, new_shard

Copy = tuple[str, int, int] | tuple[str, int, int, dict[int, int]]


@dataclass(frozen=True)
class Row:
    """One row of Kafka's table: segments that finish in some order, and the answers afterwards."""

    name: str
    history: tuple[Copy | str, ...]
    """A copy, the label of a segment that finishes again, or `-label` for one that is deleted."""
    answers: dict[tuple[int, int], str | None]
    slots: dict[int, str]
    listed: list[str] = field(default_factory=list)
    epoch: int = 0


ROWS = [
    Row(
        "superset-displaces",
        (("a", 10, 100), ("b", 5, 150)),
        {(0, 4): None, (0, 5): "b", (0, 50): "b", (0, 150): "b", (0, 151): None},
        {5: "b"},
        ["b", "a"],
    ),
    Row(
        "duplicate-replaces",
        (("a", 10, 100), ("b", 10, 100)),
        {(0, 9): None, (0, 10): "b", (0, 100): "b"},
        {10: "b"},
        ["b", "a"],
    ),
    Row(
        "same-start-longer-replaces",
        (("a", 10, 100), ("b", 10, 150)),
        {(0, 11): "b", (0, 111): "b"},
        {10: "b"},
        ["b", "a"],
    ),
    Row(
        "one-displaces-all",
        (("a", 10, 100), ("b", 5, 150), ("c", 148, 155), ("d", 4, 200)),
        {(0, 4): "d", (0, 149): "d", (0, 200): "d"},
        {4: "d"},
        ["d", "b", "a", "c"],
    ),
    Row(
        "displaces-two-keeps-one",
        (("a", 0, 9), ("b", 10, 19), ("c", 20, 29), ("d", 5, 40)),
        {(0, 3): "a", (0, 7): "d", (0, 12): "d", (0, 40): "d"},
        {0: "a", 5: "d"},
        ["a", "d", "b", "c"],
    ),
    Row(
        "below-the-watermark-displaces-nothing",
        (("a", 0, 9), ("b", 10, 19), ("c", 5, 15)),
        {(0, 3): "a", (0, 7): "c", (0, 12): "b", (0, 19): "b"},
        {0: "a", 5: "c", 10: "b"},
        ["a", "c", "b"],
    ),
    Row(
        "f74-overwritten-stays-listed",
        (("a", 0, 100), ("b", 101, 200), ("c", 0, 150)),
        {(0, 50): "c", (0, 150): "b", (0, 200): "b"},
        {0: "c", 101: "b"},
        ["c", "a", "b"],
    ),
    Row(
        "f75-late-shorter-of-equal-start",
        (("a", 0, 200), ("b", 0, 100)),
        {(0, 50): "b", (0, 100): "b", (0, 101): "a", (0, 200): "a", (0, 201): None},
        {0: "b"},
        ["b", "a"],
    ),
    Row(
        "f75-late-part-in-the-middle",
        (("a", 0, 200), ("b", 50, 100)),
        {(0, 20): "a", (0, 75): "b", (0, 101): "a", (0, 150): "a", (0, 201): None},
        {0: "a", 50: "b"},
        ["a", "b"],
    ),
    Row(
        "repeated-finish-takes-the-slot-back",
        (("a", 0, 100), ("b", 0, 200), "a"),
        {(0, 50): "a", (0, 100): "a", (0, 101): "b", (0, 200): "b"},
        {0: "a"},
        ["a", "b"],
    ),
    Row(
        "f73-deletion-of-the-slot-holder",
        (("a", 0, 100), ("b", 0, 200), "-b"),
        {(0, 50): "a", (0, 100): "a", (0, 101): None, (0, 200): None},
        {},
        ["a"],
    ),
    Row(
        "watermark-of-a-deleted-segment",
        (("a", 0, 100), ("b", 101, 200), "-b", ("c", 0, 150)),
        {(0, 50): "c", (0, 120): "c", (0, 151): None},
        {0: "c"},
        ["c", "a"],
    ),
    Row(
        "newcomer-leaves-the-epoch-earlier",
        (("a", 0, 100, {0: 0}), ("b", 0, 200, {0: 0, 1: 80})),
        {(0, 50): "b", (0, 79): "b", (0, 80): "a", (0, 100): "a", (1, 79): None, (1, 90): "b"},
        {0: "b"},
        ["b", "a"],
    ),
    Row(
        "displaced-in-one-epoch-only",
        (("a", 0, 100, {0: 0, 1: 50}), ("b", 50, 150, {1: 50})),
        {(0, 20): "a", (0, 60): None, (1, 49): None, (1, 60): "b", (1, 150): "b"},
        {50: "b"},
        ["a", "b"],
        epoch=1,
    ),
]


def play(tier: Tier, history: tuple[Copy | str, ...]) -> None:
    for step in history:
        if not isinstance(step, str):
            tier.copy(*step)
        elif step.startswith("-"):
            tier.delete(step[1:])
        else:
            tier.finish(step)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lookup_after_each_history_of_the_displacement_rule_then_misses_no_data(row: Row) -> None:
    """The look-up answers as Kafka does, and also finds segments that Kafka misses."""
    tier = Tier()
    play(tier, row.history)
    assert {asked: tier.at(*asked) for asked in row.answers} == row.answers
    assert tier.slots(row.epoch) == row.slots
    assert tier.listed_in(row.epoch) == row.listed
    assert tier.unreferenced(row.epoch) == set(row.listed) - set(row.slots.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_lookup_after_a_restore_then_is_the_same(row: Row) -> None:
    """A shard restored from an image finds the segments that slots hide."""
    tier = Tier()
    play(tier, row.history)
    restored = type(new_shard()).from_image(tier.shard.image())
    for epoch, offset in row.answers:
        expected = tier.shard.segment_for(tp(), epoch, offset)
        assert restored.segment_for(tp(), epoch, offset) == expected


def test_f71_lookup_beyond_the_end_of_an_epoch_inside_a_segment_then_finds_nothing() -> None:
    """An epoch ends where the next begins, and begins at the offset listed for it."""
    tier = Tier()
    tier.copy("s", 0, 100, {0: 0, 1: 50})
    assert [tier.at(0, offset) for offset in (0, 49, 50, 60)] == ["s", "s", None, None]
    assert [tier.at(1, offset) for offset in (49, 50, 100, 101)] == [None, "s", "s", None]


def test_f72_larger_segment_then_answers_beyond_the_older_one() -> None:
    """5-100 displaces 10-90, and 95 is found."""
    tier = Tier()
    tier.copy("older", 10, 90)
    assert tier.copy("larger", 5, 100) == Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
    assert tier.at(0, 95) == "larger"


def test_f73_deleted_winner_then_the_older_segment_of_the_slot_answers() -> None:
    """The older segment answers as soon as the deletion of the newer one begins."""
    tier = Tier()
    tier.copy("older")
    tier.copy("newer")
    tier.begin_delete("newer")
    assert tier.at(0, 50) == "older"
    tier.delete("newer")
    assert tier.at(0, 50) == "older"
    tier.begin_delete("older")
    assert tier.at(0, 50) is None


@pytest.mark.parametrize(
    ("state", "answer"), [("CS", None), ("CF", "s"), ("DS", None), ("DF", None)]
)
def test_lookup_then_sees_finished_segments_only(state: str, answer: str | None) -> None:
    """A segment answers while its copy is finished and its deletion has not begun."""
    tier = Tier()
    tier.start("s")
    if state != "CS":
        tier.finish("s")
    if state in ("DS", "DF"):
        tier.begin_delete("s")
    if state == "DF":
        tier.delete("s")
    assert tier.at(0, 50) == answer


def test_lookup_where_several_cover_then_the_one_finished_last_answers() -> None:
    """Among segments without a slot the order of finishes decides, not that of starts."""
    tier = Tier()
    for label, last in (("d", 100), ("c", 400), ("b", 300), ("a", 500)):
        tier.start(label, 0, last)
    for label in ("a", "b", "c", "d"):
        tier.finish(label)
    assert [tier.at(0, offset) for offset in (50, 200, 350, 450)] == ["d", "c", "c", "a"]
    tier.begin_delete("c")
    assert [tier.at(0, offset) for offset in (50, 200, 350, 450)] == ["d", "b", "a", "a"]
    tier.begin_delete("d")
    assert tier.at(0, 50) == "b"


def test_lookup_where_a_covering_segment_finishes_again_then_it_is_the_newest() -> None:
    """The index of hidden segments follows a repeated finish that gets no new slot in the way."""
    tier = Tier()
    tier.copy("wide", 0, 300)
    tier.copy("narrow", 100, 200)
    tier.copy("other", 0, 250)
    assert tier.at(0, 220) == "other"
    tier.finish("wide")
    assert tier.at(0, 220) == "wide"
    assert tier.slots(0) == {0: "wide"}


def test_lookup_between_asked_and_changed_state_then_is_never_stale() -> None:
    """Answers follow every single event, also those that a look-up before has prepared for."""
    tier = Tier()
    tier.copy("wide", 0, 300)
    tier.copy("late", 0, 100)
    assert tier.at(0, 200) == "wide"
    tier.copy("next", 301, 400)
    assert tier.at(0, 200) == "wide"
    tier.copy("again", 0, 250)
    assert tier.at(0, 200) == "again"
    assert tier.at(0, 280) == "wide"
    tier.begin_delete("wide")
    assert tier.at(0, 280) is None
    assert tier.at(0, 200) == "again"


def test_lookup_after_a_part_came_to_lie_in_another_segment_then_still_finds_the_rest() -> None:
    """A segment that keeps its slot is hidden from the moment that another slot cuts into it."""
    tier = Tier()
    tier.copy("first", 0, 300)
    tier.copy("second", 0, 200)
    tier.copy("third", 400, 600)
    assert tier.at(0, 250) == "first"
    tier.copy("cut", 450, 500)
    assert tier.at(0, 550) == "third"
    assert tier.slots(0) == {0: "second", 400: "third", 450: "cut"}


def test_lookup_where_one_hidden_segment_ends_within_another_then_the_longer_goes_on() -> None:
    """Look-ups find the segment that reaches further at each end of nested and crossing ranges."""
    tier = Tier()
    for label, first, last in (
        ("outer", 0, 1000),
        ("left", 100, 400),
        ("inner", 200, 300),
        ("right", 350, 600),
        ("block", 0, 50),
    ):
        tier.copy(label, first, last)
    tier.copy("winner", 0, 10_000)
    tier.begin_delete("winner")
    assert tier.slots(0) == {}
    asked = (0, 99, 100, 199, 200, 300, 301, 349, 350, 400, 401, 600, 601, 1000, 1001)
    answers = [tier.at(0, offset) for offset in asked]
    left, inner, right, outer = "left", "inner", "right", "outer"
    assert answers == [
        "block", outer, left, left, inner, inner, left, left,
        right, right, right, right, outer, outer, None,
    ]  # fmt: skip


def test_lookup_in_an_epoch_that_only_an_earlier_first_record_named_then_finds_nothing() -> None:
    """A segment is listed in an epoch of its former first record and answers no look-up there."""
    tier = Tier()
    tier.start("s", 0, 99, {0: 0})
    tier.start("s", 0, 99, {1: 0})
    tier.finish("s")
    assert (tier.at(0, 50), tier.at(1, 50)) == (None, "s")
    assert (tier.listed_in(0), tier.listed_in(1)) == (["s"], ["s"])
    assert (tier.highest(0), tier.highest(1)) == (None, 99)
    tier.copy("t", 0, 49, {0: 0})
    assert (tier.at(0, 20), tier.at(0, 50)) == ("t", None)


EDGES: list[tuple[str, int, int, dict[int, int], dict[tuple[int, int], bool]]] = [
    (
        "empty-epoch-inside",
        0,
        100,
        {0: 0, 1: 50, 2: 50},
        {(0, 49): True, (1, 49): False, (1, 50): False, (2, 50): True, (2, 100): True},
    ),
    (
        "epoch-offset-before-the-segment",
        50,
        100,
        {0: 10},
        {(0, 9): False, (0, 10): True, (0, 50): True, (0, 100): True},
    ),
    (
        "epoch-offset-behind-the-segment",
        0,
        100,
        {0: 150},
        {(0, 50): False, (0, 100): False, (0, 150): False},
    ),
    (
        "epoch-ends-behind-the-segment",
        0,
        100,
        {0: 0, 1: 200},
        {(0, 150): True, (0, 199): True, (0, 200): False, (1, 200): False},
    ),
    (
        "offsets-fall-while-epochs-rise",
        0,
        100,
        {0: 90, 1: 50},
        {(0, 90): False, (0, 49): False, (1, 50): True, (1, 95): True},
    ),
    ("negative-epoch", 0, 9, {-5: 0}, {(-5, 5): True, (0, 5): False}),
    (
        "largest-offset",
        0,
        INT64_MAX,
        {0: 0},
        {(0, INT64_MAX): True, (0, -1): False, (0, INT64_MIN): False},
    ),
    (
        "least-offset-follows-the-epoch",
        0,
        9,
        {0: 0, 1: INT64_MIN},
        {(0, INT64_MAX): True, (0, 0): True, (1, INT64_MIN): True, (1, 9): True},
    ),
    ("negative-epoch-offset", 0, 9, {0: -7}, {(0, -7): True, (0, -8): False, (0, 9): True}),
]


@pytest.mark.parametrize(
    ("start", "last", "epochs", "answers"), [pytest.param(*edge[1:], id=edge[0]) for edge in EDGES]
)
def test_lookup_with_odd_epochs_then_follows_what_the_segment_lists(
    start: int, last: int, epochs: dict[int, int], answers: dict[tuple[int, int], bool]
) -> None:
    """Look-ups use the epoch offsets as listed, without a check."""
    tier = Tier()
    assert tier.copy("s", start, last, epochs) == APPLIED
    assert {asked: tier.at(*asked) == "s" for asked in answers} == answers


def test_lookup_in_an_unknown_epoch_or_partition_then_finds_nothing() -> None:
    """A look-up in an unknown epoch or partition finds nothing and raises no error."""
    tier = Tier()
    tier.copy("s")
    assert tier.at(9, 5) is None
    assert tier.shard.segment_for(tp("nobody"), 0, 5) is None
    assert tier.shard.epoch_view(tp(), 9) is None


def test_answers_of_lookups_then_stay_what_they_were() -> None:
    """An answer is a value: later events do not reach into it."""
    tier = Tier()
    tier.copy("s")
    before = tier.shard.segment_for(tp(), 0, 5)
    view = tier.shard.epoch_view(tp(), 0)
    tier.delete("s")
    assert before is not None
    assert before.state is SegmentState.COPY_SEGMENT_FINISHED
    assert view is not None
    assert list(view.slots) == [0]
