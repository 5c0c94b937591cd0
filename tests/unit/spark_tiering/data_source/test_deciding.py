"""Which transactions were aborted, and up to where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_tiering.data_source.aborted_transactions import decide, of_piece, stable_end
from spark_tiering.decoding import AbortedTransaction
from tests.support.datasource.extents import extent, held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_tiering.data_source.extents import ReadExtent


class State:
    """The state by the segments' first offsets; *asked* lists the segments that were read."""

    def __init__(
        self,
        aborted: Mapping[int, Sequence[AbortedTransaction]] | None = None,
        open_firsts: Mapping[int, set[int]] | None = None,
    ) -> None:
        self._aborted = aborted or {}
        self._open = open_firsts or {}
        self.asked: list[tuple[str, int]] = []

    def aborted(self, one: ReadExtent) -> Sequence[AbortedTransaction]:
        self.asked.append(("aborted", one.segment_first))
        return self._aborted.get(one.segment_first, ())

    def open_firsts(self, one: ReadExtent) -> frozenset[int]:
        self.asked.append(("open", one.segment_first))
        return frozenset(self._open.get(one.segment_first, set()))


def aborted(first: int, last: int, stable: int | None = None) -> AbortedTransaction:
    return AbortedTransaction(9, first, last, last + 1 if stable is None else stable)


def three(**of_each: bool) -> tuple[ReadExtent, ReadExtent, ReadExtent]:
    return (
        extent(0, 100, **of_each),  # type: ignore[arg-type]
        extent(100, 200, **of_each),  # type: ignore[arg-type]
        extent(200, 300, **of_each),  # type: ignore[arg-type]
    )


def test_decide_when_no_transaction_is_open_at_the_end_then_later_segments_are_not_read() -> None:
    """When no transaction is open at the end of the range, no later segment is read."""
    state = State()
    found = decide(held(*three()), 10, 90, state)
    assert found == ((), ())
    assert state.asked == [("open", 0)]


def test_decide_when_a_marker_lies_in_a_later_segment_then_it_is_found() -> None:
    """A transaction open at the end of the range is decided by a later segment's marker."""
    one = aborted(50, 250)
    state = State({200: [one]}, {0: {50}, 100: {50}})
    found = decide(held(*three(no_aborts=False)), 0, 100, state)
    assert found == ((one,), ())


def test_decide_when_metadata_says_that_nothing_was_aborted_then_no_index_is_read() -> None:
    """The metadata's flag for a segment without aborts saves the request for its index."""
    state = State({}, {0: {50}, 100: set()})
    assert not decide(held(*three()), 0, 100, state).undecided
    assert state.asked == [("open", 0), ("open", 100)]


def test_decide_when_a_transaction_is_open_at_the_tiers_end_then_it_ends_before_it() -> None:
    """Committed rows end before a transaction that is open at the end of the tier."""
    state = State({}, {0: {50}, 100: {50}, 200: {50, 260}})
    found = decide(held(*three()), 0, 300, state)
    assert found.undecided == ((50, 300),)
    assert stable_end(held(*three()), state) == 50


def test_decide_when_offsets_are_missing_then_it_is_unknown_from_where_one_was_open() -> None:
    """Rows from a transaction open at a gap up to the gap are undecided."""
    partition = held(extent(0, 100), extent(200, 300))
    state = State({}, {0: {50}, 200: set()})
    assert decide(partition, 0, 300, state).undecided == ((50, 100),)
    assert decide(partition, 60, 90, state).undecided == ((60, 90),)
    assert not decide(partition, 0, 40, state).undecided
    assert not decide(partition, 200, 300, state).undecided


def test_decide_when_the_search_says_that_it_is_complete_then_nothing_more_is_read() -> None:
    """An index entry written when every transaction of the range had ended stops the search."""
    one = aborted(50, 120)
    state = State({100: [one]}, {0: {50}, 100: {110}})
    found = decide(held(*three(no_aborts=False)), 0, 100, state)
    assert found.aborted == (one,)
    assert ("aborted", 200) not in state.asked


def test_decide_when_a_marker_is_in_another_history_then_it_decides_nothing() -> None:
    """A marker under another leader's history decides nothing about a transaction of this one."""
    replaced = extent(0, 60, segment=(0, 100), history_behind=60, no_aborts=False)
    partition = held(replaced, extent(60, 200, no_aborts=False))
    state = State({0: [aborted(40, 80)], 60: []}, {0: set(), 60: set()})
    found = decide(partition, 0, 200, state)
    assert found == ((), ())


def test_decide_when_a_segment_is_read_in_part_then_all_its_index_counts() -> None:
    """A plan that ends within a segment uses its whole index, also markers behind the end."""
    partly = extent(0, 60, segment=(0, 100), no_aborts=False)
    one = aborted(40, 80)
    state = State({0: [one]}, {0: set()})
    found = decide(held(partly), 0, 60, state)
    assert found == ((one,), ())


def test_stable_end_when_the_last_segment_is_cut_by_another_history_then_it_is_not_trusted() -> (
    None
):
    """The stable end lies before a segment that another history cuts."""
    last = extent(100, 150, segment=(100, 200), history_behind=150)
    state = State({}, {0: {80}})
    assert stable_end(held(extent(0, 100), last), state) == 80
    assert stable_end(held(last), state) == 100


def test_stable_end_when_somebody_knows_it_then_nothing_is_read() -> None:
    """A known stable end, as of log folders, is used without a read."""
    state = State()
    assert stable_end(held(*three(), stable=222), state) == 222
    assert stable_end(held(*three(), stable=999), state) == 300
    assert not state.asked


def test_decide_when_all_is_known_to_be_decided_then_indexes_are_read_and_no_state() -> None:
    """Transactions known to be decided need indexes and no producer state."""
    one = aborted(50, 250)
    state = State({200: [one]}, {0: {50}, 100: {50}, 200: {50}})
    found = decide(held(*three(no_aborts=False), stable=260), 0, 260, state)
    assert found == ((one,), ())
    assert not [what for what, _ in state.asked if what == "open"]


def test_piece_when_transactions_lie_outside_of_it_then_it_is_not_sent_them() -> None:
    """A task gets only the transactions that overlap its piece."""
    several = (aborted(10, 20), aborted(30, 90), aborted(95, 110))
    assert of_piece(several, 25, 95) == (several[1],)
    assert of_piece(several, 20, 96) == several
