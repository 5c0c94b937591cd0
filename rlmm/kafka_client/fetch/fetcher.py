"""
The fetcher: gathers waiting reads by leader into fetch requests, and answers them with record sets.

A request holds one read of each waiting partition. Reads that are not known to be at the high
watermark go at once; the others share several long polls, so no partition waits for another. A read
belongs to its leader until the answer or a new leader. When a task dies, its reads end with
`LogUnavailable`, and the next read starts another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from rlmm.errors import LogError, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.connections.task_set import report_death
from rlmm.kafka_client.fetch.broker_fetches import BrokerFetches
from rlmm.kafka_client.fetch.partition_reads import (
    FetchAgain,
    FetchOutOfRange,
    FetchPosition,
    PendingRead,
    answer,
    truncated,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import FetchRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.kafka_client.connections.broker_connections import Node
    from rlmm.kafka_client.connections.cluster_view import ClusterConnection
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.fetch import FetchAnswer, FetchedPartition
    from rlmm.log.protocol import LogBounds
    from rlmm.metadata.ids import Uuid
    from rlmm.records.record_set import RecordSet

_LARGE_BYTES = 128 * 1024
"""Looking through more than this keeps the loop so long that others get their turn."""
_SILENCE_S = 2.0
"""How much later than asked for an answer may come before its broker counts as silent."""


class Fetcher:
    """Answers reads of one topic; bound to its id, and void for another."""

    def __init__(
        self,
        settings: KafkaSettings,
        cluster: ClusterConnection,
        tasks: TaskSet,
        ask_bounds: Callable[[int], Awaitable[LogBounds | LogError]],
        now: Callable[[], float],
    ) -> None:
        self.requests = 0
        self.bytes = 0
        self.deaths = 0
        self._settings = settings
        self._cluster = cluster
        self._tasks = tasks
        self._ask_bounds = ask_bounds
        self._now = now
        self._poll_s = settings.fetch_max_wait_ms / 1000
        self._patience_s = self._poll_s + _SILENCE_S
        self.topic_id: Uuid | None = None
        self._waiting: dict[int, deque[PendingRead]] = {}
        self._covered: dict[int, tuple[PendingRead, int]] = {}
        self._fetch_positions: dict[int, FetchPosition] = {}
        self._leader_fetches: dict[int, BrokerFetches] = {}

    @property
    def pending(self) -> int:
        return sum(map(len, self._waiting.values()))

    def bind(self, topic_id: Uuid) -> None:
        """Bind to the topic of this id; the state of any other topic is forgotten."""
        if topic_id != self.topic_id:
            self.topic_id = topic_id
            self._fetch_positions.clear()

    def fail(self, error: LogError) -> None:
        """End every read that waits with *error*."""
        for queue in self._waiting.values():
            for read in queue:
                answer(read, type(error)(str(error)))

    async def wait(self, read: PendingRead) -> RecordSet:
        """Wait for the answer of *read*; if this is cancelled, nothing of it is left."""
        queue = self._waiting.setdefault(read.partition, deque())
        queue.append(read)
        try:
            self.place(read.partition)
            return await read.answer
        finally:
            if read.answer.done() and not read.answer.cancelled():
                read.answer.exception()  # it is told, or nobody wants to know
            queue.remove(read)
            if not queue:
                del self._waiting[read.partition]

    def silence(self, read: PendingRead) -> LogError | None:
        """Return why *read* had no answer in its time; None when there was nothing to answer."""
        fetch_position = self.fetch_position(read.partition)
        if read.is_answered or fetch_position.heard_at + self._patience_s >= self._now():
            return None
        self._cluster.wish()
        why = fetch_position.trouble or self._cluster.trouble or "its leader has not answered"
        kind = LogNotPermitted if isinstance(why, LogNotPermitted) else LogUnavailable
        return kind(f"partition {read.partition} at offset {read.position}: {why}")

    def look_again(self) -> None:
        view = self._cluster.view
        for partition in list(self._waiting):
            fetch_position = self.fetch_position(partition)
            led_by = None
            if view is not None:
                led_by = view.leader_of(partition), view.epoch_of(partition)
            if led_by != fetch_position.led_by:
                fetch_position.led_by = led_by
                fetch_position.backoff.succeeded()
            self.place(partition)

    def fetch_position(self, partition: int) -> FetchPosition:
        if partition not in self._fetch_positions:
            self._fetch_positions[partition] = FetchPosition(self._now)
        return self._fetch_positions[partition]

    def next_read(self, partition: int, leader: int | None) -> PendingRead | None:
        """Return the read of *partition* to ask *leader* for; None when one is under way."""
        _, covering = self._covered.get(partition, (None, None))
        if covering is not None and covering == leader:
            return None
        queue = self._waiting.get(partition, ())
        return next((read for read in queue if not read.answer.done()), None)

    def place(self, partition: int) -> None:
        """Have the leader of the partition asked, unless its pause has not ended."""
        if self.fetch_position(partition).backoff.remaining_s == 0:
            self._place_now(partition)

    def _place_now(self, partition: int) -> None:
        for fetches in self._leader_fetches.values():
            fetches.ready.pop(partition, None)
        view = self._cluster.view
        leader = view.leader_of(partition) if view is not None else None
        if self.next_read(partition, leader) is None:
            return
        if leader is None:
            why = "no broker has answered" if view is None else view.without_leader(partition)
            error = self._cluster.trouble or LogUnavailable(why)
            self.try_later(partition, error, is_stale=True)
            return
        if leader not in self._leader_fetches:
            turns = LeaderReads(self, self._cluster, leader, self._settings.fetch_max_bytes)
            self._leader_fetches[leader] = BrokerFetches(
                f"broker {leader}", turns, self._tasks, poll_s=self._poll_s, late_s=self._patience_s
            )
        self._leader_fetches[leader].put(partition)

    def try_later(self, partition: int, error: LogError, *, is_stale: bool) -> None:
        """Ask again after a pause; when the leader may be another by now, find that out first."""
        if is_stale:
            self._cluster.wish()
        fetch_position = self.fetch_position(partition)
        if fetch_position.timer is not None:
            fetch_position.timer.cancel()  # a partition has one next attempt
        pause_s = fetch_position.failed(error)
        fetch_position.timer = asyncio.get_running_loop().call_later(
            pause_s, self._place_now, partition
        )

    def cover(self, read: PendingRead, leader: int) -> None:
        """Note that *leader* is asked for *read*."""
        self._covered[read.partition] = read, leader

    def uncover(self, read: PendingRead, leader: int) -> None:
        """Note that *leader* has answered, or never will."""
        if self._covered.get(read.partition) == (read, leader):
            del self._covered[read.partition]

    def settle(
        self, read: PendingRead, leader: int, fetched: FetchedPartition, *, is_first: bool
    ) -> bool:
        """Take the answer of *leader* for one read; true when the reader got something."""
        self.bytes += len(fetched.data)
        judged = self.fetch_position(read.partition).judge(read, fetched, is_first=is_first)
        if isinstance(judged, FetchOutOfRange):
            check = self._check_bounds(read, is_diverging=judged.is_diverging)
            self._tasks.start(
                check, f"bounds of partition {read.partition}", lambda _: self.done(read, leader)
            )
            return False
        if isinstance(judged, FetchAgain):
            if judged.trouble is not None:
                self.try_later(read.partition, judged.trouble, is_stale=judged.is_stale)
        else:
            answer(read, judged)
        self.done(read, leader)
        return not isinstance(judged, FetchAgain)

    def done(self, read: PendingRead, leader: int) -> None:
        """Go on with the partition, now that *leader* has answered."""
        self.uncover(read, leader)
        self.place(read.partition)

    async def _check_bounds(self, read: PendingRead, *, is_diverging: bool) -> None:
        bounds = await self._ask_bounds(read.partition)
        if isinstance(bounds, LogError):
            error: LogError | None = bounds
        else:
            error = truncated(
                read, bounds.log_start_offset, bounds.high_watermark, is_diverging=is_diverging
            )
        if error is None or isinstance(error, LogUnavailable):
            self.fetch_position(read.partition).forget_epoch()
            unsure = LogUnavailable("its leader is not sure of its bounds")
            self.try_later(read.partition, error or unsure, is_stale=True)
        else:
            if not read.answer.done():
                # The reader knows now: it may well go on from where its leader agrees with it.
                self.fetch_position(read.partition).forget_epoch()
            answer(read, error)


class LeaderReads:
    """The reads of one leader, for its `BrokerFetches`."""

    def __init__(
        self, fetcher: Fetcher, cluster: ClusterConnection, leader: int, bytes_max: int
    ) -> None:
        self._fetcher = fetcher
        self._cluster = cluster
        self._leader = leader
        self._bytes_max = bytes_max

    def node(self) -> Node:
        return self._cluster.node(self._leader)

    def is_at_tail(self, partition: int) -> bool:
        read = self._fetcher.next_read(partition, self._leader)
        return read is not None and self._fetcher.fetch_position(partition).tail == read.position

    def cover(self, partitions: list[int]) -> dict[int, PendingRead]:
        turn: dict[int, PendingRead] = {}
        for partition in partitions:
            read = self._fetcher.next_read(partition, self._leader)
            if read is not None:
                turn[partition] = read
                self._fetcher.cover(read, self._leader)
        return turn

    def request(self, turn: dict[int, PendingRead], *, wait_ms: int) -> FetchRequest:
        fetcher, view = self._fetcher, self._cluster.view
        assert view is not None
        assert fetcher.topic_id is not None
        fetcher.requests += 1
        wanted = [
            fetcher.fetch_position(partition).wanted(read, view.epoch_of(partition))
            for partition, read in turn.items()
        ]
        return FetchRequest(fetcher.topic_id, wanted, wait_ms=wait_ms, bytes_max=self._bytes_max)

    async def answered(self, turn: dict[int, PendingRead], answer: FetchAnswer) -> bool:
        """Take the answer, with pauses for others; true when a reader got something."""
        if answer.code != ErrorCode.NONE:
            self.failed(turn, error_for("the fetch", answer.code, "READ the topic"))
            return False
        told = {fetched.partition: fetched for fetched in answer.partitions}
        first = next(iter(turn))
        is_served = False
        for partition, read in turn.items():
            fetched = told.get(partition)
            if fetched is None:
                self.failed({partition: read}, LogUnavailable("the answer does not name it"))
            else:
                is_served |= self._fetcher.settle(
                    read, self._leader, fetched, is_first=partition == first
                )
                if len(fetched.data) > _LARGE_BYTES:
                    await asyncio.sleep(0)
        return is_served

    def failed(self, turn: dict[int, PendingRead], error: LogError) -> None:
        for partition, read in turn.items():
            if isinstance(error, LogUnavailable):
                self._fetcher.try_later(partition, error, is_stale=True)
            else:
                answer(read, type(error)(str(error)))
            self._fetcher.done(read, self._leader)

    def died(self, turn: dict[int, PendingRead], done: asyncio.Task[None]) -> None:
        """Take the reads back: the task that asked for them has ended as it never should."""
        self._fetcher.deaths += 1
        why = report_death(done, f"the fetch from broker {self._leader}")
        for read in turn.values():
            answer(read, LogUnavailable(f"partition {read.partition}: {why}"))
            self._fetcher.done(read, self._leader)

    def late(self) -> None:
        self._cluster.wish()
