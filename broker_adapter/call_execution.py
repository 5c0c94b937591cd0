"""
How a call is carried out: deadline, repeats, a look at what became of a lost event, counting.

What answers is somebody else's: a service behind a connection, or a stand-in in memory. Invariant:
an event is stored twice by one call only where the second one equals the first in every field.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from broker_adapter import calls
from broker_adapter.lost_answers import LOOKS_MAX, LostWriteState, fate_of
from broker_adapter.retry_policies import READS, WRITES
from broker_adapter.settings import ClientSettings, require_timeout
from broker_adapter.statistics import OK, ClientCounters
from rlmm.errors import (
    AppendUncertain,
    EventRejected,
    LogUnavailable,
    NotAssigned,
    NotReady,
    OutcomeUnknown,
    RlmmError,
    SidecarUnavailable,
    UnknownPartition,
)
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.wire.options import (
    FreshnessOptions,
    WriteOptions,
    read_options_value,
    write_options_value,
)
from rlmm.wire.values import WriteAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from broker_adapter.calls import Call, Event
    from broker_adapter.retry_policies import RetryPolicy
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.options import Unassigned

A = TypeVar("A")

MARGIN: Final = 0.1
"""Share of the time left by which a service is to answer earlier than the caller gives up: what it
then says is better than silence."""
MARGIN_S_MAX: Final = 1.0
TIMEOUT_MS_UNTOLD: Final = 30_000
"""What is asked for at most while the service has not told how long one request may wait; who has
more time asks again."""


class RequestExchange(Protocol):
    """Who answers one request at a time."""

    @property
    def is_connected(self) -> bool:
        """Whether an answer can come now."""

    @property
    def is_told(self) -> bool:
        """Whether it is known there what this broker has."""

    @property
    def lookups_max(self) -> int | None:
        """Look-ups in one request, where that is known."""

    @property
    def timeout_ms_max(self) -> int | None:
        """Longest time that one request may wait there; 0: any, `None`: it is not known yet."""

    def is_awaited(self, partition: TopicIdPartition) -> bool:
        """Whether *partition* is this broker's, and that may not be known there yet."""

    async def exchange(self, method: str, args: Sequence[object], deadline_s: float) -> object:
        """The result of a request, once; raises its refusal, or what is true without an answer."""

    async def partition_count(self, deadline_s: float) -> int:
        """How many metadata partitions there are."""

    def change(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """This broker leads and follows these, too."""

    def stop(self, partitions: Iterable[TopicIdPartition]) -> None:
        """These are not this broker's any more."""

    async def pause(self, pause_s: float) -> None:
        """Return after so long, or when it is closed."""

    async def close(self) -> None:
        """Refuse everything from now on."""


class CallExecution:
    """Carries out calls on one event loop."""

    def __init__(
        self, exchange: RequestExchange, settings: ClientSettings, figures: ClientCounters
    ) -> None:
        self._exchange = exchange
        self._settings = settings
        self._figures = figures
        self._loop = asyncio.get_running_loop()

    # ------------------------------------------------------------------------------ questions

    async def _read(
        self,
        call: Call[A],
        at_least: Mapping[int, int] | None,
        timeout_s: float | None,
        *,
        linearizable: bool,
    ) -> A:
        def options(deadline_s: float) -> Mapping[str, object] | None:
            if not at_least and not linearizable:
                return None
            left_ms = self._left_ms(deadline_s)
            return read_options_value(FreshnessOptions(at_least, linearizable, left_ms))

        return await self._asked(call, options, timeout_s)

    async def _asked(
        self,
        call: Call[A],
        options: Callable[[float], Mapping[str, object] | None],
        timeout_s: float | None,
    ) -> A:
        """The answer to something that may be asked again, with *options* made for each attempt."""
        deadline_s = self._deadline_s(timeout_s)

        async def attempt() -> A:
            said = options(deadline_s)
            args = call.args if said is None else [*call.args, said]
            try:
                return await self._once(call, args, deadline_s)
            except (NotReady, LogUnavailable) as error:
                heard.append(error)
                raise

        heard: list[RlmmError] = []
        return await self._counted(call.method, self._heard(attempt, heard, deadline_s))

    async def _heard(
        self, attempt: Callable[[], Awaitable[A]], heard: list[RlmmError], deadline_s: float
    ) -> A:
        """
        The answer; where the last attempt had too little time for one, what a service that is still
        there said before is better than silence.
        """
        try:
            return await self._repeated(READS, attempt, deadline_s)
        except SidecarUnavailable as error:
            if heard and self._exchange.is_connected:
                raise heard[-1] from error
            raise

    async def _listed(
        self,
        partition: TopicIdPartition,
        epoch: int | None,
        at_least: Mapping[int, int] | None,
        timeout_s: float | None,
        *,
        linearizable: bool,
    ) -> AsyncIterator[SegmentMetadata]:
        """All segments of a listing; only its first page has to wait."""
        after: bytes | None = None
        while True:
            call = calls.page(partition, epoch, after, self._settings.page_size)
            segments, after = await self._read(call, at_least, timeout_s, linearizable=linearizable)
            for segment in segments:
                yield segment
            if after is None:
                return
            at_least, linearizable = None, False

    # --------------------------------------------------------------------------------- writes

    async def _write(
        self, event: Event, unassigned: Unassigned, timeout_s: float | None
    ) -> WriteAnswer:
        """Store *event*, and hear what became of it."""
        call = calls.write(event)
        deadline_s = self._deadline_s(timeout_s)
        stored = self._stored(call, event, unassigned, deadline_s)
        return await self._counted(call.method, stored)

    async def _stored(
        self, call: Call[WriteAnswer], event: Event, unassigned: Unassigned, deadline_s: float
    ) -> WriteAnswer:
        async def attempt() -> WriteAnswer:
            options = WriteOptions(unassigned, self._left_ms(deadline_s))
            args = [*call.args, write_options_value(options)]
            return await self._once(call, args, deadline_s)

        lost: AppendUncertain | None = None
        for _ in range(LOOKS_MAX):
            try:
                return await self._repeated(WRITES, attempt, deadline_s)
            except AppendUncertain as error:
                lost = error
            except RlmmError as error:
                # The repeat met this; of the event that was sent before nothing is known by it.
                if lost is None or isinstance(error, OutcomeUnknown):
                    raise
                raise _uncertain(lost, error) from error
            if not self._settings.is_repeating:
                raise lost
            try:
                answer = await self._looked_for(event, deadline_s)
            except RlmmError as error:
                raise _uncertain(lost, error) from error
            if answer is not None:
                return answer
        assert lost is not None
        raise lost

    async def _looked_for(self, event: Event, deadline_s: float) -> WriteAnswer | None:
        """What became of an event that was sent; `None`: nothing yet, as far as can be seen."""
        left_s = max(0.001, deadline_s - self._loop.time())
        about: Call[SegmentMetadata | None] | Call[PartitionDelete | None]
        if isinstance(event, PartitionDelete):
            about = calls.partition_delete(event.partition)
        else:
            about = calls.segment(event.id)
        found: SegmentMetadata | PartitionDelete | None = None
        try:
            found = await self._read(about, None, left_s, linearizable=True)
        except UnknownPartition:
            found = None
        fate = fate_of(event, found)
        if fate is LostWriteState.NOT_SEEN:
            return None
        if fate is LostWriteState.PASSED:
            raise EventRejected(f"the state has moved on: {found}")
        if fate is LostWriteState.NOT_KNOWN:
            raise UnknownPartition("nothing is there, and it may be that nothing ever was")
        left_s = max(0.001, deadline_s - self._loop.time())
        token = await self._read(calls.read_token(), None, left_s, linearizable=False)
        partition = calls.partition_of(event)
        count = await self._repeated(READS, partial(self._count, deadline_s), deadline_s)
        place = metadata_partition_for(partition.topic_id, partition.partition, count)
        if place not in token:
            raise NotAssigned(f"metadata partition {place} is not read there any more")
        return WriteAnswer(place, token[place], "duplicate")

    async def _count(self, deadline_s: float) -> int:
        return await self._exchange.partition_count(deadline_s)

    # ----------------------------------------------------------------------------- all of them

    async def _once(self, call: Call[A], args: Sequence[object], deadline_s: float) -> A:
        try:
            value = await self._exchange.exchange(call.method, args, deadline_s)
        except NotAssigned as error:
            # It may only not have been heard yet; then nobody may be sent away.
            if not any(map(self._exchange.is_awaited, call.partitions)):
                raise
            msg = f"{error}; that it was given to this broker is still on its way"
            raise NotReady(
                msg,
                reason="assignment-unknown",
                user_partition=str(call.partitions[0]),
                metadata_partition=error.metadata_partition,
                retry_after_ms=50,
            ) from error
        return call.answer(value)

    async def _repeated(
        self, policy: RetryPolicy, attempt: Callable[[], Awaitable[A]], deadline_s: float
    ) -> A:
        return await policy.run(
            attempt,
            now=self._loop.time,
            deadline_s=deadline_s,
            hook=self._figures.repeated,
            is_repeating=self._settings.is_repeating,
            sleep=self._exchange.pause,
        )

    async def _counted(self, method: str, answer: Awaitable[A]) -> A:
        figures = self._figures
        figures.waiting += 1
        outcome = "cancelled"
        try:
            result = await answer
            outcome = OK
        except RlmmError as error:
            outcome = error.code
            raise
        finally:
            figures.waiting -= 1
            figures.ended(method, outcome)
        return result

    def _deadline_s(self, timeout_s: float | None) -> float:
        chosen_s = self._settings.timeout_s if timeout_s is None else require_timeout(timeout_s)
        return self._loop.time() + chosen_s

    def _left_ms(self, deadline_s: float) -> int:
        """How long a service may take."""
        left_s = deadline_s - self._loop.time()
        left_ms = max(1, int((left_s - min(MARGIN_S_MAX, MARGIN * left_s)) * 1_000))
        most_ms = self._exchange.timeout_ms_max
        return min(left_ms, TIMEOUT_MS_UNTOLD if most_ms is None else most_ms or left_ms)


def _uncertain(lost: AppendUncertain, error: RlmmError) -> AppendUncertain:
    return AppendUncertain(f"{lost}; when it was looked for: {error}")
