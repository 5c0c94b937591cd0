"""
A log read from its start up to a bound: the state there, and every event with its verdict. Verdicts
come from the engine, as in a service. A bound may end inside a batch.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from rlmm.base.time_text import moment_text
from rlmm.errors import (
    InvalidArgument,
    LogError,
    LogTruncated,
    NotReady,
    UnknownPartition,
    first_of,
)
from rlmm.inspection.event_record import cut_of, happened_in
from rlmm.inspection.moment import PAGE, PartitionSummary, ReplayEnd, in_order, summary_of
from rlmm.log.request_checks import require_partition
from rlmm.metadata.assignment import place_of
from rlmm.metadata.decoding import decode
from rlmm.metadata.engines import shard_type
from rlmm.metadata.open_record_set import INFLATED_BYTES_MAX
from rlmm.metadata.report import Entry
from rlmm.metadata.verdicts import APPLIED, Undecodable
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.damage import DamagedBatch, DamagedRecords
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Collection,
        Iterator,
        Mapping,
    )

    from rlmm.inspection.event_record import EventRecord, ReadableEnd, Wanted
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.metadata.shard import Shard
    from rlmm.records.batch import Batch

    Progress = Callable[[int, int, int], None]
    """Gets the metadata partition, its position and the end of the read."""

READ_BYTES = 4 * 1024 * 1024
PLACES_AT_ONCE = 4


class EventLog(Protocol):
    """The reading half of `rlmm.log.protocol.MetadataLog`; each of those is one."""

    async def identity(self, *, timeout_s: float) -> LogIdentity: ...

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]: ...

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None: ...


@dataclass(frozen=True, slots=True)
class AppliedChunk:
    """Records that were applied at once: a record set, or a part of it."""

    record_set: RecordSet
    position: int
    next_offset: int
    entries: Mapping[int, Entry]
    """Verdicts other than applied, by offset."""

    def happened(self, wanted: Wanted | None = None) -> Iterator[EventRecord]:
        """Yield every record, or those whose bytes are *wanted*, and every loss."""
        return happened_in(self.record_set, self.position, self.next_offset, self.entries, wanted)


class PartitionReplay:
    """Replays one metadata partition; `shard` is the state so far. One task reads at a time."""

    def __init__(
        self, log: EventLog, place: int, bound: ReplayEnd, *, timeout_s: float,
        shard: Shard | None = None, bytes_max: int = READ_BYTES,
    ) -> None:  # fmt: skip
        """
        Go on from *shard*; all is read anew where the log starts behind it or ends before it.
        `NotReady` is raised when the log gives nothing for *timeout_s*.
        """
        self._log = log
        self._place = place
        self._bound = bound
        self._timeout_s = timeout_s
        self._given = shard
        self._bytes_max = bytes_max
        self._must_go_on = False
        self.shard: Shard = shard_type()(place) if shard is None else shard
        self.log_start = 0
        """The log start offset: earlier events are not known."""
        self.end = 0
        """Where it is read to, exclusive."""

    async def begin(self) -> None:
        """Ask for the bounds; `LogTruncated` if nothing is below the bound any more."""
        found = (await self._log.bounds([self._place], timeout_s=self._timeout_s))[self._place]
        if isinstance(found, LogError):
            raise found
        self.log_start, self.end = found.log_start_offset, found.high_watermark
        last = self._bound.offsets.get(self._place)
        if last is not None:
            self.end = min(self.end, last + 1)
        if self._given is not None and self.log_start <= self._given.position <= self.end:
            return
        if self._must_go_on and self.end < self.shard.position <= found.high_watermark:
            msg = (
                f"metadata partition {self._place}: offset {self.shard.position - 1} lies behind "
                f"{last}, the second moment before the first"
            )
            raise InvalidArgument(msg)
        if self._must_go_on:
            msg = (
                f"metadata partition {self._place}: offset {self.shard.position} is reached, and "
                f"the log holds {self.log_start} to {found.high_watermark}"
            )
            raise LogTruncated(msg, self.log_start, found.high_watermark)
        if last is not None and self.end <= self.log_start and self.log_start > 0:
            raise self._nothing_left(f"up to offset {last}")
        self.shard = shard_type()(self._place, self.log_start)

    def go_on(self, bound: ReplayEnd) -> None:
        """
        Read on up to *bound* with the next `chunks`. These raise `InvalidArgument` where *bound*
        lies before, `LogTruncated` for a gap.
        """
        self._bound, self._given, self._must_go_on = bound, self.shard, True

    async def chunks(self) -> AsyncGenerator[AppliedChunk]:
        await self.begin()
        limit_ms = self._bound.time_ms
        while self.shard.position < self.end:
            record_set = await self._read(self._timeout_s)
            if record_set is None:
                msg = f"metadata partition {self._place}: nothing came in {self._timeout_s:g} s"
                raise NotReady(
                    msg,
                    reason="behind", metadata_partition=self._place,
                    position=self.shard.position, target=self.end,
                )  # fmt: skip
            cut = cut_of(record_set, self.shard.position, self.end, limit_ms)
            if cut is not None and cut.offset <= self.log_start and self._given is None:
                if self.log_start > 0:
                    raise self._nothing_left(f"at {moment_text(limit_ms or 0)}")
                self.end = self.shard.position
                return
            yield self._apply(record_set, cut)
            if cut is not None and self.shard.position >= cut.offset:
                self.end = self.shard.position
                return
            await asyncio.sleep(0)

    async def run(self, progress: Progress | None = None) -> Shard:
        """Read to the end, and return the state there."""
        async for _ in self.chunks():
            if progress is not None:
                progress(self._place, self.shard.position, self.end)
        if progress is not None:
            progress(self._place, self.end, self.end)
        return self.shard

    async def _read(self, timeout_s: float) -> RecordSet | None:
        return await self._log.read(
            self._place, self.shard.position, timeout_s=timeout_s, bytes_max=self._bytes_max
        )

    def _nothing_left(self, asked: str) -> LogTruncated:
        msg = (
            f"metadata partition {self._place}: the state {asked} is not known: the log begins at "
            f"offset {self.log_start}, and all that was before is gone"
        )
        return LogTruncated(msg, self.log_start, self.end)

    def _apply(self, record_set: RecordSet, cut: ReadableEnd | None) -> AppliedChunk:
        position, entries = self.shard.position, dict[int, Entry]()
        self._apply_whole(record_set if cut is None else cut.whole(record_set), entries)
        if cut is not None and cut.found is not None:
            self._apply_singly(cut.found, record_set, cut.offset, entries)
        return AppliedChunk(record_set, position, self.shard.position, entries)

    def _apply_whole(self, record_set: RecordSet, entries: dict[int, Entry]) -> None:
        while True:
            report = self.shard.apply(record_set)
            entries.update((one.offset, one) for one in report.entries)
            damage = report.damage
            if damage is None:
                return
            behind = offset_behind(record_set, damage, self.shard.position)
            on = max(self.end, self.shard.position + 1) if behind is None else behind
            self._set_aside(damage, record_set, on, entries)
            rest = b"" if damage.stop is None else record_set.data[damage.stop :]
            record_set = RecordSet(self._place, rest, record_set.next_offset)

    def _set_aside(
        self, damage: DamagedBatch, record_set: RecordSet, on: int, entries: dict[int, Entry]
    ) -> None:
        """Pass a batch that cannot be trusted, up to *on*; its rest may come later."""
        if on <= self.shard.position:
            return
        # A copy, also of all of it: the engine never looks again at bytes that were set aside.
        batch = bytes(memoryview(record_set.data)[damage.start : damage.stop])
        moved = replace(damage, start=0, stop=len(batch))
        aside = self.shard.set_aside(moved, batch, on)
        entries.update((one.offset, one) for one in aside.entries)

    def _apply_singly(
        self, batch: Batch, record_set: RecordSet, end: int, entries: dict[int, Entry]
    ) -> None:
        for record in batch.records(inflated_bytes_max=INFLATED_BYTES_MAX):
            if isinstance(record, DamagedRecords):
                first, on = record.first_offset, min(end, record.next_offset)
                self._skip_to(min(first, end))
                damage = DamagedBatch(
                    record.reason, batch.start, batch.stop, batch.base_offset, None, record.detail
                )
                self._set_aside(damage, record_set, on, entries)
            elif record.offset >= end:
                break
            elif record.offset >= self.shard.position and not batch.is_control:
                found = decode(record.value)
                verdict = self.shard.apply_event(found, record.offset)
                if verdict is not APPLIED:
                    value = record.value if isinstance(verdict, Undecodable) else None
                    entries[record.offset] = Entry(
                        record.offset, record.offset + 1, verdict, value=value
                    )
        self._skip_to(end)

    def _skip_to(self, offset: int) -> None:
        """Pass offsets that have no record."""
        self.shard.apply(RecordSet(self._place, b"", offset))


class ShardsMoment:
    def __init__(self, identity: LogIdentity, replays: Mapping[int, PartitionReplay]) -> None:
        self.identity = identity
        self.replays = replays
        self.positions = {place: one.shard.position for place, one in replays.items()}

    async def user_partitions(self) -> list[PartitionSummary]:
        shards = [one.shard for one in self.replays.values()]
        return in_order(
            summary_of(shard, partition) for shard in shards for partition in shard.partitions()
        )

    async def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> AsyncIterator[list[SegmentMetadata]]:
        shard, after = await self.state(partition), None
        while True:
            page = shard.page(partition, epoch, after=after, limit=PAGE)
            if page.segments:
                yield list(page.segments)
            if page.is_last:
                return
            after = page.after

    async def state(self, partition: TopicIdPartition) -> Shard:
        place = place_of(partition, self.identity.partition_count)
        replay = self.replays.get(place)
        if replay is None:
            msg = f"{partition}: metadata partition {place} was not read"
            raise NotReady(
                msg, reason="not-read", user_partition=str(partition), metadata_partition=place
            )
        if not replay.shard.knows(partition):
            msg = f"{partition}: no event of it was ever stored"
            raise UnknownPartition(msg)
        return replay.shard


async def replay(
    log: EventLog,
    places: Collection[int] | None = None,
    bound: ReplayEnd | None = None,
    *,
    timeout_s: float = 30.0,
    progress: Progress | None = None,
) -> ShardsMoment:
    """Return the state of *places*, or of all, at *bound*; raises the errors of the log."""
    identity = await log.identity(timeout_s=timeout_s)
    for place in () if bound is None else bound.offsets:
        require_partition(place, identity.partition_count)
    asked = range(identity.partition_count) if places is None else sorted(set(places))
    replays = {
        place: PartitionReplay(log, place, bound or ReplayEnd(), timeout_s=timeout_s)
        for place in asked
    }
    turns = asyncio.Semaphore(PLACES_AT_ONCE)

    async def run(one: PartitionReplay) -> None:
        async with turns:
            await one.run(progress)

    try:
        async with asyncio.TaskGroup() as tasks:
            for one in replays.values():
                tasks.create_task(run(one))
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    return ShardsMoment(identity, replays)
