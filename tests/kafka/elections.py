"""
Unclean elections of one topic: its leader stores records alone and goes, the other replica is
elected without them, and writers store others at their offsets. The third node has no replica: it
stays, and tells who leads.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from rlmm.metadata.encoding import encode_any
from tests.kafka.clients import consume, end_offsets, produce
from tests.kafka.placement import create_placed, until_placed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.metadata.events import Event
    from tests.kafka.cluster import Cluster
    from tests.kafka.login import Login
    from tests.kafka.node import Node

REPLICAS = (1, 2)
WITNESS = 3
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


class UncleanTopic:
    """A topic on two nodes of *cluster*. With *kills* nodes are killed, otherwise stopped."""

    def __init__(self, cluster: Cluster, name: str, partitions: int, *, kills: bool) -> None:
        self.name = name
        self.partitions = partitions
        self.login: Login = cluster.nodes[WITNESS].login
        self._cluster = cluster
        self._kills = kills

    @property
    def witness(self) -> Node:
        return self._cluster.nodes[WITNESS]

    async def create(self) -> None:
        await create_placed(self.witness, self.name, [REPLICAS] * self.partitions, UNCLEAN)
        await self._until_in_sync(set(REPLICAS))

    async def store(self, events: Mapping[int, Iterable[Event]]) -> None:
        """Store *events* by partition, each in a batch of its own."""
        writing = (
            produce(self.login, self.name, map(encode_any, of), partition=at)
            for at, of in events.items()
        )
        await asyncio.gather(*writing)

    async def ends(self) -> list[int]:
        found = await end_offsets(self.login, self.name, self.partitions)
        return [found[partition] for partition in range(self.partitions)]

    async def records(self) -> list[list[bytes]]:
        """Return the values of every partition, read by a client that is not ours."""
        reading = [
            consume(self.login, self.name, partition=at, count=end)
            for at, end in enumerate(await self.ends())
        ]
        return [[one.value or b"" for one in found] for found in await asyncio.gather(*reading)]

    async def leader(self) -> int:
        found = await until_placed(self.witness, self.name, lambda now: now[0].leader in REPLICAS)
        return found[0].leader

    async def leave_alone(self) -> None:
        """Take the follower away: from now on the leader alone has new records."""
        leader = await self.leader()
        await self.take(_other(leader))
        await self._until_in_sync({leader})

    async def elect_other(self) -> None:
        """Take the leader away, and let the other replica lead."""
        leader = await self.leader()
        await self.take(leader)
        await self.bring(_other(leader))
        await until_placed(
            self.witness,
            self.name,
            lambda now: all(one.leader == _other(leader) for one in now.values()),
        )

    async def mend(self) -> None:
        """Bring every node back, and wait until the replicas are equal."""
        for node_id in self._cluster.nodes:
            await self.bring(node_id)
        await self._until_in_sync(set(REPLICAS))

    async def bring(self, node_id: int) -> None:
        node = self._cluster.nodes[node_id]
        if node.is_running:
            os.kill(node.pid, signal.SIGCONT)
        else:
            await asyncio.to_thread(node.start)

    async def take(self, node_id: int) -> None:
        node = self._cluster.nodes[node_id]
        if self._kills:
            await asyncio.to_thread(node.kill)
        else:
            os.kill(node.pid, signal.SIGSTOP)

    async def _until_in_sync(self, replicas: set[int]) -> None:
        await until_placed(
            self.witness,
            self.name,
            lambda now: all(one.in_sync == replicas for one in now.values()),
        )


def _other(node_id: int) -> int:
    return next(one for one in REPLICAS if one != node_id)
