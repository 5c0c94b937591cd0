"""The growth of costs: function calls per event and look-up do not rise with a partition's size."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Never

import pytest

from rlmm.metadata import slots
from rlmm.metadata.encoding import encode_writer
from rlmm.metadata.image import partition_image
from rlmm.metadata.image_reading import read_partition_image
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.row import row_of
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.state_check import violations
from tests.support.builders import started, tp

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

pytestmark = pytest.mark.slow

SMALL, LARGE, HUGE = 1_000, 20_000, 100_000
SPAN = 10
TIMES = 50
CS, CF, DS, DF = SegmentState
WRITER = encode_writer(1, 0)
OFFSETS = struct.Struct(">qq")
TEMPLATE = row_of(started("any", 0, SPAN - 1))


class Unwalked(dict[bytes, bytes]):
    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("all segments are walked")

    def _refuse(self, *_: object) -> Never:
        raise AssertionError("all segments are walked")

    keys = values = items = copy = _refuse


class History:
    """One epoch of one partition, filled in the fastest way."""

    def __init__(self) -> None:
        self.state = PartitionState(tp().key)
        self.state.rows = Unwalked()
        self.offset = 0

    def add(self, number: int, first: int, last: int, *, txn_index_empty: bool = False) -> None:
        head = bytes((CS, txn_index_empty)) + TEMPLATE[2:22]
        row = head + OFFSETS.pack(first, last) + TEMPLATE[38:51]
        self.state.add(number.to_bytes(16), row + first.to_bytes(8) + TEMPLATE[59:])
        self.offset += 1

    def update(self, number: int, target: SegmentState) -> None:
        self.state.update(number.to_bytes(16), target, WRITER, b"\x00", self.offset)
        self.offset += 1

    def copy(
        self,
        number: int,
        first: int | None = None,
        last: int | None = None,
        *,
        txn_index_empty: bool = False,
    ) -> None:
        first = number * SPAN if first is None else first
        last = first + SPAN - 1 if last is None else last
        self.add(number, first, last, txn_index_empty=txn_index_empty)
        self.update(number, CF)

    def delete(self, number: int) -> None:
        self.update(number, DS)
        self.update(number, DF)


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, what: str, argument: object) -> None:
        del frame, argument
        nonlocal calls
        calls += what in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def appended(size: int) -> History:
    history = History()
    for number in range(size):
        history.copy(number)
    return history


def reversed_(size: int) -> History:
    history = History()
    for number in reversed(range(size)):
        history.copy(number + 1_000)
    return history


def with_gaps(size: int) -> History:
    history = History()
    for number in range(0, 2 * size, 2):
        history.copy(number)
    return history


def started_only(size: int) -> History:
    history = History()
    for number in range(size):
        history.add(number, number * SPAN, number * SPAN + SPAN - 1)
    return history


def displaced(size: int) -> History:
    history = History()
    history.copy(10 * size, 0, 4 * size * SPAN)
    for number in range(size // 2):
        history.copy(2 * number, 2 * number * SPAN)
        history.copy(2 * number + 1, 2 * number * SPAN)
    return history


Act = Callable[[History, int, int], object]


def look_up(history: History, size: int, number: int) -> object:
    return history.state.lookup(0, 2 * size * SPAN // TIMES * number)


def look_up_beside(history: History, size: int, number: int) -> object:
    return history.state.lookup(0, 2 * size * SPAN // TIMES * number + SPAN)


ASKED: dict[str, Act] = {
    "look-up": look_up,
    "look-up-beside": look_up_beside,
    "next-txn": lambda history, _, n: history.state.next_with_txn_index(0, n),
    "size": lambda history, *_: history.state.size_of_epoch(0),
    "highest": lambda history, *_: history.state.highest(0),
}
DONE: dict[Callable[[int], History], dict[str, Act]] = {
    appended: {
        "append": lambda history, size, n: history.copy(size + n),
        "finish-again": lambda history, size, n: history.update(size - 1 - n, CF),
        "refused": lambda history, _, n: history.update(n, DF),
        "delete-oldest": lambda history, _, n: history.delete(n),
        "delete-newest": lambda history, size, n: history.delete(size - 1 - n),
        "delete-anywhere": lambda history, size, n: history.delete(size // TIMES * n + size // 99),
    },
    reversed_: {
        "front": lambda history, _, n: history.copy(999 - n),
        "delete-oldest": lambda history, _, n: history.delete(999 - n),
    },
    with_gaps: {
        "middle": lambda history, size, n: history.copy(size + 2 * n + 1),
        "within": lambda history, size, n: history.copy(11 * size + n, 4 * n * SPAN + 2),
    },
    started_only: {
        "add-again": lambda history, _, n: history.add(n, 5, 6),
        "finish-of-many-open": lambda history, _, n: history.update(n, CF),
        "delete-open": lambda history, _, n: history.delete(n + 100),
    },
    displaced: {
        "take-over": lambda history, size, n: history.copy(11 * size + n, 2 * n * SPAN),
        "delete-hidden": lambda history, _, n: history.delete(2 * n),
        "append": lambda history, size, n: history.copy(12 * size + n, (5 * size + n) * SPAN),
    },
}


def most_calls(history: History, size: int, act: Act) -> int:
    entry = history.state.epochs[0]
    entry.lookup(SPAN, history.state.rows)  # so that what is made at a first look-up is there
    if entry.slots.top is not None:
        entry.find_skips(history.state.rows)
    return max(calls_of(partial(act, history, size, number)) for number in range(TIMES))


@pytest.mark.parametrize("build", DONE, ids=lambda build: build.__name__)
def test_f89_cost_of_one_action_then_does_not_grow_with_the_partition(
    build: Callable[[int], History],
) -> None:
    """An event and a look-up take the same number of steps with many more segments."""
    size = HUGE if build in (appended, reversed_) else LARGE
    small, large = build(SMALL), build(size)
    for name, act in (ASKED | DONE[build]).items():
        few, many = most_calls(small, SMALL, act), most_calls(large, size, act)
        assert 0 < many <= few + 8, f"{name}: {few} calls with {SMALL}, {many} with {size}"
    chunks = [len(offsets) for offsets, _ in large.state.epochs[0].slots.chunks()]
    assert max(chunks) <= slots.CHUNK_MAX
    assert len(chunks) <= 2 * size / slots.CHUNK_MAX + 2
    small.state.rows = dict(dict.items(small.state.rows))
    assert violations(small.state) == []


@pytest.mark.parametrize("order", [1, -1], ids=["in-order", "newest-first"])
def test_f89_next_txn_index_far_away_then_costs_no_more(order: int) -> None:
    """No question or event visits more than a chunk of the many segments without an index."""
    history = History()
    if order < 0:
        history.copy(HUGE)
    worst_event = 0
    for number in range(HUGE)[::order]:
        copy = partial(history.copy, number, txn_index_empty=True)
        if number % 5_000 < 1_100:  # a full chunk is among them
            worst_event = max(worst_event, calls_of(copy))
        else:
            copy()
    if order > 0:
        history.copy(HUGE)
    assert worst_event < 5 * slots.CHUNK_MAX
    few, ask = 60, partial(history.state.next_with_txn_index, 0)
    asked = [partial(ask, HUGE * SPAN * number // TIMES) for number in range(TIMES)]
    assert calls_of(asked[0]) < 5 * slots.CHUNK_MAX  # the first question of all
    assert [question() for question in asked] == [HUGE.to_bytes(16)] * TIMES
    assert max(map(calls_of, asked)) < few
    for number in range(TIMES):
        history.delete(number)  # the oldest
        history.copy(HUGE + 1 + number, txn_index_empty=True)
        history.update(HUGE // 2, CF)
        assert calls_of(asked[10]) < few
        assert asked[10]() == HUGE.to_bytes(16)
    history.delete(HUGE // 2)
    assert asked[10]() is None
    history.copy(HUGE // 2, txn_index_empty=True)
    assert asked[10]() == HUGE.to_bytes(16)
    assert calls_of(asked[10]) < few
    history.state.rows = dict(dict.items(history.state.rows))
    restored = read_partition_image(partition_image(history.state))
    assert calls_of(partial(restored.next_with_txn_index, 0, TIMES * SPAN)) < few
    assert restored.next_with_txn_index(0, TIMES * SPAN) == HUGE.to_bytes(16)
