"""Kafka's own metadata manager as a process, in Java `java/rlmm/kafka/StockPeer.java`."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Any

from rlmm.base.closing import ClosedByWith
from rlmm.metadata.segment import SegmentMetadata
from rlmm_conformance.event_forms import event_form, event_of
from tests.kafka.process import GRACE_S, KILL_DEADLINE_S, ProcessFailed, ProcessLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_conformance.fields import Json
    from tests.kafka.jars import Jars

ANSWER_DEADLINE_S = 40.0
WRITING_DEADLINE_S = 300.0
ASKING_DEADLINE_S = 300.0
PREFIX = "remote.log.metadata."


class StockRefused(Exception):
    def __init__(self, java_class: str, message: str) -> None:
        super().__init__(f"{java_class}: {message}")
        self.java_class = java_class


class StockPeer(ClosedByWith):
    """A stock metadata manager outside any broker; it creates the metadata topic if needed."""

    def __init__(
        self,
        jars: Jars,
        folder: Path,
        bootstrap: str,
        *,
        partitions: int = 5,
        replicas: int = 1,
        broker_id: int = 77,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        (folder / "data").mkdir(parents=True)
        configuration = {
            "broker.id": str(broker_id),
            "log.dir": str(folder / "data"),
            f"{PREFIX}common.client.bootstrap.servers": bootstrap,
            f"{PREFIX}common.client.security.protocol": "PLAINTEXT",
            f"{PREFIX}topic.num.partitions": str(partitions),
            f"{PREFIX}topic.replication.factor": str(replicas),
            f"{PREFIX}topic.min.isr": str(min(2, replicas)),
            f"{PREFIX}initialization.retry.interval.ms": "200",
            **(settings or {}),
        }
        command = jars.command(
            "rlmm.kafka.StockPeer",
            *(f"{key}={value}" for key, value in configuration.items()),
            log4j="tool-log4j2.properties",
            flags=jars.archived,
        )
        self.log = ProcessLog(folder / "stock.log")
        self._answers: queue.Queue[str] = queue.Queue()
        # The end of its input ends this process too, so that it needs no other leash.
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        answers = threading.Thread(target=self._listen, args=(self._process.stdout,))
        answers.start()
        self._readers = [answers, self.log.follow(self._process.stderr)]

    @property
    def logs(self) -> list[ProcessLog]:
        return [self.log]

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._answers.put(line)
        self._answers.put("")

    def ask(self, op: str, deadline_s: float = ANSWER_DEADLINE_S, /, **command: Any) -> Any:
        """Send one command and return the answer. Raises `StockRefused` when the manager threw."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"op": op, **command}) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=deadline_s)
        except (OSError, queue.Empty) as error:
            raise self._failed(op) from error
        if not line:
            raise self._failed(op)
        answer = json.loads(line)
        if "error" in answer:
            raise StockRefused(answer["error"], answer["message"])
        return answer["ok"]

    def _failed(self, op: str) -> ProcessFailed:
        status = self._process.poll()
        return ProcessFailed(
            f"the stock manager did not answer {op!r} (status {status}), it said:\n"
            f"{self.log.tail()}"
        )

    def assign(
        self, *leaders: TopicIdPartition, follows: tuple[TopicIdPartition, ...] = ()
    ) -> None:
        """Assign user partitions; the manager reads their history in the background."""
        self.ask(
            "assign",
            leaders=[partition_form(one) for one in leaders],
            followers=[partition_form(one) for one in follows],
        )

    def stop_partitions(self, *partitions: TopicIdPartition) -> None:
        self.ask("stop", partitions=[partition_form(one) for one in partitions])

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return bool(self.ask("ready", partition=partition_form(partition)))

    def list(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> tuple[SegmentMetadata, ...]:
        only = {} if epoch is None else {"epoch": epoch}
        forms = self.ask("list", partition=partition_form(partition), **only)
        return tuple(segment_of(form) for form in forms)

    def lookup(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        where = {"partition": partition_form(partition), "epoch": epoch, "offset": offset}
        form = self.ask("lookup", **where)
        return None if form is None else segment_of(form)

    def next_with_txn_index(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> SegmentMetadata | None:
        where = {"partition": partition_form(partition), "epoch": epoch, "offset": offset}
        form = self.ask("next_with_txn_index", **where)
        return None if form is None else segment_of(form)

    def ask_all(
        self, partition: TopicIdPartition, questions: Sequence[Mapping[str, Json]]
    ) -> tuple[Sequence[dict[str, Json]], Sequence[int]]:
        """Ask about one user partition; return `{"ok"}` or `{"error"}` of each, and its µs."""
        told = self.ask(
            "ask_all",
            ASKING_DEADLINE_S,
            partition=partition_form(partition),
            questions=list(questions),
        )
        return told["answers"], told["latencies_us"]

    def highest(self, partition: TopicIdPartition, epoch: int) -> int | None:
        highest = self.ask("highest", partition=partition_form(partition), epoch=epoch)
        return None if highest is None else int(highest)

    def size(self, partition: TopicIdPartition, epoch: int) -> int:
        return int(self.ask("size", partition=partition_form(partition), epoch=epoch))

    def add(self, segment: SegmentMetadata) -> None:
        """Publish the start of a copy, and wait until the manager has read it back."""
        self.ask("write", event=event_form(segment))

    def update(self, update: SegmentUpdate) -> None:
        self.ask("write", event=event_form(update))

    def delete_partition(self, delete: PartitionDelete) -> None:
        self.ask("write", event=event_form(delete))

    def write_all(
        self, events: Sequence[SegmentMetadata | SegmentUpdate | PartitionDelete], in_flight: int
    ) -> tuple[float, Sequence[int]]:
        """Publish *events*, *in_flight* at a time; return the seconds of all, the µs of each."""
        forms = [event_form(event) for event in events]
        told = self.ask("write_all", WRITING_DEADLINE_S, events=forms, in_flight=in_flight)
        return told["seconds"], told["latencies_us"]

    def close(self) -> int:
        """Close its input, kill it after a grace time, and return its status, 0 when clean."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended before it had read everything
            self._process.stdin.close()
        try:
            status = self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait(KILL_DEADLINE_S)
        for reader in self._readers:
            reader.join(KILL_DEADLINE_S)
        return status


def partition_form(partition: TopicIdPartition) -> dict[str, Json]:
    return {
        "topic_id": partition.topic_id.hex(),
        "topic": partition.topic,
        "partition": partition.partition,
    }


def segment_of(form: Json) -> SegmentMetadata:
    event = event_of(form)
    assert isinstance(event, SegmentMetadata)
    return event
