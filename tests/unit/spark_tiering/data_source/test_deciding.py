"""Which transactions were aborted, and up to where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.data_source.transaction_search import decide, of_piece, stable_end
from spark_tiering.decoding import AbortedTransaction
from tests.support.datasource.extents import extent, held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_tiering.data_source.extents import PartitionListing, ReadExtent


class State:
    """The state by segments' first offsets; *read* lists what was read: a0 or o0."""

    def __init__(
        self,
        aborted: Mapping[int, Sequence[AbortedTransaction]] | None = None,
        open_firsts: Mapping[int, set[int]] | None = None,
    ) -> None:
        self._aborted = aborted or {}
        self._open = open_firsts or {}
        self.read: list[str] = []

    def aborted(self, one: ReadExtent) -> Sequence[AbortedTransaction]:
        self.read.append(f"a{one.segment_first}")
        return self._aborted.get(one.segment_first, ())

    def open_firsts(self, one: ReadExtent) -> frozenset[int]:
        self.read.append(f"o{one.segment_first}")
        return frozenset(self._open.get(one.segment_first, set()))


def aborted(first: int, last: int, stable: int | None = None) -> AbortedTransaction:
    return AbortedTransaction(9, first, last, last + 1 if stable is None else stable)


def three(*, no_aborts: bool = True, stable: int | None = None) -> PartitionListing:
    extents = (extent(first, first + 100, no_aborts=no_aborts) for first in (0, 100, 200))
    return held(*extents, stable=stable)


WITH_ABORTS = three(no_aborts=False)
PARTLY = extent(0, 60, segment=(0, 100), no_aborts=False)
REPLACED = extent(0, 60, segment=(0, 100), history_behind=60, no_aborts=False)
LATE, EARLY, CUT = aborted(50, 250), aborted(50, 120), aborted(40, 80)

DECIDED = {
    "nothing open at the end": (three(), (10, 90), State(), (), "o0"),
    "a marker in a later segment": (
        WITH_ABORTS, (0, 100), State({200: [LATE]}, {0: {50}, 100: {50}}), (LATE,),
        "a0 o0 a100 o100 a200",
    ),
    "metadata without aborts": (three(), (0, 100), State({}, {0: {50}}), (), "o0 o100"),
    "an entry that decides all": (
        WITH_ABORTS, (0, 100), State({100: [EARLY]}, {0: {50}, 100: {110}}), (EARLY,), "a0 o0 a100",
    ),
    "a marker in another history": (
        held(REPLACED, extent(60, 200, no_aborts=False)), (0, 200), State({0: [CUT]}), (),
        "a0 a60 o60",
    ),
    "a segment read in part": (held(PARTLY), (0, 60), State({0: [CUT]}), (CUT,), "a0"),
    "all known to be decided": (
        three(no_aborts=False, stable=260), (0, 260),
        State({200: [LATE]}, {0: {50}, 100: {50}, 200: {50}}), (LATE,), "a0 a100 a200",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("partition", "asked", "state", "transactions", "read"), DECIDED.values(), ids=DECIDED
)
def test_decide_when_all_can_be_known_then_no_more_is_read_than_that_takes(
    partition: PartitionListing,
    asked: tuple[int, int],
    state: State,
    transactions: tuple[AbortedTransaction, ...],
    read: str,
) -> None:
    """Markers of the same history decide a range, from as few indexes and states as needed."""
    assert decide(partition, *asked, state) == (transactions, ())
    assert state.read == read.split()


def test_decide_when_a_transaction_is_open_at_the_tiers_end_then_it_ends_before_it() -> None:
    """Committed rows end before a transaction that is open at the end of the tier."""
    state = State({}, {0: {50}, 100: {50}, 200: {50, 260}})
    found = decide(three(), 0, 300, state)
    assert found.undecided == ((50, 300),)
    assert stable_end(three(), state) == 50


def test_decide_when_offsets_are_missing_then_it_is_unknown_from_where_one_was_open() -> None:
    """Rows from a transaction open at a gap up to the gap are undecided."""
    partition = held(extent(0, 100), extent(200, 300))
    state = State({}, {0: {50}, 200: set()})
    assert decide(partition, 0, 300, state).undecided == ((50, 100),)
    assert decide(partition, 60, 90, state).undecided == ((60, 90),)
    assert not decide(partition, 0, 40, state).undecided
    assert not decide(partition, 200, 300, state).undecided


def test_stable_end_when_another_history_cuts_the_last_segment_then_it_lies_before() -> None:
    """The stable end lies before a segment that another history cuts."""
    last = extent(100, 150, segment=(100, 200), history_behind=150)
    state = State({}, {0: {80}})
    assert stable_end(held(extent(0, 100), last), state) == 80
    assert stable_end(held(last), state) == 100


def test_stable_end_when_somebody_knows_it_then_nothing_is_read() -> None:
    """A known stable end, as of log folders, is used without a read."""
    state = State()
    assert stable_end(three(stable=222), state) == 222
    assert stable_end(three(stable=999), state) == 300
    assert not state.read


def test_piece_when_transactions_lie_outside_of_it_then_it_is_not_sent_them() -> None:
    """A task gets only the transactions that overlap its piece."""
    several = (aborted(10, 20), aborted(30, 90), aborted(95, 110))
    assert of_piece(several, 25, 95) == (several[1],)
    assert of_piece(several, 20, 96) == several
