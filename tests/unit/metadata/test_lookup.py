"""Look-ups of an offset in an epoch: Kafka's slots first, then any segment that covers it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rlmm.metadata.verdicts import Applied, Remark
from tests.support.engine.shards import Tier

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
def test_f73_f74_f75_lookup_after_a_displacement_then_misses_no_data(row: Row) -> None:
    """The look-up answers as Kafka does, and also finds segments that Kafka misses."""
    tier = Tier()
    play(tier, row.history)
    assert {asked: tier.at(*asked) for asked in row.answers} == row.answers
    assert tier.slots(row.epoch) == row.slots
    assert tier.listed_in(row.epoch) == row.listed
    assert tier.unreferenced(row.epoch) == set(row.listed) - set(row.slots.values())


def test_f72_larger_segment_then_answers_beyond_the_older_one() -> None:
    """5-100 displaces 10-90, and 95 is found."""
    tier = Tier()
    tier.copy("older", 10, 90)
    assert tier.copy("larger", 5, 100) == Applied(Remark.DISPLACED_ANOTHER_SEGMENT)
    assert tier.at(0, 95) == "larger"
