"""
The `kafka` log: the whole protocol on the metadata topic of a Kafka cluster.

The first call binds it to one topic id, and `identity` anew. While the topic has another id, all
other calls raise `LogRecreated`. The first call connects, and no call outlives its deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.doorbell import Doorbell
from rlmm.errors import AppendRefused, LogError, LogNotPermitted, LogRecreated, LogUnavailable
from rlmm.kafka_client.admin.tiered_topics import tiered_partitions_of, topics_not_copied
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.connections.cluster_view import ClusterConnection
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.kafka_client.connections.task_set import TaskSet
from rlmm.kafka_client.fetch.fetcher import Fetcher
from rlmm.kafka_client.fetch.history_reads import HistoryReads
from rlmm.kafka_client.fetch.partition_reads import PendingRead
from rlmm.kafka_client.offsets.epoch_end import epoch_end_of
from rlmm.kafka_client.offsets.log_bounds import BoundsQuestion
from rlmm.kafka_client.produce.producer import IdempotentProducer
from rlmm.kafka_messages.error_codes import DENIED
from rlmm.log.kafka.metadata_topic import (
    TopicCreation,
    another_than,
    find_dangers,
    is_absent,
    is_never_compacted,
    nothing,
    refuse_empty,
    require_cluster,
    require_topic,
)
from rlmm.log.protocol import LogIdentity, LogStatistics
from rlmm.log.request_checks import require_partition, require_position, require_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from rlmm.kafka_client.connections.cluster_view import ClusterView
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.log.kafka.metadata_topic import Remember, TopicFinding
    from rlmm.log.protocol import LogBounds
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.records.record_set import RecordSet
    from rlmm.records.records import Record

_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class KafkaLogStatistics(LogStatistics):
    """Counts since the log was opened, and numbers of waiting calls."""

    is_connected: bool
    """Whether the cluster answered when it was asked last."""
    connect_attempts: int
    connect_failures: int
    fetch_requests: int
    fetched_bytes: int
    fetch_deaths: int
    """How often a fetch had to be started anew because it ended as it never should."""
    pending_reads: int
    pending_appends: int
    pending_append_bytes: int


class KafkaLog:
    """A `MetadataLog` on a topic of a Kafka cluster."""

    def __init__(
        self, settings: KafkaSettings, dialer: Dialer, remember: Remember = nothing
    ) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._tasks = TaskSet()
        self._cluster = ClusterConnection(settings, dialer, self._tasks, loop.time)
        self._cluster.on_change = self._changed
        self.wake = self._cluster.wake
        self._sources = HistoryReads(
            partial(Fetcher, settings, self._cluster, self._tasks, self._ask_bounds, loop.time)
        )
        self._appender: IdempotentProducer | None = None
        if not settings.is_observer:
            self._appender = IdempotentProducer(
                settings, self._cluster, self._tasks, SYSTEM_CLOCK.now_ms
            )
        self._bound: LogIdentity | None = None
        self.is_gapless = False
        self._creation = TopicCreation(settings, self._cluster, loop.time)
        self._remember = remember
        self._limits: set[asyncio.Timeout] = set()
        self._bell = Doorbell()
        self._is_closed = False

    @classmethod
    async def open(cls, settings: KafkaSettings, remember: Remember = nothing) -> KafkaLog:
        """Make a log; nothing connects yet. `ConfigError` for a file that cannot be used."""
        return cls(settings, await Dialer.prepare(settings), remember)

    def statistics(self) -> KafkaLogStatistics:
        appender = self._appender
        requests, fetched_bytes, deaths = self._sources.counts()
        return KafkaLogStatistics(
            is_connected=self._cluster.view is not None and self._cluster.trouble is None,
            connect_attempts=self._cluster.attempts.made,
            connect_failures=self._cluster.attempts.failed,
            fetch_requests=requests,
            fetched_bytes=fetched_bytes,
            fetch_deaths=deaths,
            pending_reads=sum(one.pending for one in self._sources.all()),
            pending_appends=0 if appender is None else appender.pending,
            pending_append_bytes=0 if appender is None else appender.pending_bytes,
        )

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """
        Ask for the identity and bind this log to it.

        Any first call creates the topic if configured so, if the topic surely does not exist, and
        if no earlier topic is remembered; with one remembered, an empty topic is refused.
        """
        async with self._within("the topic", timeout_s):
            found = await self._identify(await self._cluster.fresh_view())
        name = self._settings.topic.name
        await refuse_empty(found, name, self._remember, self.bounds, timeout_s)
        return found

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        question = None
        try:
            async with self._limit(timeout_s):
                bound = await self._bound_now()
                self._cluster.refresh()
                for partition in partitions:
                    require_partition(partition, bound.partition_count)
                question = self._question(bound, partitions)
                await question.ask()
        except TimeoutError:
            if self._is_closed:
                raise _closed("bounds") from None
            if question is None:
                late = self._late("bounds", timeout_s)
                return {partition: _copy(late, partition) for partition in partitions}
        except LogError as error:
            if self._is_closed:
                raise
            return {partition: _copy(error, partition) for partition in partitions}
        return question.answers

    async def read_aside(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        return await self.read(
            partition, position, timeout_s=timeout_s, bytes_max=bytes_max, is_aside=True
        )

    async def read(
        self,
        partition: int,
        position: int,
        *,
        timeout_s: float,
        bytes_max: int = 1 << 20,
        is_aside: bool = False,
    ) -> RecordSet | None:
        """Return record sets as the leader has them, compressed ones as they are."""
        require_position(position, bytes_max)
        source, read = self._sources.main, None
        try:
            async with self._limit(timeout_s):
                bound = await self._bound_now()
                require_partition(partition, bound.partition_count)
                answer = asyncio.get_running_loop().create_future()
                if is_aside:
                    source = self._sources.aside(bound.topic_id)
                read = PendingRead(partition, position, bytes_max, answer)
                return await source.wait(read)
        except TimeoutError:
            if self._is_closed:
                raise _closed(f"partition {partition}") from None
            if read is None:
                raise self._late(f"partition {partition}", timeout_s) from None
            silence = source.silence(read)
            if silence is not None:
                raise silence from None
            return None
        finally:
            if is_aside:
                self._sources.leave(source)

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int]:
        try:
            async with self._limit(timeout_s):
                bound = await self._bound_now()
                require_partition(partition, bound.partition_count)
                topic = self._settings.topic.name
                return await epoch_end_of(self._cluster, topic, partition, leader_epoch)
        except TimeoutError:
            raise self._late(f"the leader epochs of partition {partition}", timeout_s) from None

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        """Store one event in all replicas in sync, and return its offset."""
        require_value(value)
        return await self._append(partition, value, None, timeout_s)

    async def append_record(self, partition: int, record: Record, *, timeout_s: float) -> int:
        return await self._append(partition, record.value or b"", record, timeout_s)

    async def _append(
        self, partition: int, value: bytes, record: Record | None, timeout_s: float
    ) -> int:
        appender = self._appender
        if appender is None:
            msg = f"partition {partition}: an observer has no producer, nothing is written"
            raise AppendRefused(msg)
        lane = append = None
        try:
            async with self._limit(timeout_s):
                bound = await self._bound_now()
                require_partition(partition, bound.partition_count)
                lane, append = appender.put(partition, value, record)
                return await append.offset
        except TimeoutError:
            if self._is_closed and (append is None or not append.is_sent):
                raise _closed(f"partition {partition}") from None
            if lane is None or append is None:
                late = self._late(f"partition {partition}", timeout_s)
                is_final = isinstance(late, LogNotPermitted)
                raise (late if is_final else AppendRefused(str(late))) from None
            raise lane.late(append, timeout_s) from None
        finally:
            if append is not None:
                appender.release(append)

    async def learn_compaction(self) -> None:
        self.is_gapless = await is_never_compacted(self._settings, self._cluster)

    async def dangers(self, *, timeout_s: float) -> list[TopicFinding]:
        """Report the topic's settings that endanger the metadata; nothing is altered."""
        async with self._within("the topic's settings", timeout_s):
            view = await self._cluster.fresh_view()
            topic = require_topic(self._settings.topic, view)
            return await find_dangers(self._settings, self._cluster, topic)

    async def tiered_partitions_of(
        self, broker_id: int, *, timeout_s: float
    ) -> frozenset[TopicIdPartition]:
        async with self._within(f"the partitions of broker {broker_id}", timeout_s):
            connection = await self._cluster.short_questions()
            return await tiered_partitions_of(connection, broker_id, self._settings.topic.name)

    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        async with self._within("which topics are not copied", timeout_s):
            return await topics_not_copied(await self._cluster.short_questions())

    async def close(self) -> None:
        """End all calls, all tasks and all connections. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        now = asyncio.get_running_loop().time()
        for limit in list(self._limits):
            if not limit.expired():  # else it is about to end anyway, and cannot be moved
                limit.reschedule(now)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while self._limits:
                    await self._bell.wait()
        self._sources.close()
        await self._tasks.close()
        await self._cluster.close()

    @contextlib.asynccontextmanager
    async def _limit(self, timeout_s: float) -> AsyncIterator[None]:
        if self._is_closed:
            raise _closed("the call")
        async with asyncio.timeout(timeout_s) as limit:
            self._limits.add(limit)
            try:
                yield
            finally:
                self._limits.discard(limit)
                self._bell.ring()

    @contextlib.asynccontextmanager
    async def _within(self, what: str, timeout_s: float) -> AsyncIterator[None]:
        try:
            async with self._limit(timeout_s):
                yield
        except TimeoutError:
            raise self._late(what, timeout_s) from None

    def _late(self, what: str, timeout_s: float) -> LogError:
        if self._is_closed:
            return _closed(what)
        view = self._cluster.view
        why: object = self._cluster.trouble
        if why is None and view is not None and view.topic is None:
            why = self._creation.trouble or view.without_leader(0)
        if why is None:
            servers = ", ".join(self._settings.bootstrap_servers)
            why = (
                f"no broker has answered yet: is {servers} (bootstrap.servers) right and reachable?"
            )
        kind = LogNotPermitted if isinstance(why, LogNotPermitted) else LogUnavailable
        return kind(f"{what}: nothing in {timeout_s:g} s: {why}")

    async def _identify(self, view: ClusterView) -> LogIdentity:
        """Bind to the topic of *view*, once it exists or surely does not."""
        if await self._remember(view.cluster_id):
            self._creation.saw(view)
        while view.topic is None:
            require_cluster(self._settings, view)
            if is_absent(view) and self._settings.topic.is_created:
                await self._creation.attempt(view)
            elif is_absent(view) or view.topic_code in DENIED:
                break
            view = await self._cluster.fresh_view()
        return self._bind(view)

    def _bind(self, view: ClusterView) -> LogIdentity:
        """Bind to the topic of *view*; calls on another topic ended when the view came."""
        topic = self._creation.require(view)
        found = LogIdentity(view.cluster_id, topic.topic_id, len(topic.partitions))
        self._bound = found
        self._sources.main.bind(found.topic_id)
        if self._appender is not None:
            self._appender.bind(found.topic_id)
        return found

    async def _bound_now(self) -> LogIdentity:
        """Return the bound identity; raises when the topic of that name has another id."""
        view = await self._cluster.view_now()
        if self._bound is None:
            return await self._identify(view)
        error = self._recreated(view)
        if error is not None:
            raise error
        return self._bound

    def _recreated(self, view: ClusterView) -> LogRecreated | None:
        return another_than(self._bound, view, self._settings.topic.name)

    def _changed(self) -> None:
        view = self._cluster.view
        if self._is_closed or view is None:
            return
        error: LogError | None = self._recreated(view)
        if isinstance(self._cluster.trouble, LogNotPermitted):
            error = self._cluster.trouble
        elif view.topic_code in DENIED:
            error = error_for("the topic", view.topic_code, "DESCRIBE the topic")
        if error is not None:
            self._fail(error)
        for source in self._sources.all():
            source.look_again()

    def _fail(self, error: LogError) -> None:
        for source in self._sources.all():
            source.fail(error)
        if self._appender is not None:
            self._appender.fail(error)

    def _question(self, bound: LogIdentity, partitions: Collection[int]) -> BoundsQuestion:
        topic = self._settings.topic.name
        return BoundsQuestion(self._cluster, self._tasks, topic, bound.topic_id, partitions)

    async def _ask_bounds(self, partition: int) -> LogBounds | LogError:
        assert self._bound is not None
        question = self._question(self._bound, [partition])
        await question.ask()
        return question.answers[partition]


def _copy(error: LogError, partition: int) -> LogError:
    return type(error)(f"partition {partition}: {error}")


def _closed(what: str) -> LogUnavailable:
    return LogUnavailable(f"{what}: the log is closed")
