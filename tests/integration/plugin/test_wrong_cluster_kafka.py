"""
A plugin and a service of different clusters: the service stores nothing, and the log names both.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.ids import TopicIdPartition, Uuid
from tests.kafka.node import kafka_id
from tests.kafka.stock_manager import StockRefused
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.builders import segment_id, started
from tests.support.server.serve_process import FOLDER, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.plugin.conftest import NewPeer
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.stock_manager import StockPeer

SAID_S_MAX = 60.0
OF_A_SERVICE = ("--mode", "serve", "--assignment", "broker")


@pytest.fixture
def peer_of(socket_path: Path, new_peer: NewPeer) -> Callable[[str], StockPeer]:
    timeouts = {f"sidecar.{name}.timeout.ms": "1000" for name in ("write", "listing", "task")}
    return lambda cluster_id: new_peer("127.0.0.1:9", cluster_id, str(socket_path), more=timeouts)


def refusal(ask: Callable[..., object], *about: object) -> str:
    with pytest.raises(StockRefused) as raised:
        ask(*about)
    return raised.value.java_class


def assert_told_nothing(peer: StockPeer, partition: TopicIdPartition) -> None:
    """Check that every question and write gets an error after which a broker tries again."""
    assert not peer.is_ready(partition)
    refusals = [
        refusal(peer.lookup, partition, 0, 0),
        refusal(peer.next_with_txn_index, partition, 0, 0),
        refusal(peer.highest, partition, 0),
        refusal(peer.size, partition, 0),
        refusal(peer.list, partition),
        refusal(peer.list, partition, 0),
    ]
    assert {java_class.rpartition(".")[2] for java_class in refusals} == {
        "ReplicaNotAvailableException"
    }
    written = refusal(peer.add, started(segment_id(1, partition)))
    assert written.endswith("RetriableRemoteStorageException")


async def test_plugin_when_the_log_is_the_services_own_then_told_nothing_and_both_are_named(
    peer_of: Callable[[str], StockPeer], socket_path: Path, tmp_path: Path
) -> None:
    """Both sides name both cluster ids when the log is embedded, and no event is stored."""
    partition = TopicIdPartition(Uuid.parse(kafka_id()), "orders", 0)
    cluster_id = kafka_id()
    async with serving(tmp_path, *OF_A_SERVICE, "--sidecar-unix-path", str(socket_path)) as served:
        await served.until("listening at")
        own_id = (tmp_path / FOLDER / "log" / "meta.properties").read_text()
        own_id = own_id.partition("cluster.id=")[2].splitlines()[0]
        peer = peer_of(cluster_id)
        peer.assign(partition)
        line = peer.log.wait_for("wrong-cluster", deadline_s=SAID_S_MAX)
        assert " WARN " in line
        assert f"asked for is cluster {cluster_id}, served is {own_id}" in line
        assert_told_nothing(peer, partition)
        assert peer.close() == 0
        assert sum("wrong-cluster" in line for line in peer.log.since(0)) == 1
        assert peer.log.errors() == []
        await served.end(signal.SIGTERM)
    logs = (tmp_path / FOLDER / "log").glob("__remote_log_metadata-*/*.log")
    assert [file.stat().st_size for file in logs] == [0] * 50


@pytest.mark.long
async def test_plugin_when_the_service_finds_another_cluster_late_then_told_nothing(
    peer_of: Callable[[str], StockPeer], socket_path: Path, fresh_kafka: FreshKafka, tmp_path: Path
) -> None:
    """The service refuses an early broker once it knows the other cluster, and the log names it."""
    node = fresh_kafka.node()
    partition = TopicIdPartition(Uuid.parse(kafka_id()), "orders", 0)
    arguments = [
        *OF_A_SERVICE, "--sidecar-unix-path", str(socket_path),
        "--bootstrap-server", node.bootstrap, "--kafka-topic-is-created", "true",
        "--kafka-topic-num-partitions", str(METADATA_PARTITIONS),
        "--kafka-topic-replication-factor", "1", "--kafka-topic-min-isr", "1",
    ]  # fmt: skip
    async with serving(tmp_path, *arguments) as served:
        await served.until("listening at")
        peer = peer_of(kafka_id())
        peer.assign(partition)
        peer.log.wait_for("not-ready", deadline_s=SAID_S_MAX)
        node.start()
        line = peer.log.wait_for("wrong-cluster", deadline_s=SAID_S_MAX)
        assert " WARN " in line
        assert node.cluster_id in line
        assert_told_nothing(peer, partition)
        assert peer.log.errors() == []
        await served.end(signal.SIGTERM)
