"""
Call execution: deadline, repeats, lost answers and counting of one call.

Invariant: one call stores an event twice only where both are equal in every field.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, Unpack

from broker_adapter import calls
from broker_adapter.lost_answers import settled
from broker_adapter.retry_policies import READS, WRITES
from broker_adapter.settings import ClientSettings, require_timeout
from broker_adapter.statistics import OK, ClientCounters
from rlmm.errors import LogUnavailable, NotAssigned, NotReady, RlmmError, SidecarUnavailable
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.wire.options import (
    FreshnessOptions,
    WriteOptions,
    read_options_value,
    write_options_value,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from tenacity import AsyncRetrying

    from broker_adapter.calls import Call, Event
    from broker_adapter.retry_policies import RetryPolicy
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.wire.options import ReadOptions, Unassigned
    from rlmm.wire.values import WriteAnswer

    Options = Mapping[str, object] | None

A = TypeVar("A")

MARGIN: Final = 0.1
"""Share of the time left by which a service answers before the caller gives up."""
MARGIN_S_MAX: Final = 1.0
TIMEOUT_MS_UNTOLD: Final = 30_000
"""Longest wait of one request before the service has named its own."""


class RequestExchange(Protocol):
    """The way of one request to the service."""

    @property
    def is_connected(self) -> bool: ...

    @property
    def is_accepted(self) -> bool:
        """Return whether the service accepted the partitions that this broker leads and follows."""

    @property
    def lookups_max(self) -> int | None: ...

    @property
    def timeout_ms_max(self) -> int | None:
        """Longest time that one request may wait there; 0: any, `None`: not known yet."""

    async def exchange(self, call: Call[A], options: Options, deadline_s: float) -> A:
        """Return the answer to *call*, sent once; raises its refusal, or that there is none."""

    async def partition_count(self, deadline_s: float) -> int:
        """Return the number of metadata partitions."""

    def change(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """Add partitions that this broker leads and follows."""

    def stop(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Take partitions away from this broker."""

    async def pause(self, pause_s: float) -> None:
        """Return after *pause_s*, or when it is closed."""

    async def close(self) -> None:
        """Refuse everything from now on."""


class CallExecution:
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
        *,
        at_least: Mapping[int, int] | None = None,
        linearizable: bool = False,
        timeout_s: float | None = None,
    ) -> A:
        def options(deadline_s: float) -> Options:
            if not at_least and not linearizable:
                return None
            left_ms = self._left_ms(deadline_s)
            return read_options_value(FreshnessOptions(at_least, linearizable, left_ms))

        return await self._answer(call, options, timeout_s)

    async def _answer(
        self, call: Call[A], options: Callable[[float], Options], timeout_s: float | None
    ) -> A:
        deadline_s = self._deadline_s(timeout_s)
        refusal: RlmmError | None = None

        async def attempt() -> A:
            nonlocal refusal
            try:
                return await self._exchange.exchange(call, options(deadline_s), deadline_s)
            except (NotReady, LogUnavailable) as error:
                refusal = error
                raise

        with self._counting(call.method):
            try:
                return await self._attempts(READS, deadline_s)(attempt)
            except SidecarUnavailable as error:
                # The last attempt may have had too little time for an answer: the refusal of a
                # service that is still there says more.
                if refusal is not None and self._exchange.is_connected:
                    raise refusal from error
                raise

    async def _listed(
        self, partition: TopicIdPartition, epoch: int | None, **options: Unpack[ReadOptions]
    ) -> AsyncIterator[SegmentMetadata]:
        """Yield all segments of a listing; only its first page has to wait."""
        after: bytes | None = None
        while True:
            call = calls.page(partition, epoch, after, self._settings.page_size)
            segments, after = await self._read(call, **options)
            for segment in segments:
                yield segment
            if after is None:
                return
            options = {"timeout_s": options.get("timeout_s")}

    # --------------------------------------------------------------------------------- writes

    async def _write(
        self,
        event: Event,
        unassigned: Unassigned,
        timeout_s: float | None,
        *,
        is_job: bool = False,
        turn: AbstractAsyncContextManager[None] | None = None,
    ) -> WriteAnswer:
        """Store *event* when its *turn* comes; see `lost_answers.settled`."""
        call = calls.write(event)
        async with turn or nullcontext():
            deadline_s = self._deadline_s(timeout_s)
            look_until_s = 2 * deadline_s - self._loop.time() if is_job else deadline_s
            with self._counting(call.method):
                return await settled(
                    event,
                    partial(self._store, call, unassigned, deadline_s),
                    partial(self._look, event, look_until_s),
                    partial(self._position, calls.partition_of(event), look_until_s),
                    is_job=is_job,
                    is_repeating=self._settings.is_repeating,
                )

    async def _store(
        self, call: Call[WriteAnswer], unassigned: Unassigned, deadline_s: float
    ) -> WriteAnswer:
        async for attempt in self._attempts(WRITES, deadline_s):
            with attempt:
                options = write_options_value(WriteOptions(unassigned, self._left_ms(deadline_s)))
                return await self._exchange.exchange(call, options, deadline_s)
        raise AssertionError(call.method)  # the last attempt has returned or raised

    async def _look(
        self, event: Event, deadline_s: float, at_least: Mapping[int, int]
    ) -> SegmentMetadata | PartitionDelete | None:
        call: Call[SegmentMetadata | None] | Call[PartitionDelete | None]
        if isinstance(event, PartitionDelete):
            call = calls.partition_delete(event.partition)
        else:
            call = calls.segment(event.id)
        return await self._read(
            call, at_least=at_least, linearizable=True, timeout_s=self._left_s(deadline_s)
        )

    async def _position(self, partition: TopicIdPartition, deadline_s: float) -> tuple[int, int]:
        token = await self._read(calls.read_token(), timeout_s=self._left_s(deadline_s))
        ask = partial(self._exchange.partition_count, deadline_s)
        count: int = await self._attempts(READS, deadline_s)(ask)
        place = metadata_partition_for(partition.topic_id, partition.partition, count)
        if place not in token:
            raise NotAssigned(f"metadata partition {place} is not read there any more")
        return place, token[place]

    # ----------------------------------------------------------------------------- all of them

    def _attempts(self, policy: RetryPolicy, deadline_s: float) -> AsyncRetrying:
        return policy.attempts(
            now=self._loop.time,
            deadline_s=deadline_s,
            hook=self._figures.repeated,
            is_repeating=self._settings.is_repeating,
            sleep=self._exchange.pause,
        )

    @contextmanager
    def _counting(self, method: str) -> Iterator[None]:
        figures = self._figures
        figures.waiting += 1
        outcome = "cancelled"
        try:
            yield
            outcome = OK
        except RlmmError as error:
            outcome = error.code
            raise
        finally:
            figures.waiting -= 1
            figures.ended(method, outcome)

    def _deadline_s(self, timeout_s: float | None) -> float:
        chosen_s = self._settings.timeout_s if timeout_s is None else require_timeout(timeout_s)
        return self._loop.time() + chosen_s

    def _left_s(self, deadline_s: float) -> float:
        return max(0.001, deadline_s - self._loop.time())

    def _left_ms(self, deadline_s: float) -> int:
        left_s = deadline_s - self._loop.time()
        left_ms = max(1, int((left_s - min(MARGIN_S_MAX, MARGIN * left_s)) * 1_000))
        most_ms = self._exchange.timeout_ms_max
        return min(left_ms, TIMEOUT_MS_UNTOLD if most_ms is None else most_ms or left_ms)
