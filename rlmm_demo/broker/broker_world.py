"""Broker world: an unmodified Kafka broker loads our plugins and tiers through rlmm."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlmm.errors import EngineFailed
from rlmm.log.files.log_folder import TOPIC as METADATA_TOPIC
from rlmm.metadata.ids import Uuid
from rlmm_demo.broker import clients
from rlmm_demo.broker.process import BrokerProcess, KafkaTools, shown
from rlmm_demo.world.records import PARTITIONS, SEGMENT_BYTES, TOPIC
from rlmm_demo.world.service import holds_within
from rlmm_demo.world.world import DemoWorld, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_demo.broker.jars import KafkaJars
    from rlmm_demo.world.records import RecordPortion

_METADATA_PARTITIONS: Final = 16
_TOPIC: Final = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "retention.ms": str(86_400_000),
    "file.delete.delay.ms": "100",
}
_NOTHING_LOCAL: Final = {"local.retention.ms": "1000", "local.retention.bytes": "1"}
_PACE: Final = "remote.log.manager.copy.max.bytes.per.second"
_QUICK: Final = {
    # What takes minutes in production takes a second here.
    "remote.log.manager.task.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "100",
    # So slowly does it copy itself that the job has something to do. Each partition that waits for
    # its share keeps a thread, and without one no copy begins.
    _PACE: "8192",
    "remote.log.manager.copy.quota.window.num": "600",  # of a second each: no second share for long
    "remote.log.manager.copier.thread.pool.size": "20",
}


_CREATE: Final = (
    "--create", "--topic", TOPIC, "--partitions", str(PARTITIONS),
    *(word for name, value in _TOPIC.items() for word in ("--config", f"{name}={value}")),
)  # fmt: skip
_CONSUME: Final = (
    "--topic", TOPIC, "--from-beginning", "--isolation-level", "read_committed",
)  # fmt: skip


class BrokerWorld(DemoWorld):
    has_broker = True
    producer = shown("topics", _CREATE)
    reader = "Kafka's console consumer"

    def __init__(self, folder: Path, socket: Path, jars: KafkaJars) -> None:
        super().__init__(folder, socket)
        self._jars = jars
        self._broker: BrokerProcess
        # It says on standard error what it tries again, which would stand between the screens.
        logging.getLogger("aiokafka").addHandler(logging.NullHandler())

    def start(self) -> dict[str, str]:
        """Start store, broker and service; service and plugin wait for each other."""
        self.open_store()
        properties = {
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": (
                "io.rlmm.kafka.storage.RlmmRemoteStorageManager"
            ),
            "remote.log.storage.manager.class.path": self._jars.storage_manager,
            "remote.log.metadata.manager.class.name": "io.rlmm.kafka.RlmmRemoteLogMetadataManager",
            "remote.log.metadata.manager.class.path": self._jars.metadata_manager,
            "remote.log.metadata.manager.listener.name": "PLAINTEXT",
            "rlmm.config.sidecar.address": str(self.socket),
            **self.store.properties(),
            **_QUICK,
        }
        self._broker = self.closing.enter_context(
            BrokerProcess(self._jars, self.folder / "broker", properties)
        )
        self.start_service()
        self._broker.start()
        return {"Kafka": self._jars.kafka_version, **versions()}

    def service_flags(self) -> list[str]:
        return [
            "--bootstrap-server", self._broker.bootstrap, "--mode", "serve",
            "--assignment", "broker", "--kafka-topic-is-created", "true",
            "--kafka-topic-num-partitions", str(_METADATA_PARTITIONS),
            "--kafka-topic-replication-factor", "1", "--kafka-topic-min-isr", "1",
        ]  # fmt: skip

    def produce(self, portions: Sequence[RecordPortion]) -> list[list[int]]:
        self._tools().run("topics", _CREATE)
        offsets = clients.produce(self._broker.bootstrap, TOPIC, portions)
        written = (self.log_folder() / f"{TOPIC}-0" / "partition.metadata").read_text()
        self.topic_id = Uuid.parse(written.partition("topic_id:")[2].strip())
        self.wait_assigned()
        return offsets

    def log_folder(self) -> Path:
        return self._broker.data

    def copy_words(self) -> list[str]:
        return [
            "tier", "run", "--adopt", "--topic", TOPIC, "--log-dir", str(self.log_folder()),
            "--bootstrap-server", self._broker.bootstrap,
        ]  # fmt: skip

    def forget_local(self) -> str:
        """Let retention delete the local copies; the broker rolls active segments first."""
        settings = ",".join(f"{name}={value}" for name, value in _NOTHING_LOCAL.items())
        alter, change = ("--alter", "--entity-type"), "--add-config"
        changes = (
            (*alter, "brokers", "--entity-name", "1", change, f"{_PACE}={SEGMENT_BYTES * 100}"),
            (*alter, "topics", "--entity-name", TOPIC, change, settings),
        )
        for words in changes:
            self._tools().run("configs", words)

        def is_gone() -> bool:
            return not self.local_bytes() and len(self.log_files()) <= PARTITIONS

        if not holds_within(60.0, is_gone):
            raise EngineFailed("the broker did not delete its local copies")
        return "\n".join(shown("configs", words) for words in changes)

    def read_all(self, count: int) -> tuple[str, list[tuple[int, int, bytes]]]:
        rows = self._tools().consume(_CONSUME, count)
        return shown("console-consumer", _CONSUME), [
            (partition, offset, value.encode()) for partition, offset, value in rows
        ]

    def append_metadata(self, place: int, values: Iterable[bytes]) -> None:
        clients.append(self._broker.bootstrap, METADATA_TOPIC, place, values)

    def metadata_flags(self) -> list[str]:
        return ["--bootstrap-server", self._broker.bootstrap]

    def lose_metadata(self) -> str:
        """Delete the topic while no service runs, so the broker never sees it empty."""
        delete = ("--delete", "--topic", METADATA_TOPIC)
        create = (
            "--create", "--topic", METADATA_TOPIC, "--partitions", str(_METADATA_PARTITIONS),
            "--config", "cleanup.policy=delete", "--config", "retention.ms=-1",
        )  # fmt: skip
        for words in (delete, create):
            self._tools().run("topics", words)
        return "\n".join(shown("topics", words) for words in (delete, create))

    def _tools(self) -> KafkaTools:
        return KafkaTools(self._jars, self._broker.bootstrap)

    def before_rebuild(self) -> None:
        """Do nothing: the rebuild writes events into the topic itself."""

    def abandon(self, partition: TopicIdPartition) -> None:
        """Do nothing: neither the cluster nor the metadata knows the topic."""

    def after_rebuild(self) -> None:
        """Start a service without the snapshots of the deleted topic."""
        self.forget_snapshots()
        self.start_service()
