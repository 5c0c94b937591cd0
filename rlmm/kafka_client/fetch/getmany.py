"""
The fallback fetch: aiokafka's own consumer, its records put back into record sets.

For versions of the library that the raw fetch was not written for. What is lost on the way: where
the batches were, who produced them, their compression and leader epochs, control records and the
records of compaction holes (the position passes them all the same); CRCs are those of new batches.
It is slower several times over, takes a connection or two for each partition that is read, and
looks partitions up by name: on a cluster that creates topics by itself, the library may bring a
deleted topic back.

The consumer's background task can die without a word, and then delivers nothing for ever. So
silence is never believed: it is compared with freshly asked bounds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import aiokafka
from aiokafka import TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    CorruptRecordException,
    KafkaError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogDamaged, LogError, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.connections.task_set import report_death
from rlmm.kafka_client.fetch.getmany_consumer import STOP_S, PartitionConsumer
from rlmm.kafka_client.fetch.partition_reads import answer, truncated
from rlmm.kafka_client.produce.partition_appends import BATCH_BYTES, RECORD_BYTES
from rlmm.kafka_client.settings import FetchPath
from rlmm.log.protocol import LogBounds
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import build_batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from aiokafka import ConsumerRecord

    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.fetch.partition_reads import PendingRead
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metadata.ids import Uuid

PINNED = "0.14."
"""The minor version of aiokafka that the raw fetch was written against."""

_log = logging.getLogger("rlmm.log.kafka.getmany")

_CHECK_S = 1.0
"""How long nothing may come before the bounds are asked."""
_FIRST_WAIT_MS = 50
"""How long to wait where it is not known yet that the consumer works."""
_FETCH_BYTES_MAX = 128 * 1024 * 1024


def uses_getmany(path: FetchPath) -> bool:
    """Whether records are fetched here: asked for, or for want of the pinned version."""
    if path is not FetchPath.AUTO or aiokafka.__version__.startswith(PINNED):
        return path is FetchPath.GETMANY
    _log.warning(
        "aiokafka is %s, the raw fetch was written for %sx: falling back to its consumer",
        aiokafka.__version__,
        PINNED,
    )
    return True


class GetmanyFetcher:
    """Answers reads of one topic as `fetch.Fetcher` does, through consumers of the library."""

    def __init__(
        self,
        settings: KafkaSettings,
        security: Mapping[str, object],
        crew: TaskSet,
        ask_bounds: Callable[[int], Awaitable[LogBounds | LogError]],
        now: Callable[[], float],
    ) -> None:
        self.requests = 0
        self.bytes = 0
        self.deaths = 0
        self.pending = 0
        self._topic = settings.topic.name
        self._wait_ms = settings.fetch_max_wait_ms
        self._crew = crew
        self._ask_bounds = ask_bounds
        self._now = now
        self._reads: set[PendingRead] = set()
        self._followers: dict[int, PartitionConsumer] = {}
        self._options: dict[str, object] = {
            "bootstrap_servers": list(settings.bootstrap_servers),
            "client_id": settings.client_id("consumer"),
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",  # else it would jump where it must raise
            "request_timeout_ms": settings.request_timeout_ms,
            "connections_max_idle_ms": settings.connections_max_idle_ms,
            "fetch_max_wait_ms": settings.fetch_max_wait_ms,
            "fetch_max_bytes": settings.fetch_max_bytes,
            **security,
        }

    def bind(self, topic_id: Uuid) -> None:
        """Belong to the topic of this id: *ask_bounds* knows it, and notices another."""

    def fail(self, error: LogError) -> None:
        """End every read that waits with *error*."""
        for read in self._reads:
            answer(read, type(error)(str(error)))

    def look_again(self) -> None:
        """The library follows the leaders by itself."""

    def silence(self, read: PendingRead) -> LogUnavailable | None:
        """Why *read* had no answer when its time was up; None when there was nothing to answer."""
        follower = self._followers.get(read.partition)
        why: object = "it was not its turn" if follower is None else follower.trouble
        if why is None and follower is not None:
            is_unheard = self._now() - follower.asked_since > _CHECK_S
            why = "its leader does not answer" if is_unheard else None
        if read.is_answered or why is None:
            return None
        return LogUnavailable(f"partition {read.partition} at offset {read.position}: {why}")

    async def wait(self, read: PendingRead) -> RecordSet:
        """Wait for the answer of *read*; if this is cancelled, nothing of it is left."""
        self._reads.add(read)
        self.pending += 1
        what = f"getmany of partition {read.partition}"
        work = self._crew.start(self._serve(read), what, lambda done: self._ended(read, done, what))
        try:
            return await read.answer
        finally:
            work.cancel()
            self.pending -= 1
            self._reads.discard(read)
            if read.answer.done() and not read.answer.cancelled():
                read.answer.exception()  # it is told, or nobody wants to know

    def _ended(self, read: PendingRead, done: asyncio.Task[None], what: str) -> None:
        if not done.cancelled() and done.exception() is not None:
            self.deaths += 1
            answer(read, LogUnavailable(report_death(done, what)))

    async def _serve(self, read: PendingRead) -> None:
        """Ask until there is an answer. Who reads the same partition takes turns."""
        if read.partition not in self._followers:
            partition = TopicPartition(self._topic, read.partition)
            self._followers[read.partition] = PartitionConsumer(
                partition, self._options, self._crew
            )
        follower = self._followers[read.partition]
        backoff = Backoff(RETRY, self._now)
        while not read.answer.done():
            try:
                if not follower.is_started:
                    await self._require_leader(follower, read)
                async with follower.turn:
                    found = None if read.answer.done() else await self._turn(follower, read)
            except LogUnavailable as error:
                follower.trouble = error
                await self._restart(follower)
                await asyncio.sleep(backoff.failed())
                continue
            if found is not None:
                answer(read, found)

    async def _require_leader(self, follower: PartitionConsumer, read: PendingRead) -> None:
        """
        Wait until the leader answers, before a consumer is started.

        The library dials at once and for each partition anew; here the pauses are shared.
        """
        bounds = await self._bounds(follower, read)
        if isinstance(bounds, LogUnavailable):
            raise bounds
        if isinstance(bounds, LogError):
            answer(read, bounds)

    async def _bounds(self, follower: PartitionConsumer, read: PendingRead) -> LogBounds | LogError:
        """Ask for the bounds; that it was in vain is known although this may be cancelled."""
        follower.asked_since = min(follower.asked_since, self._now())
        bounds = await self._ask_bounds(read.partition)
        follower.asked_since = float("inf")
        return bounds

    async def _turn(
        self, follower: PartitionConsumer, read: PendingRead
    ) -> RecordSet | LogError | None:
        """One call of the library; None when it must be called again."""
        self.requests += 1
        try:
            wait_ms = self._wait_ms if follower.trouble is None else _FIRST_WAIT_MS
            records, next_offset = await follower.take(read.position, wait_ms)
        except OffsetOutOfRangeError:
            return await self._out_of_range(follower, read)
        except TopicAuthorizationFailedError as error:
            return LogNotPermitted(f"partition {read.partition}: {error}: grant READ on the topic")
        except CorruptRecordException as error:
            await follower.stop()
            return LogDamaged(f"partition {read.partition} at offset {read.position}: {error}")
        except RecordTooLargeError as error:
            return await self._grow(follower, read, error)
        # Whatever else the library of another version may raise belongs to its own consumer.
        except (KafkaError, ConsumerStoppedError, OSError, AssertionError) as error:
            raise LogUnavailable(f"partition {read.partition}: {error!r}") from error
        if next_offset > read.position:
            follower.is_suspect = False
            follower.trouble = None
            return await self._checked(read, records, next_offset)
        if not follower.is_suspect:
            follower.trouble = None
        await self._check_silence(follower, read)
        return None

    async def _checked(
        self, read: PendingRead, records: Sequence[ConsumerRecord], next_offset: int
    ) -> RecordSet | LogError:
        """Make a record set, once it is sure of which topic the records are."""
        bounds = await self._ask_bounds(read.partition)
        if isinstance(bounds, LogError):
            return bounds
        fitting = list(_fitting(records, read.bytes_max))
        data = encode(fitting)
        self.bytes += len(data)
        if len(fitting) < len(records):
            next_offset = fitting[-1].offset + 1
        return RecordSet(read.partition, data, next_offset)

    async def _check_silence(self, follower: PartitionConsumer, read: PendingRead) -> None:
        """Compare silence with the bounds; `LogUnavailable` when it is not to be explained."""
        if self._now() - follower.checked_at < _CHECK_S:
            return
        left_s = follower.asked_since + _CHECK_S - self._now()
        try:
            async with asyncio.timeout(max(min(left_s, _CHECK_S), _FIRST_WAIT_MS / 1000)):
                bounds = await self._bounds(follower, read)
        except TimeoutError:  # left alone, the consumer would dial what is away without a pause
            msg = "its leader does not answer"
            raise LogUnavailable(msg) from None
        follower.checked_at = self._now()
        if isinstance(bounds, LogUnavailable):
            follower.trouble = bounds
            return
        if isinstance(bounds, LogError):
            answer(read, bounds)
            return
        was_suspect = follower.is_suspect
        follower.is_suspect = bounds.next_offset > read.position
        read.is_answered |= not follower.is_suspect
        if follower.is_suspect:
            msg = f"the consumer brings nothing, though there is {bounds}"
            follower.trouble = LogUnavailable(msg)
            if was_suspect:
                self.deaths += 1
                follower.is_suspect = False
                raise follower.trouble

    async def _out_of_range(
        self, follower: PartitionConsumer, read: PendingRead
    ) -> LogError | None:
        await follower.stop()
        bounds = await self._ask_bounds(read.partition)
        if isinstance(bounds, LogBounds):
            return truncated(read, bounds.log_start, bounds.next_offset, is_diverging=False)
        return bounds

    async def _grow(
        self, follower: PartitionConsumer, read: PendingRead, error: Exception
    ) -> LogError | None:
        """Ask for more bytes: the library would pass over the record."""
        await follower.stop()
        if follower.fetch_bytes >= _FETCH_BYTES_MAX:
            return LogDamaged(f"partition {read.partition} at offset {read.position}: {error}")
        follower.fetch_bytes *= 4
        return None

    async def _restart(self, follower: PartitionConsumer) -> None:
        """Stop a consumer that is of no use; stopping is not waited for longer than a while."""
        task = self._crew.start(follower.stop(), "restart a consumer")
        await asyncio.wait({task}, timeout=2 * STOP_S)

    async def close(self) -> None:
        await asyncio.gather(*(follower.stop() for follower in self._followers.values()))


def _fitting(records: Sequence[ConsumerRecord], bytes_max: int) -> Iterator[ConsumerRecord]:
    """As many of *records* as make a batch of *bytes_max*, but one at least."""
    size = BATCH_BYTES
    for number, record in enumerate(records):
        size += RECORD_BYTES + sum(
            len(part)
            for part in (
                record.key or b"",
                record.value or b"",
                *(part or b"" for _, part in record.headers),
                *(name.encode() for name, _ in record.headers),
            )
        )
        if number and size > bytes_max:
            return
        yield record


def encode(records: Sequence[ConsumerRecord]) -> bytes:
    """One batch of *records* at their own offsets; nothing for none."""
    if not records:
        return b""
    return build_batch(
        [
            Record(
                record.offset, max(record.timestamp, -1), record.key, record.value, record.headers
            )
            for record in records
        ],
        records[0].offset,
    )
