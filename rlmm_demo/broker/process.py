"""Process of one unmodified broker with its controller, and Kafka's own commands beside it."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Final, Self

from rlmm.errors import EngineFailed
from rlmm_demo.world.service import holds_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rlmm_demo.broker.jars import KafkaJars

_STARTED: Final = "Kafka Server started"
_START_S, _STOP_S = 60.0, 20.0
_ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # A broker that was killed is let in again as soon as it is missed.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
}

_CLASSES: Final = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
_PRINTED: Final = ("partition", "offset", "value")


class BrokerProcess:
    """A broker with *properties*: it starts and stops on one port, and is killed at the end."""

    def __init__(self, jars: KafkaJars, folder: Path, properties: Mapping[str, str]) -> None:
        self._jars = jars
        self._folder = folder
        self._properties = {**_ALONE, **properties}
        # Bound and not listened on: Java may listen there all the same, and nobody else.
        self._ports = [_reserved_port() for _ in range(2)]
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._ports[0].getsockname()[1]}"

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        self._write()
        log = self._folder / "broker.log"
        before = log.stat().st_size if log.exists() else 0
        command = self._jars.command("kafka.Kafka", str(self._folder / "server.properties"))
        with log.open("ab") as written:
            self._process = subprocess.Popen(  # noqa: S603  # the Java of this machine
                command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=written, stderr=written,
                start_new_session=True,  # an interrupt at the keyboard is for us, who end it
            )  # fmt: skip

        def output() -> str:
            return log.read_bytes()[before:].decode(errors="replace")

        process = self._process
        holds_within(_START_S, lambda: _STARTED in output() or process.poll() is not None)
        if _STARTED not in output():
            last = "\n".join(output().splitlines()[-15:])
            raise EngineFailed(f"the broker of the demonstration did not start:\n{last}")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _write(self) -> None:
        port, controller_port = (one.getsockname()[1] for one in self._ports)
        controller = f"127.0.0.1:{controller_port}"
        written = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.data),
            **self._properties,
        }
        lines = "".join(f"{name}={value}\n" for name, value in written.items())
        (self._folder / "server.properties").write_text(lines)
        identity = self.data / "meta.properties"
        if not identity.exists():  # with this file a folder need not be formatted
            self.data.mkdir()
            identity.write_text(f"version=1\ncluster.id={_id()}\nnode.id=1\ndirectory.id={_id()}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(signal.SIGKILL)
        for port in self._ports:
            port.close()


def _reserved_port() -> socket.socket:
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def _id() -> str:
    """Return a random id in Kafka's text form that does not begin with a dash."""
    return "K" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]


class KafkaTools:
    def __init__(self, jars: KafkaJars, bootstrap: str) -> None:
        self._jars = jars
        self._bootstrap = bootstrap

    def run(self, name: str, words: Sequence[str], *more: str) -> str:
        """Return the output of `kafka-<name>`; the demo does not show *more*."""
        command = self._jars.command(
            _CLASSES[name], "--bootstrap-server", self._bootstrap, *words, *more
        )
        done = subprocess.run(  # noqa: S603  # the Java of this machine
            command, capture_output=True, text=True, check=False, timeout=60.0
        )
        if done.returncode != 0:
            reason = (done.stderr.strip() or done.stdout.strip())[-1_000:]
            raise EngineFailed(f"{shown(name, words)} failed: {reason}")
        return done.stdout

    def consume(self, words: Sequence[str], count: int) -> Iterator[tuple[int, int, str]]:
        """Return partition, offset and value of *count* records, fewer after 10 s without one."""
        printed = [
            word for one in _PRINTED for word in ("--formatter-property", f"print.{one}=true")
        ]
        end = ("--max-messages", str(count), "--timeout-ms", "10000")
        for line in self.run("console-consumer", words, *end, *printed).splitlines():
            partition, offset, value = line.split("\t", 2)
            yield int(partition.rpartition(":")[2]), int(offset.rpartition(":")[2]), value


def shown(name: str, words: Sequence[str]) -> str:
    return f"kafka-{name} --bootstrap-server broker:9092 {' '.join(words)}"
