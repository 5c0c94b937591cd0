"""Content checks: one pass checks the log, its indexes and the metadata against each other."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.findings import tier_findings as tier_kinds
from rlmm.retention.segment_lineage import began_behind
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.segment_indexes import INDEX_PARTS
from spark_tiering.maintenance.verify.object_checks import of_unreadable
from spark_tiering.maintenance.verify.salvage import (
    DamagedLogReader,
    SegmentLogFile,
    positions_of,
    stream_of,
)
from spark_tiering.maintenance.verify.values import SegmentFault, plain
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.indexes import OffsetIndexJudge, TimeIndexJudge
from spark_tiering.segments.leader_epochs import EpochsJudge, epochs_of_file, epochs_within
from spark_tiering.segments.log_pass import CompanionsOfLog, OffsetOrder, SegmentPass
from spark_tiering.segments.log_walk import LogWalk
from spark_tiering.segments.partition_files import FileStream
from spark_tiering.segments.producer_snapshots import judge_snapshot
from spark_tiering.segments.producer_state import ProducerState, parse_snapshot
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.segments.transactions import TxnIndexJudge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.findings.finding import FindingKind
    from rlmm.metadata.segment import Epochs, SegmentMetadata
    from spark_tiering.maintenance.verify.values import Offsets
    from spark_tiering.segment_reading.tiered import TieredSegment
    from spark_tiering.segments.log_walk import LogBatch

INTERVAL_BYTES: Final = 4096
"""Of the indexes that the pass builds and drops."""


class SegmentContent(NamedTuple):
    """The faults of a segment, and the producers behind it as its snapshot has them."""

    faults: tuple[SegmentFault, ...]
    snapshot: bytes | None = None
    is_closed: bool = False
    """The segment is encrypted, and no key opens it."""


def check_content(
    segment: SegmentMetadata,
    source: TieredSegment,
    readable_bytes: int,
    snapshot_before: bytes | None,
    *,
    allows_holes: bool,
) -> SegmentContent:
    """Check the *readable_bytes* of a log; *snapshot_before* ends just below the segment."""
    check = _Check(segment, source, readable_bytes, allows_holes=allows_holes)
    return check.run(snapshot_before)


class _Check:
    def __init__(
        self,
        segment: SegmentMetadata,
        source: TieredSegment,
        readable_bytes: int,
        *,
        allows_holes: bool,
    ) -> None:
        self._segment = segment
        self._source = source
        self._readable_bytes = readable_bytes
        self._listed = ListedSegment(segment.start_offset, segment.last_offset + 1)
        self._allows_holes = allows_holes
        self._faults: list[SegmentFault] = []
        self._parts: dict[SegmentPart, bytes] = {}
        self._next_offset = segment.start_offset

    @property
    def _whole(self) -> Offsets:
        return ((self._segment.start_offset, self._segment.last_offset),)

    def run(self, snapshot_before: bytes | None) -> SegmentContent:
        try:
            _ = self._source.cipher
        except SegmentUnreadable as unreadable:  # no key for it
            self._faults.append(of_unreadable(unreadable, ObjectKind.MANIFEST, ()))
            return SegmentContent(tuple(self._faults), is_closed=True)
        self._read_indexes()
        producers = self._producers_at_start(snapshot_before)
        is_whole = producers is not None
        made = CompanionsOfLog(
            self._segment.start_offset, INTERVAL_BYTES, producers or ProducerState(), None
        )
        passed = self._pass_over(made, is_whole=is_whole)
        if passed is None or passed.log_finding is not None:
            self._seal_suspected()
            return SegmentContent(tuple(self._faults))
        self._faults += [self._of_index(found) for found in passed.findings]
        self._faults += self._lacking_transactions(made, is_whole=is_whole)
        self._faults += self._wrong_snapshot(made, is_whole=is_whole)
        self._faults += self._wrong_epochs()
        self._faults += self._wrong_time(made)
        return SegmentContent(tuple(self._faults), self._parts.get(SegmentPart.PRODUCER_SNAPSHOT))

    def _read_indexes(self) -> None:
        for part in INDEX_PARTS:
            try:
                content = self._source.index(part)
            except SegmentUnreadable as unreadable:
                # The object as a whole is told of once, an index that is damaged each time.
                self._faults.append(of_unreadable(unreadable, part.value, self._whole))
                if unreadable.fault not in (ReadFault.DAMAGED, ReadFault.TOO_LARGE):
                    return
            else:
                if content is not None:
                    self._parts[part] = content

    def _producers_at_start(self, snapshot_before: bytes | None) -> ProducerState | None:
        if self._segment.start_offset == 0:
            return ProducerState()
        entries = None if snapshot_before is None else parse_snapshot(snapshot_before)
        return ProducerState(entries) if isinstance(entries, dict) else None

    def _pass_over(self, made: CompanionsOfLog, *, is_whole: bool) -> SegmentPass | None:
        """Check the log against its indexes; return None where it could not be read to its end."""
        file = SegmentLogFile(ObjectKind.LOG, self._source, self._readable_bytes)
        size = self._source.log_bytes
        walk = LogWalk(FileStream(file, ObjectKind.LOG, size, SegmentPart.LOG))
        order = _Order(self._listed, allows_holes=self._allows_holes)
        passed = self._judges(order, made, is_whole=is_whole)
        try:
            passed.run(ObjectKind.LOG, walk)
        except SegmentUnreadable as unreadable:
            lost = self._whole
            if walk.stop or not self._is_sealed_throughout():
                lost = self._lost(walk.stop, order.next_offset)
            self._faults.append(of_unreadable(unreadable, ObjectKind.LOG, lost))
            return None
        found = passed.log_finding
        if found is not None and found.kind is not SegmentFindingKind.CHANGED:
            self._faults.append(self._of_log(found, order, walk.stop))
        elif found is not None:
            # It is shorter than its manifest says, which was told; what is lost was not.
            lost = self._lost(walk.stop, order.next_offset)
            detail = f"readable up to byte {walk.stop} of {size}"
            self._faults.append(
                SegmentFault(
                    tier_kinds.OBJECT_LENGTH.code, ObjectKind.LOG, self._source.where, detail, lost
                )
            )
        return passed

    def _judges(self, order: OffsetOrder, made: CompanionsOfLog, *, is_whole: bool) -> SegmentPass:
        base_offset, parts = self._segment.start_offset, self._parts
        streams = {part: stream_of(content, part) for part, content in parts.items()}
        offsets = streams.get(SegmentPart.OFFSET_INDEX)
        times = streams.get(SegmentPart.TIME_INDEX)
        transactions = streams.get(SegmentPart.TXN_INDEX)
        return SegmentPass(
            order,
            made,
            offsets=OffsetIndexJudge(offsets, base_offset) if offsets else None,
            times=TimeIndexJudge(times, base_offset) if times else None,
            transactions=TxnIndexJudge(transactions, is_whole=is_whole) if transactions else None,
            # Before its first epoch nobody asks for anything: the log began behind that.
            epochs=_EpochsFrom(began_behind(self._segment), self._segment.epochs),
        )

    def _of_log(self, found: SegmentFinding, order: _Order, stop: int) -> SegmentFault:
        kind, part = tier_kinds.BATCH_DAMAGED, ObjectKind.LOG
        lost = order.lost
        if order.fault_at is _At.START:
            kind = tier_kinds.START_OFFSET
        elif order.fault_at is _At.END:
            kind = tier_kinds.NEXT_OFFSET
        if not order.fault_at:
            lost = self._lost(stop, order.next_offset)
        return SegmentFault(kind.code, part, self._source.where, plain(found.detail), lost)

    def _lost(self, position: int, next_offset: int) -> Offsets:
        """Return the offsets from *next_offset* on that cannot be read."""
        manifest = self._source.manifest
        is_cut = manifest.is_compressed or manifest.is_encrypted
        chunk_bytes = manifest.chunks.original_chunk_bytes if is_cut else 0
        positions = positions_of(self._parts.get(SegmentPart.OFFSET_INDEX))
        salvage = DamagedLogReader(self._source, self._readable_bytes, chunk_bytes, positions)
        return salvage.lost(position, next_offset, self._segment.last_offset)

    def _seal_suspected(self) -> None:
        """Report the manifest alone where nothing can be opened: it is at fault."""
        damaged = [one for one in self._faults if one.code == tier_kinds.OBJECT_DAMAGED.code]
        if not self._is_sealed_throughout() or damaged[-1].part != ObjectKind.LOG:
            return
        detail = "no part can be opened: the data key or the aad of its manifest is another one's"
        key = self._source.keys[ObjectKind.MANIFEST]
        code = tier_kinds.MANIFEST_MISMATCH.code
        self._faults = [one for one in self._faults if one not in damaged]
        self._faults.append(SegmentFault(code, ObjectKind.MANIFEST, key, detail, self._whole))

    def _is_sealed_throughout(self) -> bool:
        """Return whether it is encrypted, and no index with bytes could be opened."""
        codes = {one.code for one in self._faults}
        is_damaged = tier_kinds.OBJECT_DAMAGED.code in codes
        return self._source.manifest.is_encrypted and is_damaged and not any(self._parts.values())

    def _index_fault(self, kind: FindingKind, part: SegmentPart, detail: str) -> SegmentFault:
        key = self._source.keys[ObjectKind.INDEXES]
        return SegmentFault(kind.code, part.value, key, plain(detail))

    def _of_index(self, found: SegmentFinding) -> SegmentFault:
        kind = tier_kinds.INDEX_WRONG
        if found.part is SegmentPart.LEADER_EPOCHS:
            kind = tier_kinds.EPOCH_ORDER
        return self._index_fault(kind, found.part, f"{found.kind}: {found.detail}")

    def _lacking_transactions(
        self, made: CompanionsOfLog, *, is_whole: bool
    ) -> Iterator[SegmentFault]:
        part = SegmentPart.TXN_INDEX
        is_told = any(one.part == part.value for one in self._faults)
        if self._parts.get(part) or is_told or not made.aborted or made.producers.fault:
            return
        known = "" if is_whole else ", as far as it is known"
        detail = f"the log has aborted transactions{known}, and there are no entries"
        yield self._index_fault(tier_kinds.INDEX_WRONG, part, detail)

    def _wrong_snapshot(self, made: CompanionsOfLog, *, is_whole: bool) -> Iterator[SegmentFault]:
        part = SegmentPart.PRODUCER_SNAPSHOT
        content = self._parts.get(part)
        if content is None:
            return
        entries = parse_snapshot(content)
        if isinstance(entries, str):
            yield self._index_fault(tier_kinds.INDEX_WRONG, part, entries)
        elif made.producers.fault is None:
            expected, base_offset = made.producers.entries, self._segment.start_offset
            found = judge_snapshot(part.value, entries, expected, base_offset, is_whole=is_whole)
            if found is not None:
                yield self._index_fault(tier_kinds.INDEX_WRONG, part, found.detail)

    def _wrong_epochs(self) -> Iterator[SegmentFault]:
        part = SegmentPart.LEADER_EPOCHS
        content = self._parts.get(part)
        if content is None:
            return
        history = epochs_of_file(part.value, content)
        if isinstance(history, SegmentFinding):
            yield self._index_fault(tier_kinds.INDEX_WRONG, part, history.detail)
            return
        segment = self._segment
        own = epochs_within(history, segment.start_offset, segment.last_offset + 1)
        if own != segment.epochs and began_behind(segment) is None:
            detail = f"{own or 'nothing'} for the segment, the metadata has {segment.epochs}"
            yield self._index_fault(tier_kinds.EPOCH_ORDER, part, detail)

    def _wrong_time(self, made: CompanionsOfLog) -> Iterator[SegmentFault]:
        newest_ms, told_ms = made.max_timestamp_ms, self._segment.max_timestamp_ms
        if newest_ms >= 0 and newest_ms != told_ms:
            detail = f"the newest record is of {newest_ms}, the metadata says {told_ms}"
            code = tier_kinds.TIMESTAMP_WRONG.code
            yield SegmentFault(code, ObjectKind.LOG, self._source.where, detail)


class _At(StrEnum):
    """Tells where offsets do not fit."""

    NOWHERE = ""
    START = "start"
    MIDDLE = "middle"
    END = "end"


class _Order(OffsetOrder):
    """The order check that also records where it was broken, and which offsets lack their batch."""

    def __init__(self, segment: ListedSegment, *, allows_holes: bool) -> None:
        super().__init__(segment, allows_holes=allows_holes)
        self.fault_at = _At.NOWHERE
        self.lost: Offsets = ()
        self._first = segment.base_offset
        self._behind = segment.next_offset or 0

    def note(self, batch: LogBatch) -> tuple[SegmentFindingKind, str] | None:
        expected = self.next_offset
        fault = super().note(batch)
        if fault is not None:
            self.fault_at = _At.START if expected == self._first else _At.MIDDLE
            if fault[0] is SegmentFindingKind.OUTSIDE and self.fault_at is _At.MIDDLE:
                self.fault_at = _At.END
            is_hole = fault[0] is SegmentFindingKind.HOLE
            last = batch.base_offset - 1 if is_hole else self._behind - 1
            self.lost = ((expected, last),) if last >= expected else ()
        return fault

    def finish(self) -> tuple[SegmentFindingKind, str] | None:
        fault = super().finish()
        if fault is not None:
            self.fault_at = _At.END
            self.lost = ((self.next_offset, self._behind - 1),)
        return fault


class _EpochsFrom(EpochsJudge):
    """Checks the epochs of the metadata by the batches from *begun* on."""

    def __init__(self, begun: int | None, epochs: Epochs) -> None:
        super().__init__("the metadata", epochs)
        self._begun = begun

    def note(self, batch: LogBatch) -> None:
        if self._begun is None or batch.base_offset >= self._begun:
            super().note(batch)
