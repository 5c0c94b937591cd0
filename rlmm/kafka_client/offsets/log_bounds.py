"""
The bounds of partitions, asked of their leaders in parallel at the moment of the call.

Missing in an answer is unknown, never zero. Each leader names the topic id last, on the same
connection, so its offsets belong to the expected topic.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from rlmm.errors import LogError, LogRecreated, LogUnavailable
from rlmm.kafka_client.code_errors import error_for
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import EARLIEST, LATEST, ListOffsetsRequest
from rlmm.log.protocol import LogBounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.kafka_client.connections.cluster_view import ClusterConnection, ClusterView
    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_messages.offsets import ListedOffset
    from rlmm.metadata.ids import Uuid

_ROUNDS = 2
"""How often a partition is asked for, with a newer view in between, before its error is final."""
_STRAGGLER_S = 1.0
"""How much longer than the first a leader may take when others have answered."""

Answers = dict[int, "LogBounds | LogError"]


class BoundsQuestion:
    """Asks for the bounds of some partitions; *answers* fills meanwhile."""

    def __init__(
        self,
        cluster: ClusterConnection,
        tasks: TaskSet,
        topic: str,
        topic_id: Uuid,
        partitions: Iterable[int],
    ) -> None:
        self._cluster = cluster
        self._tasks = tasks
        self._topic = topic
        self._topic_id = topic_id
        self.answers: Answers = {
            partition: LogUnavailable(f"partition {partition}: its leader has not answered")
            for partition in partitions
        }

    async def ask(self) -> None:
        """Ask until every partition has its bounds or an error that stays."""
        for asked in range(1, _ROUNDS + 1):
            view = await self._cluster.view_now()
            await self._ask_leaders(view)
            if asked == _ROUNDS or not self._unavailable():
                return
            await self._cluster.view_after(view.number)

    def _unavailable(self) -> list[int]:
        return [
            partition
            for partition, answer in self.answers.items()
            if isinstance(answer, LogUnavailable)
        ]

    async def _ask_leaders(self, view: ClusterView) -> None:
        by_leader: defaultdict[int, list[int]] = defaultdict(list)
        for partition in self._unavailable():
            leader = view.leader_of(partition)
            if leader is None:
                self._tell([partition], LogUnavailable(view.without_leader(partition)))
            else:
                by_leader[leader].append(partition)
        tasks = {
            self._tasks.start(
                self._ask_leader(leader, {at: view.epoch_of(at) for at in asked}),
                f"bounds of broker {leader}",
            ): leader
            for leader, asked in by_leader.items()
        }
        if not tasks:
            return
        try:
            is_first = not any(isinstance(answer, LogBounds) for answer in self.answers.values())
            if is_first:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            _, late = await asyncio.wait(tasks, timeout=_STRAGGLER_S)
            for task in late:
                self._cluster.hang_up(tasks[task])
        finally:
            for task in tasks:
                task.cancel()

    async def _ask_leader(self, leader: int, leader_epochs: Mapping[int, int]) -> None:
        partitions = tuple(leader_epochs)
        try:
            connection = await self._cluster.node(leader).control()
            wanted = {self._topic: partitions}
            # The log start offset first: it can only rise, so it is never beyond the end.
            starts = connection.call(
                ListOffsetsRequest(wanted, EARLIEST, leader_epochs=leader_epochs)
            )
            ends = connection.call(ListOffsetsRequest(wanted, LATEST, leader_epochs=leader_epochs))
            topics = connection.call(MetadataRequest([self._topic]))
            start, end, cluster = await asyncio.gather(starts, ends, topics)
        except LogError as error:
            self._tell(partitions, error)
            return
        topic_id = next((t.topic_id for t in cluster.topics if t.code == ErrorCode.NONE), None)
        if topic_id != self._topic_id:
            self._tell(partitions, topic_id_error(self._topic, self._topic_id, topic_id))
            return
        for partition in partitions:
            self.answers[partition] = _joined(
                partition, start.get(self._topic, {}), end.get(self._topic, {})
            )

    def _tell(self, partitions: Iterable[int], error: LogError) -> None:
        for partition in partitions:
            self.answers[partition] = type(error)(f"partition {partition}: {error}")


def topic_id_error(topic: str, topic_id: Uuid, now: Uuid | None) -> LogError:
    if now is None:
        return LogUnavailable(f"topic {topic} with id {topic_id} is not there now")
    return LogRecreated(
        f"topic {topic} was deleted and created anew: its id was {topic_id}, now it is {now}"
    )


def _joined(
    partition: int, starts: Mapping[int, ListedOffset], ends: Mapping[int, ListedOffset]
) -> LogBounds | LogError:
    found: list[int] = []
    for listed in (starts.get(partition), ends.get(partition)):
        if listed is None:
            return LogUnavailable(f"partition {partition}: the answer does not name it")
        if listed.code != ErrorCode.NONE:
            return error_for(f"partition {partition}", listed.code, "DESCRIBE the topic")
        if listed.offset < 0:
            return LogUnavailable(f"partition {partition}: its leader does not know its bounds")
        found.append(listed.offset)
    return LogBounds(*found)
