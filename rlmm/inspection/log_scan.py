"""A search of the log without a state: bytes are searched before anything is decoded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import LogError, LogTruncated, NotReady
from rlmm.inspection.event_record import cut_of, happened_in, judged_batches
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import READ_BYTES
from rlmm.metadata.open_record_set import INFLATED_BYTES_MAX
from rlmm.metadata.report import Entry
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.batch import Batch, walk
from rlmm.records.compression import Compression
from rlmm.records.damage import DamagedBatch, DamagedRecords

if TYPE_CHECKING:
    import re
    from collections.abc import AsyncIterator

    from rlmm.inspection.event_record import EventRecord, Wanted
    from rlmm.inspection.history import HistorySubject
    from rlmm.inspection.replay import EventLog, Progress
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.records.record_set import RecordSet


@dataclass(frozen=True, slots=True)
class PartitionMention:
    metadata_partition: int
    partition: TopicIdPartition | None
    """The user partition of the first event; None where none can be decoded."""


class LogScan:
    """Reads one place without applying it; `position` is how far. One task reads at a time."""

    def __init__(
        self, log: EventLog, place: int, bound: ReplayEnd, *, timeout_s: float,
        first: int | None = None, bytes_max: int = READ_BYTES,
    ) -> None:  # fmt: skip
        """*first* is the offset to begin with; the log start offset by default."""
        self._log = log
        self._place = place
        self._bound = bound
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max
        self._must_go_on = False
        self.position = 0 if first is None else first
        self.end = 0
        self.log_start = 0

    def go_on(self) -> None:
        """Read on to the log's present end; `record_sets` raises `LogTruncated` for a gap."""
        self._bound, self._must_go_on = ReplayEnd(), True

    async def record_sets(self) -> AsyncIterator[tuple[RecordSet, int, int]]:
        found = (await self._log.bounds([self._place], timeout_s=self._timeout_s))[self._place]
        if isinstance(found, LogError):
            raise found
        self.log_start, self.end = found.log_start_offset, found.high_watermark
        if self._must_go_on and self.log_start > self.position:
            msg = (
                f"metadata partition {self._place}: offset {self.position} is reached, and the log "
                f"begins at {self.log_start}: what is between is gone"
            )
            raise LogTruncated(msg, self.log_start, self.end)
        self.position = max(self.position, self.log_start)
        last = self._bound.offsets.get(self._place)
        if last is not None:
            self.end = min(self.end, last + 1)
        while self.position < self.end:
            record_set = await self._log.read(
                self._place, self.position, timeout_s=self._timeout_s, bytes_max=self._bytes_max
            )
            if record_set is None or record_set.next_offset is None:
                msg = f"metadata partition {self._place}: nothing came in {self._timeout_s:g} s"
                raise NotReady(
                    msg,
                    reason="behind", metadata_partition=self._place,
                    position=self.position, target=self.end,
                )  # fmt: skip
            cut = cut_of(record_set, self.position, self.end, self._bound.time_ms)
            first, stop = self.position, record_set.next_offset if cut is None else cut.offset
            self.position = max(first, stop)
            if cut is not None:
                self.end = self.position
            yield record_set, first, stop
            await asyncio.sleep(0)

    async def happened(self) -> AsyncIterator[EventRecord]:
        """Yield every record; without a state each decodable one counts as applied."""
        async for record_set, first, stop in self.record_sets():
            for one in happened_in(record_set, first, stop, lost_in(record_set, first, stop)):
                yield one


def lost_in(record_set: RecordSet, first: int, stop: int) -> dict[int, Entry]:
    found: dict[int, Entry] = {}
    position = first
    for batch in judged_batches(record_set, first):
        if position >= stop:
            break
        if isinstance(batch, DamagedBatch):
            behind = offset_behind(record_set, batch, position)
            begin, position = position, stop if behind is None else min(behind, stop)
            detail = f"{batch.reason}: {batch.detail}"
            data = record_set.data[batch.start : batch.stop]
            _lose(found, begin, position, detail, data)
            continue
        for record in batch.records(inflated_bytes_max=INFLATED_BYTES_MAX):
            if isinstance(record, DamagedRecords):
                begin, end = max(position, record.first_offset), min(record.next_offset, stop)
                detail = f"{record.reason}: {record.detail}"
                _lose(found, begin, end, detail, record_set.data[batch.start : batch.stop])
        position = batch.next_offset
    return found


def _lose(found: dict[int, Entry], begin: int, end: int, detail: str, data: bytes) -> None:
    if begin < end:
        verdict = Undecodable(UndecodableReason.DAMAGED_BATCH, detail)
        found[begin] = Entry(begin, end, verdict, value=data)


async def find_mention(
    log: EventLog, place: int, sought: HistorySubject, bound: ReplayEnd, *, timeout_s: float,
    progress: Progress | None = None,
) -> PartitionMention | None:  # fmt: skip
    """Return whether *place* mentions *sought* up to *bound*; stop at the first event of it."""
    pattern, scan = sought.pattern(), LogScan(log, place, bound, timeout_s=timeout_s)
    mention: PartitionMention | None = None
    async for record_set, first, stop in scan.record_sets():
        if progress is not None:
            progress(place, first, scan.end)
        if not _is_mentioned(record_set, pattern):
            continue
        lost = lost_in(record_set, first, stop)
        for one in happened_in(record_set, first, stop, lost, _in(pattern)):
            if one.partition is None:
                mention = PartitionMention(place, None) if _is_named(one, sought) else mention
            elif sought.is_of(one.partition) and sought.segment in {None, one.segment}:
                return PartitionMention(place, one.partition)
    if progress is not None:
        progress(place, scan.end, scan.end)
    return mention


def _is_named(one: EventRecord, sought: HistorySubject) -> bool:
    """Return whether a record without a user partition may be about *sought*."""
    return one.event is None or (one.segment is not None and one.segment == sought.segment)


def _in(pattern: re.Pattern[bytes]) -> Wanted:
    return lambda value: pattern.search(value) is not None


def _is_mentioned(record_set: RecordSet, pattern: re.Pattern[bytes]) -> bool:
    """Return whether *pattern* is in any record; compressed batches are decompressed for it."""
    if pattern.search(record_set.data) is not None:
        return True
    for batch in walk(record_set.data, verify_crc=False):
        if isinstance(batch, Batch) and batch.compression is not Compression.NONE:
            values = batch.values(inflated_bytes_max=INFLATED_BYTES_MAX)
            if any(value is not None and pattern.search(value) for _, value in values):
                return True
    return False
