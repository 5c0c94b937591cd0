"""
User topics of a cluster, for jobs that run beside the brokers.

Each leader names the topic id after its answer, so no answer belongs to another topic of that name.
Partitions whose leaders do not answer within a few elections are left out: unknown, never zero.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol, TypeVar

from rlmm.base.backoff import RETRY, Backoff
from rlmm.errors import LogError, LogNotPermitted, LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_client.connections.cluster_view import ClusterConnection
from rlmm.kafka_client.connections.task_set import TaskSet
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.configs import DescribeTopicsRequest
from rlmm.kafka_messages.error_codes import DENIED, ErrorCode, name_of

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Mapping,
        Sequence,
    )

    from rlmm.kafka_client.connections.broker_connections import Node
    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.cluster import ClusterMetadata
    from rlmm.kafka_messages.configs import AlterTopicRequest, TopicRequestOutcome, TopicSetting
    from rlmm.kafka_messages.wire import Request
    from rlmm.metadata.ids import TopicIdPartition

T = TypeVar("T")

_ROUNDS = 6
"""How often leaders are asked: the pauses between come to some 3 s, elections take one or two."""
_BROKERS = 3
"""How many brokers may be asked, one after the other, within the time for one question."""


class PartitionResponse(Protocol):
    """A leader's answer for one partition: a value, or a code instead of it."""

    @property
    def code(self) -> int: ...


C = TypeVar("C", bound=PartitionResponse)

if TYPE_CHECKING:
    Wanted = Mapping[str, Sequence[int]]
    OfLeader = Callable[[Wanted], Request[dict[str, dict[int, C]]]]


class UserTopics:
    """
    A client of the cluster on the event loop that made it; the caller closes it.

    Each call returns after *timeout_s* with the answers so far, or raises `LogUnavailable`; it
    raises `LogNotPermitted` as soon as our user lacks a right.
    """

    def __init__(self, settings: KafkaSettings, dialer: Dialer, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._now = asyncio.get_running_loop().time
        self._tasks = TaskSet()
        self._cluster = ClusterConnection(settings, dialer, self._tasks, self._now)

    async def metadata(self, topics: Sequence[str] | None = None) -> ClusterMetadata:
        """Return brokers and *topics*, or all that our user may DESCRIBE, as a broker has them."""
        return await self.ask(MetadataRequest(topics))

    async def settings(
        self, topics: Iterable[str], names: Sequence[str] | None
    ) -> dict[str, Mapping[str, TopicSetting]]:
        """Return the named settings in force, or all; unknown topics and settings are left out."""
        found: dict[str, Mapping[str, TopicSetting]] = {}
        for request in DescribeTopicsRequest.in_parts(topics, names):
            for described in await self.ask(request):
                if described.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                if described.code != ErrorCode.NONE:
                    where = f"the settings of topic {described.name}"
                    raise error_for(where, described.code, "DESCRIBE_CONFIGS of the topic")
                found[described.name] = described.settings
        return found

    async def alter(self, request: AlterTopicRequest) -> TopicRequestOutcome:
        """Send a topic's change once; `LogUnavailable` also for a lost answer: it may be resent."""
        async with self._deadline(request):
            connection = await self._any_connection()
            return await connection.call(request)

    async def ask_broker(self, broker: int, request: Request[T]) -> T:
        async with self._deadline(request):
            await self._cluster.view_now()
            return await self._ask(self._cluster.node(broker), request)

    async def why_too_old(self, request: Request[T]) -> str:
        """Return why some broker does not know *request*, which must ask for nothing; else ""."""
        async with self._deadline(request):
            view = await self._cluster.fresh_view()
            for node_id in sorted(view.brokers):
                connection = await self._cluster.node(node_id).control()
                try:
                    await connection.call(request)
                except UnsupportedVersion as error:
                    return f"broker {node_id}: {error}"
        return ""

    async def of_leaders(
        self, partitions: Collection[TopicIdPartition], *questions: OfLeader[C]
    ) -> dict[TopicIdPartition, tuple[C, ...]]:
        """
        Return the answers of leaders to *questions*, in order; a partition lacking any is left out.

        A question makes the request to one leader from its partitions, by topic. Raises
        `UnsupportedVersion` where a leader is too old for a question.
        """
        found: dict[TopicIdPartition, tuple[C, ...]] = {}
        end = self._now() + self._timeout_s
        backoff = Backoff(RETRY, self._now)
        with contextlib.suppress(TimeoutError):
            for asked in range(_ROUNDS):
                # Who leads is told at first, or the call fails; later nothing is lost without it.
                async with asyncio.timeout_at(end if asked else None):
                    if asked:
                        await asyncio.sleep(backoff.failed())
                        await self._cluster.fresh_view()
                    wanted = [one for one in partitions if one not in found]
                    by_leader = await self._by_leader(wanted) if wanted else {}
                asking = (
                    self._ask_leader(leader, theirs, questions, end)
                    for leader, theirs in by_leader.items()
                )
                for answers in await self._all(asking):
                    found.update(answers)
                if len(found) == len(set(partitions)):
                    break
        return found

    async def _by_leader(self, wanted: list[TopicIdPartition]) -> dict[int, list[TopicIdPartition]]:
        told = await self.ask(MetadataRequest(sorted({one.topic for one in wanted})))
        for topic in told.topics:
            if topic.code in DENIED:
                raise error_for(f"topic {topic.name}", topic.code, "DESCRIBE the topic")
        leaders = {
            (topic.topic_id, one.partition): one.leader
            for topic in told.topics
            for one in topic.partitions
        }
        by_leader: defaultdict[int, list[TopicIdPartition]] = defaultdict(list)
        for one in wanted:
            leader = leaders.get((one.topic_id, one.partition), -1)
            if leader >= 0:
                by_leader[leader].append(one)
        return dict(by_leader)

    async def _ask_leader(
        self,
        leader: int,
        wanted: list[TopicIdPartition],
        questions: Sequence[OfLeader[C]],
        end: float,
    ) -> dict[TopicIdPartition, tuple[C, ...]]:
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for one in wanted:
            by_topic[one.topic].append(one.partition)
        try:
            async with asyncio.timeout_at(end):
                connection = await self._cluster.node(leader).control()
                answers = await self._all(connection.call(ask(by_topic)) for ask in questions)
                told = await connection.call(MetadataRequest(sorted(by_topic)))
        except TimeoutError:
            self._cluster.hang_up(leader)
            return {}
        except LogNotPermitted:
            raise
        except LogError:
            return {}
        ids = {topic.name: topic.topic_id for topic in told.topics if topic.code == ErrorCode.NONE}
        found: dict[TopicIdPartition, tuple[C, ...]] = {}
        for one in wanted:
            of_one = [answer.get(one.topic, {}).get(one.partition) for answer in answers]
            good = tuple(
                answer for answer in of_one if answer is not None and _is_good(one, answer, leader)
            )
            if len(good) == len(questions) and ids.get(one.topic) == one.topic_id:
                found[one] = good
        return found

    async def _all(self, work: Iterable[Coroutine[None, None, T]]) -> list[T]:
        """Return the results of *work* in its order; the first error cancels the rest."""
        tasks: list[asyncio.Task[T]] = []
        try:
            tasks.extend(self._tasks.start(one, "ask a leader") for one in work)
            return [await task for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    async def ask(self, request: Request[T]) -> T:
        asked: set[Node] = set()
        async with self._deadline(request):
            while True:
                view = await self._cluster.view_now()
                try:
                    node = self._not_among(asked)
                    asked.add(node)
                    return await self._ask(node, request)
                except LogUnavailable:
                    await self._cluster.view_after(view.number)

    def _not_among(self, asked: set[Node]) -> Node:
        """Return a broker to ask, if possible not one of *asked*."""
        others = [node for node in self._cluster.nodes() if node not in asked]
        connected = [node for node in others if node.is_connected]
        return next(iter(connected or others), None) or self._cluster.any_node()

    async def _ask(self, node: Node, request: Request[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s / _BROKERS):
                return await (await node.control()).call(request)
        except TimeoutError as error:
            node.hang_up()
            raise LogUnavailable(f"{node} has not answered {request.api.name}") from error

    async def _any_connection(self) -> BrokerConnection:
        while True:
            view = await self._cluster.view_now()
            try:
                return await self._cluster.any_node().control()
            except LogUnavailable:
                await self._cluster.view_after(view.number)

    @contextlib.asynccontextmanager
    async def _deadline(self, request: Request[T]) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError as error:
            why = self._cluster.trouble or "no broker has answered"
            msg = f"{request.api.name} was not answered in {self._timeout_s:g} s: {why}"
            raise LogUnavailable(msg) from error

    async def close(self) -> None:
        await self._tasks.close()
        await self._cluster.close()


def _is_good(partition: TopicIdPartition, answer: PartitionResponse, leader: int) -> bool:
    """Return whether a leader's answer is one; raises where no other will ever come."""
    where = f"{partition} at broker {leader}"
    if answer.code in DENIED:
        raise error_for(where, answer.code, "DESCRIBE the topic")
    if answer.code == ErrorCode.UNSUPPORTED_VERSION:
        raise UnsupportedVersion(f"{where}: {name_of(answer.code)}")
    return answer.code == ErrorCode.NONE
