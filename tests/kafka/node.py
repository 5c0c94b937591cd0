"""One Kafka process, broker and controller, with a folder and with ports that restarts keep."""

from __future__ import annotations

import base64
import os
import signal
import socket
from typing import TYPE_CHECKING, Self

from tests.kafka.login import Login
from tests.kafka.process import LEASH, ChildProcess, KeptProcess, ProcessFailed, ProcessLog
from tests.kafka.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.kafka.jars import Jars

STARTED = "Kafka Server started"
TIERED = "Initialized topic-based RLMM resources successfully"
"""Kafka's own metadata manager logs it; a broker asked to stop before takes a minute."""

CLEAN_STATUS = 128 + signal.SIGTERM
"""The status of a broker that was asked to stop and did."""

START_DEADLINE_S = 60.0
CONTROLLER = "CONTROLLER"

ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""What a broker needs that has nobody beside it."""

QUICK = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}
"""A killed broker is missed after this time. With less, a busy machine loses live brokers."""

PATIENT = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "1000"}


def kafka_id() -> str:
    """Return a random id in Kafka's text form; tools would take a leading dash for an option."""
    text = "-"
    while text.startswith("-"):
        text = base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
    return text


class ReservedPort:
    """A loopback port that a Java process can listen on and no other process is given."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def release(self) -> None:
        self._socket.close()


class Node(KeptProcess):
    """One Kafka node; brokers use the first of *listeners*, by name, among themselves."""

    def __init__(
        self,
        jars: Jars,
        folder: Path,
        *,
        node_id: int = 1,
        cluster_id: str | None = None,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        ready: Sequence[str] = (STARTED,),
    ) -> None:
        self.jars = jars
        self.folder = folder
        self.node_id = node_id
        self.cluster_id = cluster_id or kafka_id()
        self.listeners = dict(listeners or {"PLAINTEXT": "PLAINTEXT"})
        self.properties = {**QUICK, **(ONE_NODE if properties is None else properties)}
        self.ready = tuple(ready)
        self.flags = jars.archived
        folder.mkdir(parents=True)
        super().__init__(ProcessLog(folder / "broker.log"))
        self._ports = {name: ReservedPort() for name in [*self.listeners, CONTROLLER]}
        self.voters = {node_id: self._ports[CONTROLLER].number}
        self._started_at = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def configuration(self) -> Path:
        return self.folder / "server.properties"

    def address(self, listener: str | None = None) -> str:
        name = listener or next(iter(self.listeners))
        return f"{self._host(name)}:{self._ports[name].number}"

    @property
    def bootstrap(self) -> str:
        return self.address()

    @property
    def login(self) -> Login:
        return Login(self.bootstrap)

    @property
    def tools(self) -> Tools:
        return Tools(self.jars, self.bootstrap)

    def _host(self, listener: str) -> str:
        """Certificates are made out for the name; everything else needs no look-up."""
        is_tls = self.listeners.get(listener, "").endswith("SSL")
        return "localhost" if is_tls else "127.0.0.1"

    def write_configuration(self) -> None:
        listeners = ",".join(f"{name}://{self.address(name)}" for name in self._ports)
        protocols = {**self.listeners, CONTROLLER: "PLAINTEXT"}
        voters = ",".join(f"{voter}@127.0.0.1:{port}" for voter, port in self.voters.items())
        written = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "listeners": listeners,
            "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
            "inter.broker.listener.name": next(iter(self.listeners)),
            "controller.listener.names": CONTROLLER,
            "controller.quorum.voters": voters,
            "log.dirs": str(self.data),
            "auto.create.topics.enable": "false",  # a topic that is asked for is not there yet
            **self.properties,
        }
        lines = "".join(f"{name}={value}\n" for name, value in written.items())
        self.configuration.write_text(lines)

    def write_identity(self) -> None:
        """Format the data folder as this node's."""
        identity = self.data / "meta.properties"
        if not identity.exists():
            self.data.mkdir(exist_ok=True)
            identity.write_text(
                f"version=1\ncluster.id={self.cluster_id}\n"
                f"node.id={self.node_id}\ndirectory.id={kafka_id()}\n"
            )

    def spawn(self) -> None:
        assert not self.is_running, "is running already"
        self.end(signal.SIGKILL)
        self.write_configuration()
        self.write_identity()
        command = self.jars.command(
            LEASH,
            "kafka.Kafka",
            str(self.configuration),
            log4j="broker-log4j2.properties",
            flags=self.flags,
        )
        self._started_at = self.log.position
        self._process = ChildProcess(command, self.folder, self.log)

    def wait_until_ready(self, deadline_s: float = START_DEADLINE_S) -> None:
        """Wait until the node serves; kill one that does not and show its last lines."""
        try:
            for line in self.ready:
                self.log.wait_for(line, position=self._started_at, deadline_s=deadline_s)
        except ProcessFailed as error:
            status = self.end(signal.SIGKILL)
            raise ProcessFailed(
                f"Kafka node {self.node_id} did not start (status {status}): {error}"
            ) from error

    def start(self) -> Self:
        self.spawn()
        self.wait_until_ready()
        return self

    def close(self) -> None:
        self.kill()
        for port in self._ports.values():
            port.release()
