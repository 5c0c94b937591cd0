"""
Three brokers with our plugins, each beside a service of its own, and one tier that they share.

Each service has its own socket and folder and answers for its broker's replicas. Any broker and
service can be killed and come back, and any broker can start with Kafka's own metadata manager.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

from rlmm.base.closing import ClosedByWith
from rlmm.errors import NotAssigned, RlmmError, UnknownPartition
from rlmm.metadata.ids import TopicIdPartition
from tests.kafka.clients import PAUSE_S
from tests.kafka.cluster import SIZE, Cluster
from tests.kafka.login import Login
from tests.kafka.node import STARTED, TIERED, ReservedPort
from tests.kafka.placement import create_placed, move, placed
from tests.kafka.plugin import our_manager, our_storage
from tests.kafka.plugin_kafka import PluginKafka
from tests.kafka.process import ProcessFailed
from tests.kafka.sidecar import Sidecar
from tests.kafka.tiered import TIERED_TOPIC, tiering
from tests.kafka.tools import Tools
from tests.support.server.raw_frames import greeted, wire

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.kafka.jars import Jars
    from tests.kafka.node import Node
    from tests.kafka.process import ProcessLog

FOLLOWING_DEADLINE_S = 60.0
NODES = tuple(range(1, SIZE + 1))


class PluginCluster(ClosedByWith):
    """Brokers 1 to 3 with our metadata manager, and services; *store* is the tier's folder."""

    def __init__(
        self,
        jars: Jars,
        folder: Path,
        plugins: Path,
        *,
        properties: Mapping[str, str] | None = None,
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self.store = folder / "tier"
        common = tiering(self.store, replicas=SIZE)
        if storage is None:
            common.pop("rsm.config.dir")  # of Kafka's own storage for tests
            storage = our_storage(plugins, self.store)
        self.folder = folder
        self._jars = jars
        self._cluster = Cluster(
            jars, folder, properties={**common, **storage, **(properties or {})}
        )
        self.nodes: Mapping[int, Node] = self._cluster.nodes
        addresses = ",".join(node.bootstrap for node in self.nodes.values())
        self.sidecars: dict[int, Sidecar] = {}
        self._ports: dict[int, ReservedPort] = {}
        for node_id in NODES:
            port = self._ports[node_id] = ReservedPort()
            sidecar = self.sidecars[node_id] = Sidecar(
                folder / f"sidecar-{node_id}",
                addresses,
                replicas=SIZE,
                arguments=["--http-listen", f"127.0.0.1:{port.number}"],
            )
            self.have_ours(node_id, our_manager(plugins, sidecar.address))

    @property
    def login(self) -> Login:
        return Login(self._cluster.bootstrap)

    @property
    def tools(self) -> Tools:
        return Tools(self._jars, self._cluster.bootstrap)

    @property
    def logs(self) -> list[ProcessLog]:
        return [*self._cluster.logs, *(sidecar.log for sidecar in self.sidecars.values())]

    def at(self, node_id: int) -> PluginKafka:
        return PluginKafka(self.nodes[node_id], self.sidecars[node_id], self.store)

    def http(self, node_id: int) -> str:
        return f"127.0.0.1:{self._ports[node_id].number}"

    def have_ours(self, node_id: int, lines: Mapping[str, str]) -> None:
        node = self.nodes[node_id]
        node.properties |= lines
        node.ready = (STARTED,)

    def have_kafkas(self, node_id: int, taken_out: Iterable[str]) -> None:
        node = self.nodes[node_id]
        for name in taken_out:
            node.properties.pop(name, None)
        node.ready = (STARTED, TIERED)

    def start(self, *, with_sidecars: bool = True) -> Self:
        waiting = [one for one in self.sidecars.values() if with_sidecars and not one.is_running]
        with ThreadPoolExecutor(SIZE) as threads:
            started = [threads.submit(sidecar.start) for sidecar in waiting]
            self._cluster.start()
            for one in started:
                one.result()
        return self

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            for sidecar in self.sidecars.values():
                closing.callback(sidecar.close)
            closing.callback(self._cluster.close)
            for port in self._ports.values():
                closing.callback(port.release)

    async def create_topic(
        self,
        topic: str,
        replicas: Sequence[Sequence[int]],
        settings: Mapping[str, str] | None = None,
    ) -> list[TopicIdPartition]:
        await create_placed(self, topic, replicas, {**TIERED_TOPIC, **(settings or {})})
        topic_id = self.at(replicas[0][0]).topic_id(topic)
        return [TopicIdPartition(topic_id, topic, number) for number in range(len(replicas))]

    async def move(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        await move(self, topic, replicas, self.folder)

    async def followed(
        self, node_id: int, partitions: Collection[TopicIdPartition]
    ) -> set[TopicIdPartition]:
        """Return those of *partitions* that the service answers its broker for, or raise."""
        held = set()
        async with greeted(self.sidecars[node_id].socket, broker_id=node_id) as client:
            for partition in partitions:
                try:
                    await client.call("highest_offset", wire(partition), 0)
                except NotAssigned:
                    continue
                except UnknownPartition:
                    pass  # nothing of it was ever tiered
                held.add(partition)
        return held

    async def until_followed(
        self, partitions: Collection[TopicIdPartition], nodes: Collection[int] = NODES
    ) -> None:
        """Wait until each service answers for exactly its broker's share of *partitions*."""
        told: object = None
        wanted: object = None
        try:
            async with asyncio.timeout(FOLLOWING_DEADLINE_S):
                while True:
                    wanted = await self._held(partitions, nodes)
                    with contextlib.suppress(RlmmError):  # of a moment, while it reads on
                        told = {one: await self.followed(one, partitions) for one in nodes}
                    if told == wanted:
                        return
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError as error:
            raise ProcessFailed(f"services follow {told}, brokers have {wanted}") from error

    async def _held(
        self, partitions: Collection[TopicIdPartition], nodes: Collection[int]
    ) -> dict[int, set[TopicIdPartition]]:
        where = {topic: await placed(self, topic) for topic in {one.topic for one in partitions}}
        return {
            node_id: {
                one for one in partitions if node_id in where[one.topic][one.partition].replicas
            }
            for node_id in nodes
            if all(where.values())
        }
