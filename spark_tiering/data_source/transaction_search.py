"""
The search for the aborted transactions of a range. No I/O of its own. They are
indexed in the segment of their marker, which may lie long after their records. Where that is
missing, a reader of committed records stops at the first transaction that was open when the last
present segment ended, as its producer snapshot tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from spark_tiering.data_source.segment_opening import open_extent, told_of, wrong_index
from spark_tiering.decoding import AbortedSearch, AbortedTransaction, DecodingFault, read_txn_index
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.producer_state import parse_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.data_source.extents import (
        ExtentObjects,
        LogFolderSegment,
        PartitionListing,
        ReadExtent,
    )
    from spark_tiering.data_source.segment_opening import SegmentStorage
    from spark_tiering.decoding import AbortedTransaction


KEPT_MAX = 10_000
"""Segments; a stream asks for the last ones again and again."""


class ReadState:
    def __init__(self, storage: SegmentStorage) -> None:
        self._storage = storage
        self._aborted: dict[ExtentObjects | LogFolderSegment, Sequence[AbortedTransaction]] = {}
        self._open: dict[ExtentObjects | LogFolderSegment, frozenset[int]] = {}

    def aborted(self, extent: ReadExtent) -> Sequence[AbortedTransaction]:
        if extent.place not in self._aborted:
            content = self._part(extent, SegmentPart.TXN_INDEX)
            found = read_txn_index(content or b"")
            if isinstance(found, DecodingFault):
                raise wrong_index(extent, "transaction index", str(found))
            _trim(self._aborted)
            self._aborted[extent.place] = found
        return self._aborted[extent.place]

    def open_firsts(self, extent: ReadExtent) -> frozenset[int]:
        if extent.place not in self._open:
            content = self._part(extent, SegmentPart.PRODUCER_SNAPSHOT)
            found = "there is none" if content is None else parse_snapshot(content)
            if isinstance(found, str):
                detail = f"{found}; which transactions were open is not known without it, and "
                detail += "read_uncommitted does not need it"
                raise wrong_index(extent, "producer snapshot", detail)
            _trim(self._open)
            self._open[extent.place] = frozenset(
                entry.txn_first_offset for entry in found.values() if entry.txn_first_offset >= 0
            )
        return self._open[extent.place]

    def _part(self, extent: ReadExtent, part: SegmentPart) -> bytes | None:
        with told_of(extent):
            return open_extent(extent, self._storage).index(part)


def _trim(kept: dict[ExtentObjects | LogFolderSegment, Any]) -> None:
    while len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]


class StateOfSegments(Protocol):
    """Reads the transactions of segments; raises our errors for an unreadable segment."""

    def aborted(self, extent: ReadExtent) -> Sequence[AbortedTransaction]: ...

    def open_firsts(self, extent: ReadExtent) -> frozenset[int]: ...


class TransactionDecision(NamedTuple):
    """Holds the aborted transactions, and the undecided ranges of offsets, [first, next)."""

    aborted: tuple[AbortedTransaction, ...]
    undecided: tuple[tuple[int, int], ...]


def stable_end(held: PartitionListing, state: StateOfSegments) -> int:
    if held.stable_offset is not None:
        return min(held.stable_offset, held.next_offset)
    if not held.extents:
        return held.next_offset
    run = _runs(held.extents)[-1]
    return _decided_until(run, state)


def decide(
    held: PartitionListing, first: int, behind: int, state: StateOfSegments
) -> TransactionDecision:
    """Decide on the transactions of [first, behind), up to a missing part in or right behind it."""
    found: list[AbortedTransaction] = []
    undecided: list[tuple[int, int]] = []
    for run in _runs(held.extents):
        low, high = max(first, run[0].first_offset), min(behind, run[-1].next_offset)
        if low >= high:
            continue
        # The caller asked the broker for the stable offset: aborted transactions below it are in
        # the indexes.
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
    """Return the entries for [low, high), and whether all there are were found."""
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
    for entry in state.aborted(extent):
        if extent.first_offset <= entry.last_offset <= extent.history_last:
            yield entry


def _decided_until(run: Sequence[ReadExtent], state: StateOfSegments) -> int:
    """Return where the oldest transaction open at the end of *run* begins; else that end."""
    until = run[-1].next_offset
    for extent in reversed(run):
        if extent.has_end:
            return min((until, *state.open_firsts(extent)))
        # A cut segment has no record of its open transactions: nothing in it counts as decided.
        until = extent.first_offset
    return until


def _is_any_below(offsets: frozenset[int], behind: int) -> bool:
    return any(offset < behind for offset in offsets)


def _runs(extents: Sequence[ReadExtent]) -> list[list[ReadExtent]]:
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
    return tuple(one for one in aborted if one.first_offset < behind and one.last_offset >= first)
