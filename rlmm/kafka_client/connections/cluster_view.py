"""
The cluster as its brokers describe it, refreshed by one attempt at a time for all callers.

An attempt tries connected brokers, then other known brokers, then the bootstrap servers. While no
broker answers, the pauses between attempts grow.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.base.backoff import BOOTSTRAP, RETRY
from rlmm.errors import LogError, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.connections.broker_connections import Node
from rlmm.kafka_client.connections.task_set import report_death
from rlmm.kafka_client.settings import address_of
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.error_codes import name_of
from rlmm.log.reconnect_backoff import ReconnectBackoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.cluster import ClusterMetadata, PartitionLeader, TopicMetadata
    from rlmm.metadata.ids import Uuid

_log = logging.getLogger(__name__)

_CANDIDATE_S = 3.0
"""How long one of several brokers may take to answer before the next is asked."""
_VIEW_AGE_MAX_S = 60.0
_GAP_S = RETRY.first_s
"""Time between two attempts, even if both succeed."""


@dataclass(frozen=True, slots=True)
class TopicView:
    """The topic as a broker knows it."""

    topic_id: Uuid
    partitions: Mapping[int, PartitionLeader]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster as a broker knows it; *number* rises from view to view."""

    number: int
    cluster_id: str
    brokers: frozenset[int]
    topic: TopicView | None
    topic_code: int

    def leader_of(self, partition: int) -> int | None:
        """Return the leader of *partition*; None while it has none that can be reached."""
        found = self.topic.partitions.get(partition) if self.topic is not None else None
        return found.leader if found is not None and found.leader in self.brokers else None

    def without_leader(self, partition: int) -> str:
        """Return why no leader of *partition* can be asked."""
        if self.topic is None:
            return f"the topic is not there: {name_of(self.topic_code)}"
        found = self.topic.partitions.get(partition)
        if found is None:
            return f"the topic has {len(self.topic.partitions)} partitions only"
        return f"it has no leader now ({name_of(found.code)})"

    def epoch_of(self, partition: int) -> int:
        """Return the epoch of the leader, -1 when it is not known."""
        found = self.topic.partitions.get(partition) if self.topic is not None else None
        return -1 if found is None else found.leader_epoch


@dataclass(slots=True)
class Attempts:
    """Counts the requests for the cluster's metadata."""

    made: int = 0
    failed: int = 0


class ClusterConnection:
    """The current view and the brokers in it."""

    def __init__(
        self, settings: KafkaSettings, dialer: Dialer, tasks: TaskSet, now: Callable[[], float]
    ) -> None:
        self.view: ClusterView | None = None
        self.trouble: LogError | None = None
        """Why the last attempt failed; None when it did not."""
        self.attempts = Attempts()
        self._heard_of: TopicView | None = None
        """The newest leaders of the topic that any broker has told."""
        self.on_change: Callable[[], None] = lambda: None
        """Called after every attempt, whatever came of it."""
        self._settings = settings
        self._dialer = dialer
        self._tasks = tasks
        self._now = now
        self._nodes: dict[int, Node] = {}
        self._backoff = ReconnectBackoff(BOOTSTRAP, now)
        self._asked_at = float("-inf")
        self._attempt: asyncio.Task[None] | None = None
        self._is_new = True

    def node(self, node_id: int) -> Node:
        if node_id not in self._nodes:
            raise LogUnavailable(f"broker {node_id} is gone")
        return self._nodes[node_id]

    def any_node(self) -> Node:
        if not self._nodes:
            raise LogUnavailable("the cluster names no broker that could be asked")
        return self._known()[0]

    async def short_questions(self) -> BrokerConnection:
        await self.view_now()
        return await self.any_node().control()

    def wake(self) -> None:
        """End the current pause after a sign of life, except where a broker refused our login."""
        if not isinstance(self.trouble, LogNotPermitted):
            self._backoff.wake()

    def hang_up(self, node_id: int) -> None:
        """Cut the connection for short questions to a broker that does not answer them."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.hang_up()

    async def view_now(self) -> ClusterView:
        return self.view or await self.view_after(0)

    async def fresh_view(self) -> ClusterView:
        return await self.view_after(self.attempts.made)

    async def view_after(self, number: int) -> ClusterView:
        """Return the next view after *number*, trying until cancelled or not permitted."""
        while self.view is None or self.view.number <= number:
            await asyncio.wait({self.wish()})
            if isinstance(self.trouble, LogNotPermitted):
                raise LogNotPermitted(str(self.trouble)) from self.trouble
        return self.view

    def wish(self) -> asyncio.Task[None]:
        """Have the cluster asked, as soon as the pauses allow, and return the attempt."""
        if self._attempt is None:
            self._attempt = self._tasks.start(self._ask(), "ask the cluster", self._asked)
        return self._attempt

    def refresh(self) -> None:
        """Have the cluster asked if its view is old: no error tells that a topic got partitions."""
        if self._now() - self._asked_at > _VIEW_AGE_MAX_S:
            self.wish()

    def _asked(self, done: asyncio.Task[None]) -> None:
        self._attempt = None
        was_well = self.trouble is None
        error = None if done.cancelled() else done.exception()
        if isinstance(error, LogError):
            self.trouble = error
        elif error is not None or done.cancelled():
            self._backoff.failed()
            self.trouble = LogUnavailable(report_death(done, "asking the cluster"))
        else:
            self.trouble = None
        if was_well and self.trouble is not None:
            _log.warning("Kafka does not answer, tried again until it does: %s", self.trouble)
        elif self.trouble is None and self.view is not None and (not was_well or self._is_new):
            _log.info(
                "Kafka answers: cluster %s, %d brokers", self.view.cluster_id, len(self._nodes)
            )
            self._is_new = False
        self.on_change()

    async def _ask(self) -> None:
        await self._backoff.wait()
        await asyncio.sleep(max(self._asked_at + _GAP_S - self._now(), 0))
        self._asked_at = self._now()
        self.attempts.made += 1
        number = self.attempts.made
        try:
            metadata = await self._first_answer()
        except LogError:
            self.attempts.failed += 1
            self._backoff.failed()
            raise
        self._backoff.succeeded()
        self._adopt(metadata, number)

    async def _first_answer(self) -> ClusterMetadata:
        errors: list[LogError] = []
        candidates = self._candidates()
        for candidate in candidates:
            try:
                async with asyncio.timeout(None if candidate is candidates[-1] else _CANDIDATE_S):
                    return await self._ask_candidate(candidate)
            except TimeoutError:
                errors.append(LogUnavailable(f"{candidate}: no answer in {_CANDIDATE_S:g} s"))
                if isinstance(candidate, Node):
                    candidate.hang_up()
            except LogError as error:
                errors.append(error)
                if isinstance(error, LogNotPermitted):
                    break
        raise errors[-1]

    def _candidates(self) -> list[Node | str]:
        return [*self._known(), *self._settings.bootstrap_servers]

    def _known(self) -> list[Node]:
        known = random.sample(list(self._nodes.values()), len(self._nodes))
        return sorted(known, key=lambda node: not node.is_connected)

    async def _ask_candidate(self, candidate: Node | str) -> ClusterMetadata:
        request = MetadataRequest([self._settings.topic.name])
        if isinstance(candidate, Node):
            connection = await candidate.control()
            return await connection.call(request)
        connection = await self._dialer.dial(*address_of(candidate), "admin")
        try:
            return await connection.call(request)
        finally:
            await connection.close()

    def _adopt(self, metadata: ClusterMetadata, number: int) -> None:
        told = {broker.node_id: broker for broker in metadata.brokers}
        for node_id, node in list(self._nodes.items()):
            if told.get(node_id) != node.broker:
                del self._nodes[node_id]
                self._tasks.start(node.close(), f"leave {node}")
        for node_id, broker in told.items():
            if node_id not in self._nodes:
                self._nodes[node_id] = Node(broker, self._dialer, self._tasks, self._now)
        topic = next((t for t in metadata.topics if t.name == self._settings.topic.name), None)
        view = None
        if topic is not None and topic.code == 0:
            view = self._heard_of = _newest(topic, self._heard_of)
        code = -1 if topic is None else topic.code
        self.view = ClusterView(number, metadata.cluster_id, frozenset(told), view, code)

    def nodes(self) -> Iterator[Node]:
        return iter(tuple(self._nodes.values()))

    async def close(self) -> None:
        for node in self.nodes():
            await node.close()


def _newest(topic: TopicMetadata, heard_of: TopicView | None) -> TopicView:
    """
    Return *topic* with the leaders that were *heard_of* before where their epochs are later: a
    broker that is cut off from the controllers names the former ones.
    """
    known: Mapping[int, PartitionLeader] = {}
    if heard_of is not None and heard_of.topic_id == topic.topic_id:
        known = heard_of.partitions
    return TopicView(
        topic.topic_id,
        {
            told.partition: max(
                told, known.get(told.partition, told), key=lambda one: one.leader_epoch
            )
            for told in topic.partitions
        },
    )
