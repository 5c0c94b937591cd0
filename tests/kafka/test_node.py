"""One broker: it serves, stops, comes back on its port, and ends with its starter."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.kafka.clients import consume, create_topic, produce
from tests.kafka.node import CLEAN_STATUS, STARTED
from tests.kafka.process import ProcessFailed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.jars import Jars
    from tests.kafka.tiered import TieredKafka

STARTER = """
import sys
from pathlib import Path
from tests.kafka.node import Node
from tests.kafka.prepared import prepare

node = Node(prepare(), Path(sys.argv[1])).start()
sys.stdout.write(f"{node.pid}\\n")
sys.stdout.flush()
sys.stdin.read()
"""
END_DEADLINE_S = 20


async def test_broker_when_written_to_gives_back_the_same(kafka_broker: TieredKafka) -> None:
    """A client reads another client's records in order, at the acknowledged offsets."""
    await create_topic(kafka_broker.login, "written", partitions=2)
    values = [b"first", b"second", b"third"]
    # Brokers take no time that is to come, and their retention takes away what is a week old.
    at_ms = time.time_ns() // 1_000_000 - 3_600_000
    offsets = await produce(kafka_broker.login, "written", values, partition=1, timestamp_ms=at_ms)
    records = await consume(kafka_broker.login, "written", partition=1, count=3)
    assert offsets == [0, 1, 2]
    assert [record.value for record in records] == values
    assert [record.timestamp for record in records] == [at_ms + n for n in range(3)]


async def test_node_when_killed_or_stopped_comes_back_on_its_port(fresh_kafka: FreshKafka) -> None:
    """A killed or stopped node serves its acknowledged records at its address again."""
    node = fresh_kafka.node().start()
    address = node.bootstrap
    await create_topic(node.login, "kept")
    await produce(node.login, "kept", [b"before the kill"])

    node.kill()
    assert not node.is_running
    node.start()
    await produce(node.login, "kept", [b"before the stop"])

    assert node.stop() == CLEAN_STATUS == 143
    node.start()
    records = await consume(node.login, "kept", count=2)
    assert [record.value for record in records] == [b"before the kill", b"before the stop"]
    assert node.bootstrap == address
    assert len([line for line in node.log.since(0) if STARTED in line]) == 3


def test_node_when_started_uses_the_class_archive(fresh_kafka: FreshKafka, tmp_path: Path) -> None:
    """The class-data archive fits: without a word it would be left out where it does not."""
    node, loaded = fresh_kafka.node(), tmp_path / "classes"
    node.flags = [*node.flags, f"-Xlog:class+load:file={loaded}"]
    node.start()
    sources = dict(
        line.split("] ")[-1].split(" source: ", 1)
        for line in loaded.read_text().splitlines()
        if " source: " in line
    )
    for name in ("rlmm.kafka.Leash", "kafka.Kafka", "kafka.server.BrokerServer"):
        assert sources[name] == "shared objects file (top)"


def test_node_when_a_property_is_bad_shows_why_it_did_not_start(fresh_kafka: FreshKafka) -> None:
    """A start that fails ends at once with the broker's output from the fatal line on."""
    node = fresh_kafka.node({"log.retention.ms": "a while"})
    with pytest.raises(ProcessFailed, match=r"Invalid value a while for configuration") as raised:
        node.start()
    assert f"Kafka node 1 did not start (status 1): it ended before it said {STARTED!r}" in str(
        raised.value
    )
    assert not node.is_running


def test_node_when_its_starter_is_killed_ends(kafka_jars: Jars, tmp_path: Path) -> None:
    """A broker ends by itself when its starter is killed."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path / "node")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        broker = os.pidfd_open(int(starter.stdout.readline()))
        try:
            assert select.select([broker], [], [], 0)[0] == [], "ended before it had to"
            starter.send_signal(signal.SIGKILL)
            assert select.select([broker], [], [], END_DEADLINE_S)[0] == [broker]
        finally:
            os.close(broker)
