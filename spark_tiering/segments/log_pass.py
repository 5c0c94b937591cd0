"""
The pass over the log of a segment: every file beside it is judged, and made anew, on the way.
Indexes are made by `rlmm.partition_log` alone. Pure but for the streams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.partition_log.index import OFFSET_ENTRY_BYTES, RELATIVE_OFFSET_MAX, SegmentIndex
from rlmm.records.control import ControlType
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.leader_epochs import EpochsOfLog
from spark_tiering.segments.transactions import TXN_INDEX_BYTES_MAX, format_aborted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_tiering.segments.indexes import OffsetIndexJudge, TimeIndexJudge
    from spark_tiering.segments.leader_epochs import Epochs, EpochsJudge
    from spark_tiering.segments.log_walk import LogBatch, LogWalk
    from spark_tiering.segments.producer_state import EndedTransaction, ProducerState
    from spark_tiering.segments.segment_listing import ListedSegment
    from spark_tiering.segments.transactions import TxnIndexJudge

INDEX_BYTES_MAX = 10 * 1024 * 1024
"""Largest offset index that is made, Kafka's own default: a broker rolls when it is full."""


class OffsetOrder:
    """Holds batches to rising offsets within the segment, without holes where none may be."""

    def __init__(self, segment: ListedSegment, *, allows_holes: bool) -> None:
        self.next_offset = segment.base_offset
        self._segment = segment
        self._allows_holes = allows_holes

    def note(self, batch: LogBatch) -> tuple[SegmentFindingKind, str] | None:
        base, last = batch.base_offset, batch.last_offset
        expected, next_offset = self.next_offset, self._segment.next_offset
        where = f"byte {batch.position}: offsets {base} to {last}"
        if base < expected:
            return SegmentFindingKind.UNORDERED, f"{where}, expected {expected} or more"
        if last - self._segment.base_offset > RELATIVE_OFFSET_MAX or (
            next_offset is not None and last >= next_offset
        ):
            return SegmentFindingKind.OUTSIDE, f"{where}, the segment ends below {next_offset}"
        self.next_offset = last + 1
        if base > expected and not self._allows_holes:
            return SegmentFindingKind.HOLE, f"{where}, expected {expected}"
        return None

    def finish(self) -> tuple[SegmentFindingKind, str] | None:
        wanted = self._segment.next_offset
        if wanted is None or self.next_offset == wanted or self._allows_holes:
            return None
        return (
            SegmentFindingKind.HOLE,
            f"the log ends at offset {self.next_offset - 1}, not {wanted - 1}",
        )


class CompanionsOfLog:
    def __init__(
        self,
        base_offset: int,
        index_interval_bytes: int,
        producers: ProducerState,
        epochs: Epochs | None,
    ) -> None:
        self.index = SegmentIndex(base_offset, index_interval_bytes)
        self.producers = producers
        self.aborted = bytearray()
        self.aborts_unexplained = 0
        """Abort markers whose transaction was not seen: it was empty, or began before."""
        self.max_timestamp_ms = -1
        self.is_index_full = False
        self._epochs = EpochsOfLog(epochs)

    def note(self, batch: LogBatch) -> EndedTransaction | None:
        """Take in the next batch; give the transaction that it ends, if it ends one."""
        self.max_timestamp_ms = max(self.max_timestamp_ms, batch.max_timestamp_ms)
        if not self.is_index_full:
            self.index.note(batch.position, batch.last_offset, batch.max_timestamp_ms)
            entry_bytes = len(self.index.offsets) * OFFSET_ENTRY_BYTES
            self.is_index_full = entry_bytes > INDEX_BYTES_MAX
        self._epochs.note(batch)
        ended = self.producers.note(batch)
        if ended is not None and ended.is_aborted:
            if len(self.aborted) <= TXN_INDEX_BYTES_MAX:
                self.aborted += format_aborted(ended)
        elif batch.marker is not None and batch.marker.kind is ControlType.ABORT:
            self.aborts_unexplained += 1
        return ended

    def close(self) -> None:
        self.index.note_time()

    @property
    def epochs(self) -> Epochs | None:
        """Return the leader epochs up to here; None where those before are not known."""
        return self._epochs.entries


class SegmentPass:
    """Takes a log through every judge; a *log_finding* says why the log cannot be trusted."""

    def __init__(
        self,
        order: OffsetOrder,
        made: CompanionsOfLog,
        *,
        offsets: OffsetIndexJudge | None,
        times: TimeIndexJudge | None,
        transactions: TxnIndexJudge | None,
        epochs: EpochsJudge | None,
    ) -> None:
        self.made = made
        self.log_finding: SegmentFinding | None = None
        self.findings: list[SegmentFinding] = []
        self._order = order
        self._offsets = offsets
        self._times = times
        self._transactions = transactions
        self._epochs = epochs

    def run(self, name: str, walk: LogWalk) -> None:
        self._run(name, walk)
        self.log_finding = walk.finding or self.log_finding
        if self.log_finding is None:
            fault = self._order.finish()
            if fault is not None:
                self._refuse(name, fault)
        if self.log_finding is None:
            self.made.close()
            judges = (self._offsets, self._times, self._transactions)
            finished = [judge.finish() for judge in judges if judge is not None]
            finished.append(None if self._epochs is None else self._epochs.finding)
            self.findings = [finding for finding in finished if finding is not None]

    def _run(self, name: str, batches: Iterable[LogBatch]) -> None:
        offsets, times, epochs = self._offsets, self._times, self._epochs
        for batch in batches:
            fault = self._order.note(batch)
            if fault is not None:
                self._refuse(name, fault)
                return
            if offsets is not None:
                offsets.note(batch)
            if times is not None:
                times.note(batch)
            if epochs is not None:
                epochs.note(batch)
            ended = self.made.note(batch)
            if self._transactions is not None:
                self._transactions.note(batch, ended)

    def _refuse(self, name: str, fault: tuple[SegmentFindingKind, str]) -> None:
        kind, detail = fault
        self.log_finding = SegmentFinding(SegmentPart.LOG, kind, f"{name}: {detail}")
