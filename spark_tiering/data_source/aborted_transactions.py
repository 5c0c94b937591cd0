"""
Which transactions of a range were aborted, and up to where that is known, for who reads committed
records alone. No I/O of its own.

The entry of an aborted transaction is in the index of the segment that has its marker, which may
lie long after its records: behind the range that is read, behind all that is in the tier, or in a
part that is missing. The last two decide how far a reader of committed records may go: to where the
first transaction begins that was open when the last segment that is there ended, which its producer
snapshot tells. That is the last stable offset, as far as the tier goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from spark_tiering.decoding import AbortedSearch, AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.data_source.extents import PartitionListing, ReadExtent


class StateOfSegments(Protocol):
    """What segments tell of transactions. Raises one of our errors for what cannot be read."""

    def aborted(self, extent: ReadExtent) -> Sequence[AbortedTransaction]:
        """The entries of the segment's transaction index."""
        ...

    def open_firsts(self, extent: ReadExtent) -> frozenset[int]:
        """The first offsets of transactions that were open when the segment ended."""
        ...


class TransactionDecision(NamedTuple):
    """Whose records go, and of which offsets, [first, next), nobody here knows it."""

    aborted: tuple[AbortedTransaction, ...]
    undecided: tuple[tuple[int, int], ...]


def stable_end(held: PartitionListing, state: StateOfSegments) -> int:
    """How far a reader of committed records can go in all that there is of a partition."""
    if held.stable_offset is not None:
        return min(held.stable_offset, held.next_offset)
    if not held.extents:
        return held.next_offset
    run = _runs(held.extents)[-1]
    return _decided_until(run, state)


def decide(
    held: PartitionListing, first: int, behind: int, state: StateOfSegments
) -> TransactionDecision:
    """
    What is known of [first, behind). Where something is missing from it, or right behind it, what
    is decided ends before that.
    """
    found: list[AbortedTransaction] = []
    undecided: list[tuple[int, int]] = []
    for run in _runs(held.extents):
        low, high = max(first, run[0].first_offset), min(behind, run[-1].next_offset)
        if low >= high:
            continue
        # Who knows up to where all is decided has asked: what was aborted is in the indexes.
        is_stable = held.stable_offset is not None and high <= held.stable_offset
        search, is_decided = _searched(run, low, high, state, is_stable=is_stable)
        found += search.found
        if not is_decided and not is_stable:
            until = max(_decided_until(run, state), low)
            if until < high:
                undecided.append((until, high))
    return TransactionDecision(tuple(found), tuple(undecided))


def _searched(
    run: Sequence[ReadExtent], low: int, high: int, state: StateOfSegments, *, is_stable: bool
) -> tuple[AbortedSearch, bool]:
    """The entries for [low, high), and whether all there are were found."""
    search = AbortedSearch(low, high)
    for extent in run:
        if extent.last_offset < low:
            continue
        if not extent.has_no_aborts:
            search.take(_of_extent(extent, state))
        if search.is_complete:
            return search, True
        is_covered = extent.history_last >= high - 1 and not is_stable
        if is_covered and extent.has_end and not _is_any_below(state.open_firsts(extent), high):
            return search, True
    return search, False


def _of_extent(extent: ReadExtent, state: StateOfSegments) -> Iterator[AbortedTransaction]:
    """Entries whose marker the partition has: others ended in another history."""
    for entry in state.aborted(extent):
        if extent.first_offset <= entry.last_offset <= extent.history_last:
            yield entry


def _decided_until(run: Sequence[ReadExtent], state: StateOfSegments) -> int:
    """Where the first transaction begins that was open at the end of *run*; else that end."""
    until = run[-1].next_offset
    for extent in reversed(run):
        if extent.has_end:
            return min((until, *state.open_firsts(extent)))
        # Who was open where it was cut is not written anywhere: nothing of it is sure.
        until = extent.first_offset
    return until


def _is_any_below(offsets: frozenset[int], behind: int) -> bool:
    return any(offset < behind for offset in offsets)


def _runs(extents: Sequence[ReadExtent]) -> list[list[ReadExtent]]:
    """Neighbours without anything missing between them."""
    runs: list[list[ReadExtent]] = []
    for extent in extents:
        if runs and runs[-1][-1].next_offset == extent.first_offset:
            runs[-1].append(extent)
        else:
            runs.append([extent])
    return runs


def of_piece(
    aborted: Sequence[AbortedTransaction], first: int, behind: int
) -> tuple[AbortedTransaction, ...]:
    """The transactions that have anything in [first, behind)."""
    return tuple(one for one in aborted if one.first_offset < behind and one.last_offset >= first)
