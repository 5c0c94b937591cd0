"""What segments tell of transactions, read from wherever they are; each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spark_tiering.data_source.segment_opening import open_extent, told_of, wrong_index
from spark_tiering.decoding import DecodingFault, read_txn_index
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.producer_state import parse_snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_tiering.data_source.extents import LogFolderSegment, ObjectKeys, ReadExtent
    from spark_tiering.data_source.segment_opening import SegmentStorage
    from spark_tiering.decoding import AbortedTransaction

KEPT_MAX = 10_000
"""Segments; a stream asks for the last ones again and again."""


class ReadState:
    """See `deciding.StateOfSegments`."""

    def __init__(self, storage: SegmentStorage) -> None:
        self._storage = storage
        self._aborted: dict[ObjectKeys | LogFolderSegment, Sequence[AbortedTransaction]] = {}
        self._open: dict[ObjectKeys | LogFolderSegment, frozenset[int]] = {}

    def aborted(self, extent: ReadExtent) -> Sequence[AbortedTransaction]:
        """The entries of a transaction index; one that cannot be read is an error."""
        if extent.place not in self._aborted:
            content = self._part(extent, SegmentPart.TXN_INDEX)
            found = read_txn_index(content or b"")
            if isinstance(found, DecodingFault):
                raise wrong_index(extent, "transaction index", str(found))
            _trim(self._aborted)
            self._aborted[extent.place] = found
        return self._aborted[extent.place]

    def open_firsts(self, extent: ReadExtent) -> frozenset[int]:
        """Of the producer snapshot, which every segment of a tier has."""
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


def _trim(kept: dict[ObjectKeys | LogFolderSegment, Any]) -> None:
    while len(kept) >= KEPT_MAX:
        del kept[next(iter(kept))]
