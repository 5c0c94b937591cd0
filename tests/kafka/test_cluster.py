"""Three nodes: the loss of one costs nothing that was acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.clients import consume, create_topic, produce, wait_for_leader

if TYPE_CHECKING:
    from tests.kafka.cluster import Cluster


async def test_cluster_when_a_leader_is_killed_elects_another(kafka_cluster: Cluster) -> None:
    """After a leader's kill another node leads with all acknowledged records."""
    await create_topic(kafka_cluster.login, "led", replicas=3)
    await produce(kafka_cluster.login, "led", [b"one", b"two"])
    killed = await wait_for_leader(kafka_cluster.login, "led")

    kafka_cluster.kill(killed)
    leader = await wait_for_leader(kafka_cluster.login, "led", besides=killed)
    assert leader in kafka_cluster.nodes
    assert leader != killed
    await produce(kafka_cluster.login, "led", [b"three"])
    records = await consume(kafka_cluster.login, "led", count=3)
    assert [record.value for record in records] == [b"one", b"two", b"three"]

    kafka_cluster.restart(killed)
    assert len(kafka_cluster.bootstrap.split(",")) == 3
