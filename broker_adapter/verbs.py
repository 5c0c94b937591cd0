"""The verbs of Kafka's RemoteLogMetadataManager, one to one, in Python's spelling."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self, Unpack

from broker_adapter import calls
from broker_adapter.call_execution import CallExecution
from rlmm.errors import InvalidArgument, RlmmError
from rlmm.metadata.events import PartitionDelete, SegmentUpdate, require_event
from rlmm.metadata.segment import SegmentMetadata
from rlmm.wire.options import wait_options_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from broker_adapter.calls import Event, Lookup, SegmentPage
    from broker_adapter.statistics import ClientStatistics
    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.wire.options import ReadOptions, Unassigned
    from rlmm.wire.values import WriteAnswer

LOOKUPS_UNTOLD: Final = 100
"""Look-ups in one request while the service has not told how many it takes."""
SIDE_BY_SIDE: Final = 16
"""User partitions about which events of a job are on their way at once."""


class Verbs(CallExecution):
    """
    Questions and writes of a broker, on one event loop.

    Every call ends by *timeout_s*, or the settings' deadline. A question is repeated until then
    while the service cannot be reached, is not ready or too busy; the last error is raised.
    *at_least* are offsets by metadata partition, from writes or `read_token`, that the answer must
    include; *linearizable* asks the log for its end first. An empty answer means that there is
    nothing. Everything else is an error of `rlmm.errors`.
    """

    # --------------------------------------------------------------------------------- writes

    async def add_segment(
        self,
        segment: SegmentMetadata,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        """
        Start a copy: store *segment* in state COPY_SEGMENT_STARTED.

        Return where the event is stored, and its verdict. Raises `EventRejected` where the state
        machine refuses it, `AppendUncertain` where it may be stored and the state did not tell,
        `OutcomeUnknown` where it is stored with an unknown verdict; any other error: it is surely
        not stored. Where the state was read in place of a lost answer, the verdict is `duplicate`
        at an offset where the event is applied. *unassigned* = "store" permits partitions that are
        not this broker's.
        """
        require_event(segment, SegmentMetadata)
        return await self._write(segment, unassigned, timeout_s)

    async def update_segment(
        self,
        update: SegmentUpdate,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        """Store that a segment is copied, being deleted or deleted. As `add_segment`."""
        require_event(update, SegmentUpdate)
        return await self._write(update, unassigned, timeout_s)

    async def put_partition_delete(
        self,
        delete: PartitionDelete,
        *,
        unassigned: Unassigned = "refuse",
        timeout_s: float | None = None,
    ) -> WriteAnswer:
        """Store how far the deletion of a user partition is. As `add_segment`."""
        require_event(delete, PartitionDelete)
        return await self._write(delete, unassigned, timeout_s)

    async def publish_all(
        self, events: Iterable[Event], *, timeout_s: float | None = None
    ) -> list[WriteAnswer | RlmmError]:
        """
        Store *events* of a job; return in their order the answer of each, or its error.

        Events of one user partition are stored one after the other, also after a failure, and those
        of at most `SIDE_BY_SIDE` partitions at once. Each has *timeout_s* from its turn on, and as
        long again where its answer is lost; see `broker_adapter.lost_answers.settled`.
        """
        turns: dict[TopicIdPartition, asyncio.Lock] = defaultdict(asyncio.Lock)
        room = asyncio.Semaphore(SIDE_BY_SIDE)
        outcomes = await asyncio.gather(
            *(
                self._write(event, "refuse", timeout_s, is_job=True, turn=_turn(turns, room, event))
                for event in events
            ),
            return_exceptions=True,
        )
        answers: list[WriteAnswer | RlmmError] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, RlmmError):
                raise outcome
            answers.append(outcome)
        return answers

    # ------------------------------------------------------------------------------ questions

    async def segment_for(
        self, partition: TopicIdPartition, epoch: int, offset: int, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        call = calls.segment_for(partition, epoch, offset)
        return await self._read(call, **options)

    async def segments_for(
        self, lookups: Iterable[Lookup], **options: Unpack[ReadOptions]
    ) -> list[SegmentMetadata | RlmmError | None]:
        """Return each look-up's answer or error in order; large ones take several requests."""
        asked = list(lookups)
        deadline_s = self._deadline_s(options.get("timeout_s"))
        answers: list[SegmentMetadata | RlmmError | None] = []
        size_max = len(asked)
        while len(answers) < len(asked):
            size = min(self._exchange.lookups_max or LOOKUPS_UNTOLD, size_max)
            part = asked[len(answers) : len(answers) + size]
            options["timeout_s"] = self._left_s(deadline_s)
            try:
                answers += await self._read(calls.segments_for(part), **options)
            except InvalidArgument:
                # How large the answers are, or what of the look-ups is wrong, is not known here.
                if len(part) == 1:
                    raise
                size_max = len(part) // 2
        return answers

    async def segment(
        self, segment_id: SegmentId, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        """Return the segment in any state, unless its deletion is finished."""
        call = calls.segment(segment_id)
        return await self._read(call, **options)

    async def highest_offset(
        self, partition: TopicIdPartition, epoch: int, **options: Unpack[ReadOptions]
    ) -> int | None:
        """Return the largest offset of *epoch* that a finished copy reached; it never falls."""
        call = calls.highest_offset(partition, epoch)
        return await self._read(call, **options)

    async def next_segment_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int, **options: Unpack[ReadOptions]
    ) -> SegmentMetadata | None:
        """Return the first finished one of *epoch* with a transaction index from *offset* on."""
        call = calls.next_segment_with_txn_index(partition, epoch, offset)
        return await self._read(call, **options)

    async def remote_log_size(
        self, partition: TopicIdPartition, epoch: int | None = None, **options: Unpack[ReadOptions]
    ) -> int:
        call = calls.remote_log_size(partition, epoch)
        return await self._read(call, **options)

    async def partition_delete(
        self, partition: TopicIdPartition, **options: Unpack[ReadOptions]
    ) -> PartitionDelete | None:
        call = calls.partition_delete(partition)
        return await self._read(call, **options)

    async def list_segments(
        self, partition: TopicIdPartition, **options: Unpack[ReadOptions]
    ) -> AsyncIterator[SegmentMetadata]:
        """
        Yield every segment by rising start offset, each page within *timeout_s*.

        A segment that is there during the whole listing comes once.
        """
        async for segment in self._listed(partition, None, **options):
            yield segment

    async def list_segments_by_epoch(
        self, partition: TopicIdPartition, epoch: int, **options: Unpack[ReadOptions]
    ) -> AsyncIterator[SegmentMetadata]:
        """Yield the segments that list *epoch*. As `list_segments`."""
        async for segment in self._listed(partition, epoch, **options):
            yield segment

    async def page(
        self,
        partition: TopicIdPartition,
        epoch: int | None = None,
        *,
        after: bytes | None = None,
        limit: int | None = None,
        **options: Unpack[ReadOptions],
    ) -> SegmentPage:
        """Return one page of a listing, and the key of the next; `None`: it was the last."""
        size = self._settings.page_size if limit is None else limit
        call = calls.page(partition, epoch, after, size)
        return await self._read(call, **options)

    # ------------------------------------------------------------------------------ readiness

    async def is_ready(self, partition: TopicIdPartition) -> bool:
        """Return whether *partition* can be queried now; an unreachable service is not ready."""
        call = calls.is_ready(partition)
        deadline_s = self._loop.time() + self._settings.ready_timeout_s
        try:
            with self._counting(call.method):
                return await self._exchange.exchange(call, None, deadline_s)
        except RlmmError as error:
            if error.retriable:
                return False
            raise

    async def wait_ready(
        self, partition: TopicIdPartition, *, timeout_s: float | None = None
    ) -> None:
        """Wait until questions about *partition* are answered; raises the errors of a question."""
        call = calls.wait_ready(partition)

        def options(deadline_s: float) -> Mapping[str, object] | None:
            return wait_options_value(self._left_ms(deadline_s))

        await self._answer(call, options, timeout_s)

    # ----------------------------------------------------------------------------- assignment

    def on_partition_leadership_changes(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """
        Add partitions that this broker leads and follows; returns at once.

        Changes are delivered in order, before later questions, until the service accepts them.
        """
        self._exchange.change(leaders, followers)

    def on_stop_partitions(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Take partitions away from this broker. As `on_partition_leadership_changes`."""
        self._exchange.stop(partitions)

    # --------------------------------------------------------------------------------- others

    async def read_token(self, *, timeout_s: float | None = None) -> dict[int, int]:
        """Return the offsets that are applied there now, in the form of *at_least*."""
        return await self._read(calls.read_token(), timeout_s=timeout_s)

    async def status(self, *, timeout_s: float | None = None) -> Mapping[object, object]:
        return await self._read(calls.status(), timeout_s=timeout_s)

    async def ping(self, *, timeout_s: float | None = None) -> None:
        await self._read(calls.ping(), timeout_s=timeout_s)

    def statistics(self) -> ClientStatistics:
        return self._figures.shown(
            is_connected=self._exchange.is_connected, is_assignment_told=self._exchange.is_accepted
        )

    # ------------------------------------------------------------------------------- the end

    async def close(self) -> None:
        """
        Hang up; it may be called again.

        Calls end with `Stopped`, or `AppendUncertain` for an event that was sent.
        """
        await self._exchange.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@asynccontextmanager
async def _turn(
    turns: Mapping[TopicIdPartition, asyncio.Lock], room: asyncio.Semaphore, event: Event
) -> AsyncIterator[None]:
    async with turns[calls.partition_of(event)], room:
        yield
