"""
The idempotent producer: each partition has its own producer id and delays no other partition.

All in-sync replicas acknowledge an append (acks=all). The number and bytes of waiting appends are
bounded; an append that finds no room is refused at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import AppendRefused, LogError, LogUnavailable
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.connections.task_set import report_death
from rlmm.kafka_client.produce.partition_appends import (
    BATCH_BYTES,
    PartitionAppends,
    ProducerAppend,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.produce import InitProducerIdRequest, ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_client.connections.broker_connections import Node
    from rlmm.kafka_client.connections.cluster_view import ClusterConnection
    from rlmm.kafka_client.connections.connection import BrokerConnection
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metadata.ids import Uuid
    from rlmm.records.records import Record

_ROLE = "producer"
_LATE_S = 3.0
"""After how long without an answer it is looked up whether another broker leads."""


class IdempotentProducer:
    """Appends to one topic; bound to its id, and void for another."""

    def __init__(
        self,
        settings: KafkaSettings,
        cluster: ClusterConnection,
        tasks: TaskSet,
        now_ms: Callable[[], int],
    ) -> None:
        self.pending = 0
        self.pending_bytes = 0
        self._settings = settings
        self._cluster = cluster
        self._tasks = tasks
        self._now_ms = now_ms
        self._topic_id: Uuid | None = None
        self._lanes: dict[int, PartitionAppends] = {}
        self._running: set[int] = set()

    def bind(self, topic_id: Uuid) -> None:
        if topic_id != self._topic_id:
            self._topic_id = topic_id
            self._lanes.clear()
            self._running.clear()

    def fail(self, error: LogError) -> None:
        """End every append: with *error* those that were surely not stored."""
        for lane in self._lanes.values():
            lane.fail(error)

    def put(
        self, partition: int, value: bytes, record: Record | None = None
    ) -> tuple[PartitionAppends, ProducerAppend]:
        """Queue *value*, or a whole *record*, or raise `AppendRefused`; `release` ends it."""
        append = ProducerAppend(value, asyncio.get_running_loop().create_future(), record=record)
        self._require_room(partition, append)
        self.pending += 1
        self.pending_bytes += append.size
        if partition not in self._lanes:
            self._lanes[partition] = PartitionAppends(partition, self._settings.max_request_size)
        lane = self._lanes[partition]
        lane.put(append)
        if partition not in self._running:
            self._start(partition, lane)
        return lane, append

    def release(self, append: ProducerAppend) -> None:
        """Forget an append that has ended, or whose caller has gone."""
        self.pending -= 1
        self.pending_bytes -= append.size
        append.offset.cancel()
        if not append.offset.cancelled():
            append.offset.exception()  # it is told, or nobody wants to know

    def _require_room(self, partition: int, append: ProducerAppend) -> None:
        settings = self._settings
        where = f"partition {partition}"
        if append.size + BATCH_BYTES > settings.max_request_size:
            raise AppendRefused(
                f"{where}: an event of {len(append.value)} bytes does not fit into "
                f"max.request.size ({settings.max_request_size} bytes)"
            )
        if self.pending >= settings.pending_appends_max:
            msg = f"{where}: {self.pending} appends wait already (pending.appends.max)"
            raise AppendRefused(msg)
        if self.pending_bytes + append.size > settings.buffer_memory:
            raise AppendRefused(f"{where}: {self.pending_bytes} bytes wait already (buffer.memory)")

    def _start(self, partition: int, lane: PartitionAppends) -> None:
        self._running.add(partition)
        self._tasks.start(
            self._run(partition, lane),
            f"append to partition {partition}",
            lambda done: self._ended(partition, lane, done),
        )

    def _ended(self, partition: int, lane: PartitionAppends, done: asyncio.Task[None]) -> None:
        if self._lanes.get(partition) is not lane:
            return
        self._running.discard(partition)
        if done.cancelled() or done.exception() is not None:
            why = report_death(done, f"the appends to partition {partition}")
            lane.fail(LogUnavailable(why))
        if lane.is_wanted():
            self._start(partition, lane)

    async def _run(self, partition: int, lane: PartitionAppends) -> None:
        backoff = Backoff(RETRY, asyncio.get_running_loop().time)
        while lane.is_wanted():
            view = self._cluster.view
            try:
                await self._attempt(partition, lane)
                if lane.trouble is None:
                    backoff.succeeded()
            except LogUnavailable as error:
                lane.trouble = error
                await self._pause(backoff, 0 if view is None else view.number)
            except LogError as error:
                lane.fail(error)

    async def _pause(self, backoff: Backoff, number: int) -> None:
        pause_s = backoff.failed()
        view = self._cluster.view
        is_known = view is not None and view.number > number
        asked = None if is_known else self._cluster.wish()
        await asyncio.sleep(pause_s)
        if asked is not None:
            await asyncio.wait({asked}, timeout=RETRY.last_s)

    async def _attempt(self, partition: int, lane: PartitionAppends) -> None:
        """Send one batch and take its answer; raises the error of either."""
        view = await self._cluster.view_now()
        leader = view.leader_of(partition)
        if leader is None:
            raise LogUnavailable(view.without_leader(partition))
        node = self._cluster.node(leader)
        if lane.producer is None:
            await self._init_producer(node, lane)
        connection = await node.borrow(_ROLE)
        try:
            again = await self._send(partition, lane, leader, connection)
        except BaseException:
            await connection.close()  # an answer may still come on it
            raise
        finally:
            await node.give_back(_ROLE, connection)
        if again is not None:
            raise again

    async def _send(
        self, partition: int, lane: PartitionAppends, leader: int, connection: BrokerConnection
    ) -> LogError | None:
        """Send one batch on *connection*; returns why something must be sent again."""
        request = self._request(partition, lane)
        if request is None:
            return None
        try:
            sent = connection.call(request)
        except LogError:
            lane.not_sent()
            raise
        lane.sent()
        answer = self._tasks.start(sent, f"answer to an append to partition {partition}")
        try:
            while not (await asyncio.wait({answer}, timeout=_LATE_S))[0]:
                self._cluster.wish()
                self._require_leader(partition, leader)
            return lane.answered(answer.result())
        except LogUnavailable as error:
            lane.lost(error)
            raise
        finally:
            answer.cancel()

    def _require_leader(self, partition: int, leader: int) -> None:
        view = self._cluster.view
        if view is not None and view.leader_of(partition) not in {leader, None}:
            raise LogUnavailable(f"broker {leader} has not answered, and another leads now")

    def _request(self, partition: int, lane: PartitionAppends) -> ProduceRequest | None:
        assert self._topic_id is not None
        data = lane.pack(self._now_ms())
        if data is None:
            return None
        return ProduceRequest(
            self._settings.topic.name,
            self._topic_id,
            partition,
            data,
            self._settings.request_timeout_ms // 2,  # the broker's answer comes before ours is due
        )

    async def _init_producer(self, node: Node, lane: PartitionAppends) -> None:
        connection = await node.control()
        told = await connection.call(InitProducerIdRequest())
        if told.code != ErrorCode.NONE:
            raise error_for(str(node), told.code, "WRITE to the topic (idempotent)")
        lane.producer = told
