"""
The state before a segment, and the last stable offset, from files alone. No I/O of its own. Logs
are read from the newest sound producer snapshot on, as by a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.partition_log.names import LOG
from spark_tiering.segments.companions import StoredFiles
from spark_tiering.segments.findings import SegmentFinding, SegmentFindingKind, SegmentPart
from spark_tiering.segments.leader_epochs import EpochsOfLog
from spark_tiering.segments.log_pass import OffsetOrder
from spark_tiering.segments.log_walk import LogWalk
from spark_tiering.segments.producer_state import ProducerState
from spark_tiering.segments.segment_listing import list_segments, snapshot_offsets
from spark_tiering.segments.segment_parts import StateBefore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.segments.partition_files import PartitionFiles
    from spark_tiering.segments.segment_listing import ListedSegment

_UNFINISHED = frozenset(
    {SegmentFindingKind.TORN, SegmentFindingKind.UNTRIMMED, SegmentFindingKind.CHANGED}
)
"""How the file of an active segment may end while a broker writes to it, or after it crashed."""


class LastStable(NamedTuple):
    """The last stable offset as files tell it; *offset* is None where they do not, with the why."""

    offset: int | None
    detail: str


def state_before(
    files: PartitionFiles,
    segments: Sequence[ListedSegment],
    base_offset: int,
    *,
    log_start: int = 0,
    with_epochs: bool = False,
    allows_holes: bool = False,
) -> StateBefore:
    """
    Return the state below the segment that begins at *base_offset*. Without a sound snapshot there
    the segments since an older one are read. Only a log that is here from *log_start* on proves
    that a producer is absent. *with_epochs* reads it to tell leader epochs.
    """
    stored = StoredFiles(files)
    is_whole = bool(segments) and segments[0].base_offset <= log_start
    epochs = None
    if with_epochs and is_whole:
        replay = _Replay(stored, segments, segments[0].base_offset, None, allows_holes)
        replay.run(base_offset)
        epochs = replay.epochs.entries if replay.reached == base_offset else None
    for start, producers in _starts(stored, segments, base_offset, is_whole=is_whole):
        replay = _Replay(stored, segments, start, producers, allows_holes)
        replay.run(base_offset)
        if replay.reached == base_offset and producers.fault is None:
            return StateBefore(producers, epochs)
    return StateBefore(None, epochs)


def last_stable_offset(
    files: PartitionFiles,
    *,
    log_start: int = 0,
    high_watermark: int | None = None,
    allows_holes: bool = False,
) -> LastStable:
    """
    Return the offset below which no transaction is open, from files alone; without *high_watermark*
    it is right only for a log with one replica.
    """
    stored = StoredFiles(files)
    segments = list_segments(stored.facts)
    if not segments:
        return LastStable(None, "there is no segment")
    is_whole = segments[0].base_offset <= log_start
    detail = "no producer snapshot, and the log does not begin here"
    for start, producers in _starts(stored, segments, None, is_whole=is_whole):
        replay = _Replay(stored, segments, start, producers, allows_holes)
        replay.run(None)
        detail = replay.detail or producers.fault or ""
        if detail:
            continue
        if replay.reached < start:
            detail = f"the log ends at {replay.reached}, below its snapshot of {start}"
            continue
        ends = (replay.reached, producers.first_open_offset, high_watermark)
        return LastStable(min(end for end in ends if end is not None), "")
    return LastStable(None, detail)


def _starts(
    stored: StoredFiles, segments: Sequence[ListedSegment], limit: int | None, *, is_whole: bool
) -> Iterator[tuple[int, ProducerState]]:
    for offset in reversed(snapshot_offsets(stored.facts)):
        if limit is not None and offset > limit:
            continue
        if not segments or offset < segments[0].base_offset:
            break
        found = stored.snapshot(offset)
        if not isinstance(found, SegmentFinding):
            yield offset, ProducerState(found)
    if is_whole and (limit is None or limit >= segments[0].base_offset):
        yield segments[0].base_offset, ProducerState()


class _Replay:
    """Reads the logs from *start* to *reached* (exclusive); *detail* says why it stopped early."""

    def __init__(
        self,
        stored: StoredFiles,
        segments: Sequence[ListedSegment],
        start: int,
        producers: ProducerState | None,
        allows_holes: bool,
    ) -> None:
        self.reached = start
        self.detail = ""
        self.epochs = EpochsOfLog(())
        self._stored = stored
        self._segments = segments
        self._start = start
        self._producers = producers
        self._allows_holes = allows_holes

    def run(self, limit: int | None) -> None:
        """Go on to *limit*, the base offset of a segment; None goes on to the end of the log."""
        if limit is not None and self._start >= limit:
            return
        for segment in self._segments:
            if segment.next_offset is not None and segment.next_offset <= self._start:
                continue
            if limit is not None and segment.base_offset >= limit:
                return
            self._read(segment)
            if self.detail:
                return

    def _read(self, segment: ListedSegment) -> None:
        name = segment.file(LOG)
        stream = self._stored.stream(name, SegmentPart.LOG)
        if stream is None:
            self.detail = f"{name}: no such file"
            return
        walk = LogWalk(stream)
        order = OffsetOrder(segment, allows_holes=self._allows_holes)
        for batch in walk:
            fault = order.note(batch)
            if fault is not None:
                self.detail = f"{name}: {fault[1]}"
                return
            if batch.base_offset >= self._start:
                self.epochs.note(batch)
                if self._producers is not None:
                    self._producers.note(batch)
        is_active = not segment.is_rolled
        if walk.finding is not None and not (is_active and walk.finding.kind in _UNFINISHED):
            self.detail = walk.finding.detail
            return
        fault = order.finish()
        if fault is not None:
            self.detail = f"{name}: {fault[1]}"
            return
        self.reached = order.next_offset if segment.next_offset is None else segment.next_offset
