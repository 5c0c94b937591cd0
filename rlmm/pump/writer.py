"""
The writer of events: validates, appends, and waits for the verdict. Refuses with nothing stored
where it can: malformed, then unassigned, then rejected events.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from rlmm.base.duration_histogram import Durations
from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    NotReady,
    NotWritable,
    OutcomeUnknown,
    OverBudget,
    Unresolved,
)
from rlmm.log.request_checks import require_timeout
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.segment import SegmentState
from rlmm.metadata.verdicts import Applied, Duplicate, Rejected

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from rlmm.base.duration_histogram import DurationStatistics
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard
    from rlmm.metadata.verdicts import Verdict
    from rlmm.pump.memory_budget import Budget
    from rlmm.pump.pump import Pump
    from rlmm.pump.settings import WriteSettings


_OF_DELETION = {SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED}


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    metadata_partition: int
    offset: int
    verdict: Applied | Duplicate


@dataclass(frozen=True, slots=True)
class StoredNotAssigned:
    """The event is stored; its partition is not read here, so the verdict is not known."""

    metadata_partition: int
    offset: int


class WriteAdmission(Protocol):
    def place_of(self, partition: TopicIdPartition) -> int:
        """Return the metadata partition; `NotReady` while it is not known."""

    def is_assigned(self, partition: TopicIdPartition) -> bool:
        """`NotReady` while that is not known."""

    async def wait_assigned(self) -> None:
        """Wait until the topic and the assignment are known."""

    async def wait_open(self, partition: TopicIdPartition) -> None:
        """Wait until the gate admits questions about the partition."""

    def admit(self, partition: TopicIdPartition) -> Shard:
        """Return the shard that answers for the partition, or raise why there is none."""


@dataclass(slots=True)
class _End:
    name: str = "failed"
    is_handed_over: bool = False
    """Whether the log has the event: from then on it may be stored."""


@dataclass(frozen=True, slots=True)
class WriterStatistics:
    pending: int
    applied: int
    duplicate: int
    stored_not_assigned: int
    rejected_before: int
    """By the state machine, with nothing stored."""
    rejected_after: int
    """By the state machine, when stored already: another event came first."""
    unknown: int
    """Stored, or perhaps stored, without a verdict."""
    failed: int
    durations: DurationStatistics
    """Of events handed to the log: from the call until the verdict, or until the writer gave up."""


class EventWriter:
    def __init__(
        self,
        log: MetadataLog,
        pump: Pump,
        admission: WriteAdmission,
        budget: Budget,
        settings: WriteSettings,
        *,
        is_observer: bool,
    ) -> None:
        self._log = log
        self._pump = pump
        self._admission = admission
        self._budget = budget
        self._settings = settings
        self._is_observer = is_observer
        self._pending = 0
        self._durations = Durations()
        self._ends: dict[str, int] = {}

    async def write(self, event: Event, *, timeout_s: float | None = None) -> WrittenEvent:
        """
        Store *event*, for a user partition that is assigned here, and return its verdict.

        Raises, with nothing stored: `InvalidArgument`, `NotPublishable`, `NotWritable`,
        `NotAssigned`, `NotReady`, `OverBudget`, `EventRejected`, `AppendRefused`, other errors of
        the log. With the event stored, or perhaps stored: `EventRejected` with its place,
        `AppendUncertain`, `OutcomeUnknown`, `AssignmentLost`, `Stopped`, `PumpFailed`. When
        cancelled, the event may be stored; not while the writer waits for admission.
        """
        value = self._encoded(event)
        with self._counting() as end:
            written = await self._write(event, value, self._limit_s(timeout_s), end)
            end.name = "duplicate" if isinstance(written.verdict, Duplicate) else "applied"
        return written

    async def store(
        self, event: Event, *, timeout_s: float | None = None
    ) -> WrittenEvent | StoredNotAssigned:
        """
        Store *event* like `write`; also one of an unassigned partition, as Kafka, without a
        verdict.
        """
        value = self._encoded(event)
        limit_s = self._limit_s(timeout_s)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + limit_s
        partition = _partition_of(event)
        with self._counting() as end:
            await self._wait(self._admission.wait_assigned(), limit_s)
            limit_s = max(0.001, deadline_s - loop.time())
            if self._admission.is_assigned(partition):
                written = await self._write(event, value, limit_s, end)
                end.name = "duplicate" if isinstance(written.verdict, Duplicate) else "applied"
                return written
            place = self._admission.place_of(partition)
            end.is_handed_over = True
            offset = await self._log.append(place, value, timeout_s=limit_s)
            end.name = "stored_not_assigned"
        return StoredNotAssigned(place, offset)

    def _limit_s(self, timeout_s: float | None) -> float:
        if timeout_s is None:
            return self._settings.timeout_ms / 1_000
        return require_timeout(timeout_s)

    def _encoded(self, event: Event) -> bytes:
        """Return the record of *event*; refuses it where this service may not write now."""
        value = encode(event)
        if self._is_observer:
            msg = f"this service is an observer, it never writes: {_name(event)}"
            raise NotWritable(msg)
        if self._pending >= self._settings.pending_max:
            msg = f"{self._pending} writes are waiting already, write.pending_max allows no more"
            raise OverBudget(msg)
        self._budget.require_room("a write")
        return value

    @contextmanager
    def _counting(self) -> Iterator[_End]:
        end = _End()
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        self._pending += 1
        try:
            yield end
        except EventRejected as error:
            end.name = "rejected_before" if error.stored_at is None else "rejected_after"
            raise
        except Unresolved as error:
            end.name = "failed" if error.stored_at is None else "unknown"
            raise
        except AppendUncertain:
            end.name = "unknown"
            raise
        except asyncio.CancelledError:
            end.name = "unknown" if end.is_handed_over else "failed"
            raise
        finally:
            self._pending -= 1
            self._ends[end.name] = self._ends.get(end.name, 0) + 1
            if end.is_handed_over:
                self._durations.add(loop.time() - begin_s)

    async def _write(self, event: Event, value: bytes, limit_s: float, end: _End) -> WrittenEvent:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + limit_s
        partition = _partition_of(event)
        try:
            shard = self._admission.admit(partition)
        except NotReady:
            await self._wait(self._admission.wait_open(partition), limit_s)
            shard = self._admission.admit(partition)
        place = self._admission.place_of(partition)
        whole = _with_custom(event, shard)
        if whole is not event:
            event, value = whole, encode(whole)
        refusal = shard.admit(event)
        if refusal is not None:
            raise _rejected(event, refusal, None)
        # No await since the shard was admitted: its follower is the one that will read the event.
        follower = self._pump.follower(place)
        assert follower is not None, place
        verdicts = follower.verdicts
        append = verdicts.begin()
        try:
            left_s = max(0.001, deadline_s - loop.time())
            end.is_handed_over = True
            offset = await self._log.append(place, value, timeout_s=left_s)
            pending = verdicts.listen(offset, append, value)
        finally:
            verdicts.end_append(append)
        verdict = await self._wait_verdict(pending, place, offset, deadline_s)
        if isinstance(verdict, (Applied, Duplicate)):
            return WrittenEvent(place, offset, verdict)
        raise _rejected(event, verdict, (place, offset))

    async def _wait(self, for_it: Coroutine[None, None, None], limit_s: float) -> None:
        """Wait for readiness, as long as a writer may; the admission gives the reason later."""
        wait_s = min(limit_s, self._settings.ready_timeout_ms / 1_000)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await for_it

    async def _wait_verdict(
        self, pending: asyncio.Future[Verdict], place: int, offset: int, deadline_s: float
    ) -> Verdict:
        try:
            async with asyncio.timeout_at(deadline_s):
                return await pending
        except TimeoutError:
            msg = (
                f"the event is stored at offset {offset} of metadata partition {place}, but its "
                "outcome was not known in time: query the segment before sending it again"
            )
            raise OutcomeUnknown(msg, stored_at=(place, offset)) from None
        except Unresolved as error:
            msg = f"the event is stored at offset {offset} of metadata partition {place}: {error}"
            raise type(error)(msg, stored_at=(place, offset)) from None

    def statistics(self) -> WriterStatistics:
        ends = self._ends
        return WriterStatistics(
            self._pending,
            ends.get("applied", 0),
            ends.get("duplicate", 0),
            ends.get("stored_not_assigned", 0),
            ends.get("rejected_before", 0),
            ends.get("rejected_after", 0),
            ends.get("unknown", 0),
            ends.get("failed", 0),
            self._durations.statistics(),
        )


def _with_custom(event: Event, shard: Shard) -> Event:
    """Let the update of a deletion repeat the stored custom metadata, which plugins need."""
    if not isinstance(event, SegmentUpdate) or event.custom_metadata is not None:
        return event
    if event.state not in _OF_DELETION:
        return event
    stored = shard.segment(event.id)
    if stored is None or stored.custom_metadata is None:
        return event
    return replace(event, custom_metadata=stored.custom_metadata)


def _partition_of(event: Event) -> TopicIdPartition:
    if isinstance(event, PartitionDelete):
        return event.partition
    return event.id.partition  # type: ignore[union-attr]


def _name(event: Event) -> str:
    return f"{type(event).__name__} of {getattr(event, 'id', None) or _partition_of(event)}"


def _rejected(event: Event, verdict: Verdict, stored_at: tuple[int, int] | None) -> EventRejected:
    where = "nothing was written"
    if stored_at is not None:
        where = f"it is stored at offset {stored_at[1]} of metadata partition {stored_at[0]}"
    current = requested = None
    reason = "undecodable"
    if isinstance(verdict, Rejected):
        reason = verdict.reason
        current = None if verdict.current is None else verdict.current.name
        requested = None if verdict.requested is None else verdict.requested.name
    msg = f"{_name(event)} is rejected: {verdict}; {where}"
    return EventRejected(
        msg, reason=reason, current=current, requested=requested, stored_at=stored_at
    )
