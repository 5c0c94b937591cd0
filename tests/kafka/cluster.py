"""Three Kafka nodes that replicate to each other, any one of which can be killed and come back."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from rlmm.base.closing import ClosedByWith
from tests.kafka.login import Login
from tests.kafka.node import STARTED, TIERED, Node, kafka_id
from tests.kafka.tiered import tiering

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.kafka.jars import Jars
    from tests.kafka.process import ProcessLog

SIZE = 3
REPLICATED = {
    "default.replication.factor": str(SIZE),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": str(SIZE),
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": str(SIZE),
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Cluster(ClosedByWith):
    def __init__(
        self,
        jars: Jars,
        folder: Path,
        *,
        tiered: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        tier = tiering(folder / "tier", replicas=SIZE) if tiered else {}
        cluster_id = kafka_id()
        self.nodes: dict[int, Node] = {}
        for node_id in range(1, SIZE + 1):
            self.nodes[node_id] = Node(
                jars,
                folder / f"node-{node_id}",
                node_id=node_id,
                cluster_id=cluster_id,
                properties={**REPLICATED, **tier, **(properties or {})},
                ready=(STARTED, TIERED) if tiered else (STARTED,),
            )
        voters = {id_: port for node in self.nodes.values() for id_, port in node.voters.items()}
        for node in self.nodes.values():
            node.voters = voters

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values() if node.is_running)

    @property
    def login(self) -> Login:
        return Login(self.bootstrap)

    def start(self) -> Self:
        waiting = [node for node in self.nodes.values() if not node.is_running]
        for node in waiting:
            node.spawn()
        for node in waiting:
            node.wait_until_ready()
        return self

    @property
    def logs(self) -> list[ProcessLog]:
        return [node.log for node in self.nodes.values()]

    def kill(self, node_id: int) -> None:
        self.nodes[node_id].kill()

    def restart(self, node_id: int) -> None:
        self.nodes[node_id].start()

    def close(self) -> None:
        """Kill all nodes: asked to stop, the last ones would wait for their quorum."""
        with contextlib.ExitStack() as closing:
            for node in self.nodes.values():
                closing.callback(node.close)
