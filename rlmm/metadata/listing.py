"""
A listing that is made piece by piece: as the state is at one moment, at a cost that others can
stand.

What is listed is captured when the listing is made: references to immutable rows. Sorting and the
making of answers come in pieces, whenever somebody takes the next one.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from rlmm.metadata.ids import trusted_segment_id
from rlmm.metadata.row import KEPT_AT, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

_Key = tuple[bytes, bytes, bytes]
"""Start offset, id, row; offsets are never negative, so their bytes sort as they do."""
_SORTED_AT_A_TIME = 2_000
"""Rows that are sorted in one piece: about a millisecond."""
_START_STOP = KEPT_AT + 8


class RowListing:
    """Segments of one user partition. Not for use from several threads at once."""

    def __init__(
        self,
        partition: TopicIdPartition,
        rows: Iterable[tuple[bytes, bytes]],
        *,
        is_ordered: bool,
    ) -> None:
        """*rows* are ids and rows; unless *is_ordered* they are sorted by start offset, then id."""
        self._partition = partition
        self._unsorted = [] if is_ordered else list(rows)
        self._sorted: list[list[_Key]] = []
        self._ordered: Iterator[tuple[bytes, bytes]] | None = iter(rows) if is_ordered else None

    def take(self, count: int) -> list[SegmentMetadata] | None:
        """
        The next segments, *count* at most; `None` when there are no more.

        Empty while the order is being found out: whoever shares a thread with others lets them in
        and asks again.
        """
        if self._unsorted:
            piece = self._unsorted[-_SORTED_AT_A_TIME:]
            del self._unsorted[-_SORTED_AT_A_TIME:]
            self._sorted.append(
                sorted((row[KEPT_AT:_START_STOP], uuid, row) for uuid, row in piece)
            )
            if self._unsorted:
                return []
        if self._ordered is None:
            self._ordered = ((uuid, row) for _, uuid, row in merge(*self._sorted))
        found = [
            segment_of(trusted_segment_id(self._partition, uuid), row)
            for uuid, row in islice(self._ordered, count)
        ]
        return found or None
