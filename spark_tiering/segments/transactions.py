"""
Transaction indexes: the bytes, what the markers of a log say, and a file judged against it.

    version int16 (0), producer id int64, first offset int64 (may lie in an earlier segment), last
    offset int64 (that of the abort marker), last stable offset int64

A reader with read_committed drops a producer's batches between first and last offset, and goes on
to following segments as long as no entry's last stable offset reaches its end. A missing abort, or
a first or last stable offset too high, lets aborted records through; a first offset too low drops
good ones. A last stable offset too low costs a look at the next segment and nothing else.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from rlmm.records.control import ControlType
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind
from spark_tiering.segments.indexes import IndexEntries

if TYPE_CHECKING:
    from spark_tiering.segments.log_walk import LogBatch
    from spark_tiering.segments.partition_files import FileStream
    from spark_tiering.segments.producer_state import EndedTransaction

TXN_INDEX_BYTES_MAX = 32 * 1024 * 1024
"""Largest transaction index that is made: a million aborted transactions in one segment."""

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


def format_aborted(ended: EndedTransaction) -> bytes:
    return _ENTRY.pack(
        _VERSION,
        ended.producer_id,
        ended.first_offset,
        ended.last_offset,
        ended.last_stable_offset,
    )


class TxnIndexJudge:
    """
    Judges a transaction index batch by batch. Without *is_whole* transactions may be open from
    before: one that an entry names may be real.
    """

    def __init__(self, stream: FileStream, *, is_whole: bool) -> None:
        self._entries = IndexEntries(stream, _ENTRY)
        self._is_whole = is_whole

    def note(self, batch: LogBatch, ended: EndedTransaction | None) -> None:
        if batch.marker is None or batch.marker.kind is not ControlType.ABORT:
            return
        entry = self._entries.current
        if self._entries.finding is not None:
            return
        offset = batch.base_offset
        if entry is not None and entry[3] < offset:
            self._found(f"no transaction was aborted at offset {entry[3]}")
        elif entry is None or entry[3] > offset:
            if ended is not None:
                self._found(f"the transaction aborted at offset {offset} is not there")
        elif entry[0] != _VERSION:
            self._entries.found(SegmentFindingKind.DAMAGED, f"version {entry[0]}")
        elif entry[1] != batch.producer_id:
            self._found(f"producer {entry[1]}, the log has {batch.producer_id} at offset {offset}")
        else:
            self._compare(entry, ended)

    def finish(self) -> SegmentFinding | None:
        """Return the fault once every batch has passed; None for a sound index."""
        if self._entries.current is not None:
            self._found(f"no transaction was aborted at offset {self._entries.current[3]}")
        return self._entries.finding

    def _compare(self, entry: tuple[int, ...], ended: EndedTransaction | None) -> None:
        _, _, first_offset, last_offset, last_stable_offset = entry
        if ended is None:
            if self._is_whole or first_offset > last_offset:
                self._found(f"the marker at offset {last_offset} ends no transaction")
                return
        elif first_offset > ended.first_offset or (
            self._is_whole and first_offset != ended.first_offset
        ):
            self._found(f"begins at {first_offset}, the log says {ended.first_offset}")
            return
        elif self._is_whole and last_stable_offset > ended.last_stable_offset:
            told = f"last stable offset {last_stable_offset}"
            self._found(f"{told}, the log says {ended.last_stable_offset}")
            return
        self._entries.advance()

    def _found(self, detail: str) -> None:
        self._entries.found(SegmentFindingKind.WRONG, detail)
