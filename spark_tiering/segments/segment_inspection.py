"""The inspection of one segment: its log read once, its other files judged or made anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.partition_log.names import EPOCH_CHECKPOINT, LOG, OFFSET_INDEX, TIME_INDEX, segment_file
from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.indexes import OffsetIndexJudge, TimeIndexJudge
from spark_tiering.segments.leader_epochs import EpochsJudge
from spark_tiering.segments.log_pass import CompanionsOfLog, OffsetOrder, SegmentPass
from spark_tiering.segments.log_walk import LogWalk
from spark_tiering.segments.partition_files import FileStream
from spark_tiering.segments.producer_snapshots import judge_snapshot
from spark_tiering.segments.producer_state import ProducerState
from spark_tiering.segments.segment_listing import SNAPSHOT, TXN_INDEX
from spark_tiering.segments.segment_parts import SegmentReport, StateBefore, StoredPart
from spark_tiering.segments.settlement import PartSettlement
from spark_tiering.segments.transactions import TxnIndexJudge

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.segments.leader_epochs import Epochs
    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_listing import ListedSegment


@dataclass(frozen=True, slots=True)
class InspectionRules:
    index_interval_bytes: int = 4096
    """The topic's `index.interval.bytes`: how far entries of indexes made here lie apart."""
    allows_holes: bool = False
    """Offsets without a batch are normal in a compacted topic, and a loss in any other."""

    def __post_init__(self) -> None:
        if not 0 <= self.index_interval_bytes < 2**31:
            msg = f"index interval must be 0 to 2^31 - 1 bytes, got {self.index_interval_bytes}"
            raise InvalidArgument(msg)


USUAL_RULES = InspectionRules()
NOTHING_KNOWN = StateBefore()
NOTHING_BEFORE = StateBefore(ProducerState(), ())


def inspect_segment(
    files: PartitionFiles,
    segment: ListedSegment,
    before: StateBefore = NOTHING_KNOWN,
    *,
    rules: InspectionRules = USUAL_RULES,
    on_piece: Callable[[bytes], object] | None = None,
) -> SegmentReport:
    """
    Read a rolled segment once, and report its faults and the parts of a copy. *before* is the state
    below its base offset; without it the snapshot there serves. *on_piece* gets the bytes of the
    log in order, good only if the report's log is. Raises `InvalidArgument` for the active segment.
    """
    if segment.next_offset is None:
        msg = f"segment {segment.base_offset} is the active one: only rolled ones are inspected"
        raise InvalidArgument(msg)
    stored = StoredFiles(files)
    name = segment.file(LOG)
    log = stored.facts.get(name)
    if log is None:
        return _unread(
            segment, 0, SegmentFinding(SegmentPart.LOG, SegmentFindingKind.MISSING, name)
        )
    known = before if segment.base_offset else NOTHING_BEFORE
    producers = _producers_at_start(stored, segment.base_offset, known.producers)
    is_whole = producers is not None
    made = CompanionsOfLog(
        segment.base_offset, rules.index_interval_bytes, producers or ProducerState(), known.epochs
    )
    on_file = stored.epochs()
    stream = FileStream(files, name, log.size_bytes, SegmentPart.LOG, on_piece=on_piece)
    order = OffsetOrder(segment, allows_holes=rules.allows_holes)
    passed = _judged(stored, segment, order, made, on_file, is_whole=is_whole)
    passed.run(name, LogWalk(stream))
    if passed.log_finding is None and not log.size_bytes:  # all of it was compacted away
        passed.log_finding = SegmentFinding(
            SegmentPart.LOG, SegmentFindingKind.HOLE, f"{name}: no batch is left"
        )
    if passed.log_finding is not None:
        return _unread(segment, log.size_bytes, passed.log_finding)
    settled = PartSettlement(
        stored, segment, segment.next_offset, passed, on_file, is_whole=is_whole
    )
    newest_ms = made.max_timestamp_ms
    has_producers = is_whole and made.producers.fault is None
    return SegmentReport(
        segment,
        tuple(settled.findings),
        {SegmentPart.LOG: StoredPart(name, log.size_bytes), **settled.parts},
        settled.own_epochs,
        log.size_bytes,
        log.modified_ms if newest_ms < 0 else newest_ms,
        StateBefore(made.producers if has_producers else None, settled.epochs),
    )


def _unread(segment: ListedSegment, size_bytes: int, finding: SegmentFinding) -> SegmentReport:
    return SegmentReport(segment, (finding,), {}, (), size_bytes, -1, NOTHING_KNOWN)


def _judged(
    stored: StoredFiles,
    segment: ListedSegment,
    order: OffsetOrder,
    made: CompanionsOfLog,
    on_file: Epochs | SegmentFinding,
    *,
    is_whole: bool,
) -> SegmentPass:
    base_offset = segment.base_offset
    offsets = stored.stream(segment.file(OFFSET_INDEX), SegmentPart.OFFSET_INDEX)
    times = stored.stream(segment.file(TIME_INDEX), SegmentPart.TIME_INDEX)
    transactions = stored.stream(segment.file(TXN_INDEX), SegmentPart.TXN_INDEX)
    return SegmentPass(
        order,
        made,
        offsets=OffsetIndexJudge(offsets, base_offset) if offsets else None,
        times=TimeIndexJudge(times, base_offset) if times else None,
        transactions=TxnIndexJudge(transactions, is_whole=is_whole) if transactions else None,
        epochs=None
        if isinstance(on_file, SegmentFinding)
        else EpochsJudge(EPOCH_CHECKPOINT, on_file),
    )


def _producers_at_start(
    stored: StoredFiles, base_offset: int, known: ProducerState | None
) -> ProducerState | None:
    """Return the producers at the base offset; None when neither file nor state tells them."""
    if base_offset == 0:
        return ProducerState()
    found = stored.snapshot(base_offset)
    if isinstance(found, SegmentFinding):
        return None if known is None else known.copy()
    if known is not None:
        name = segment_file(base_offset, SNAPSHOT)
        if judge_snapshot(name, found, known.entries, base_offset, is_whole=True) is not None:
            return known.copy()
    return ProducerState(found)
