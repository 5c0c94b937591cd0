"""From Kafka's own metadata manager to ours and back, as `docs/switching.md` has it."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING

import pytest

from tests.kafka import switching_page
from tests.kafka.clients import produce, until
from tests.kafka.copies import copied_again, cut_short, finished
from tests.kafka.ledger import LEVELS, Ledger, Traffic, read
from tests.kafka.node import CLEAN_STATUS, STARTED, TIERED, ReservedPort
from tests.kafka.placement import placed
from tests.kafka.plugin import METADATA_MANAGER
from tests.kafka.plugin_cluster import NODES, PluginCluster
from tests.kafka.sidecar import CLEAN_STATUS as SIDECAR_ENDED
from tests.kafka.sidecar import Sidecar
from tests.kafka.steady import steady
from tests.kafka.switching_page import Place
from tests.kafka.tiered import TieredKafka, tiered_node
from tests.support.plugin.traffic import assert_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rlmm.metadata.segment import SegmentMetadata
    from tests.kafka.jars import Jars
    from tests.kafka.node import Node
    from tests.kafka.steady import Steady

TOPIC = "orders"
EVERYWHERE = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
"""Each broker leads one partition and follows the others."""

BEFORE = "Before"
BESIDE = "A service beside each broker"
EACH = "Broker by broker"
AFTER = "After the last one"
BACK = "Back"


def test_the_lines_when_they_are_taken_out_again_are_those_that_were_added() -> None:
    """The page removes the properties that it adds, and the plugin's README lists them too."""
    added = switching_page.properties(EACH)
    assert set(switching_page.properties(BACK)) == set(added)
    readme = (switching_page.PAGE.parent.parent / "broker_adapter/java/README.md").read_text()
    for name, value in added.items():
        assert f"\n{name}={value}\n" in readme


class Switching:
    def __init__(self, cluster: PluginCluster, plugins: Path) -> None:
        self.cluster = cluster
        self._plugins = plugins

    def place(self, node_id: int) -> Place:
        cluster = self.cluster
        return Place(
            cluster.tools,
            cluster.login.bootstrap,
            f"{self._plugins / METADATA_MANAGER}/*",
            cluster.sidecars[node_id].address,
            cluster.http(node_id),
        )

    async def switch(self, node_id: int) -> None:
        cluster = self.cluster
        await self.place(node_id).carry_out(BESIDE)
        await asyncio.to_thread(cluster.sidecars[node_id].start)
        cluster.have_ours(node_id, self.place(node_id).lines_to_add(EACH))
        await self.restart(node_id)
        await self.place(node_id).carry_out(EACH)

    async def go_back(self, node_id: int) -> None:
        cluster = self.cluster
        cluster.have_kafkas(node_id, switching_page.properties(BACK))
        await self.restart(node_id)
        assert await asyncio.to_thread(cluster.sidecars[node_id].stop) == SIDECAR_ENDED
        await self.place(node_id).carry_out(BACK)

    async def restart(self, node_id: int) -> None:
        node = self.cluster.nodes[node_id]
        assert await asyncio.to_thread(node.stop) == CLEAN_STATUS
        await asyncio.to_thread(node.start)

    async def until_each_tiers(self, clients: Steady) -> None:
        wanted = {number: replicas[0] for number, replicas in enumerate(EVERYWHERE)}
        found = await placed(self.cluster, TOPIC)
        assert {number: one.leader for number, one in found.items()} == wanted
        known = {one.id for one in self.copied()}
        await clients.until_written(45)
        await until(
            lambda: {one.broker_id for one in self.copied() if one.id not in known} == set(NODES),
            "each broker copied a segment",
            deadline_s=60,
        )

    def copied(self) -> list[SegmentMetadata]:
        return finished(self.cluster.at(1).metadata_events(TOPIC))

    async def until_all_is_read(self, ledger: Ledger) -> None:
        for partition in range(len(EVERYWHERE)):
            expected = ledger.expected(LEVELS[1], partition)
            behind = 1 + max(one.offset for one in expected)
            found = await read(
                self.cluster.login, TOPIC, LEVELS[1], partition=partition, behind=behind
            )
            assert found == expected


@pytest.fixture
def switching(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Iterator[Switching]:
    with PluginCluster(kafka_jars, tmp_path / "cluster", plugins) as cluster:
        for node_id in NODES:
            cluster.have_kafkas(node_id, switching_page.properties(BACK))
        cluster.start(with_sidecars=False)
        yield Switching(cluster, plugins)


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_three_brokers_when_switched_and_back_lose_nothing(switching: Switching) -> None:
    """A mixed cluster tiers on; no range is copied twice and each record is read once."""
    cluster, ledger = switching.cluster, Ledger(TOPIC)
    partitions = await cluster.create_topic(TOPIC, EVERYWHERE)
    async with steady(cluster.login, ledger, random.Random(8), partitions=3) as clients:
        await switching.until_each_tiers(clients)
        await switching.place(1).carry_out(BEFORE)
        for node_id in NODES:
            await switching.switch(node_id)
            await cluster.until_followed(partitions, range(1, node_id + 1))
            await switching.until_each_tiers(clients)
            await switching.until_all_is_read(ledger)
        assert_nothing_is_gone(await switching.place(1).carry_out(AFTER))
        for node_id in NODES:
            await switching.go_back(node_id)
            await switching.until_each_tiers(clients)
            await switching.until_all_is_read(ledger)
    for number in range(3):
        assert clients.of(number) == ledger.expected(LEVELS[0], number)
    await read_from_the_tier(cluster, ledger)
    events = cluster.at(1).metadata_events(TOPIC)
    assert copied_again(events) == []
    assert len(cut_short(events)) <= 2 * len(NODES) * len(EVERYWHERE)  # one a restart and leader


async def read_from_the_tier(cluster: PluginCluster, ledger: Ledger) -> None:
    for number, where in (await placed(cluster, ledger.topic)).items():
        await cluster.at(where.leader).wait_until_trimmed(ledger.topic, number)
        await assert_read(cluster.login, ledger, number)


def assert_nothing_is_gone(printed: Mapping[str, str]) -> None:
    (diff,) = [
        json.loads(output) for line, output in printed.items() if line.startswith("rlmm diff")
    ]
    assert len(diff["items"]) == len(EVERYWHERE)
    assert all(one["changes"].get("segment-gone", 0) == 0 for one in diff["items"])


@pytest.fixture
def sidecar_alone(tmp_path: Path) -> Iterator[tuple[Sidecar, str]]:
    port = ReservedPort()
    http = f"127.0.0.1:{port.number}"
    yield Sidecar(tmp_path / "sidecar", "", arguments=["--http-listen", http]), http
    port.release()


@pytest.mark.long
async def test_one_broker_when_switched_and_back_has_each_record_and_deletes_what_others_copied(
    kafka_jars: Jars, plugins: Path, tmp_path: Path, sidecar_alone: tuple[Sidecar, str]
) -> None:
    """Each manager reads the other's records, and deletes a topic that the other copied."""
    ledger, (sidecar, http) = Ledger(TOPIC), sidecar_alone
    with tiered_node(kafka_jars, tmp_path / "node") as node, sidecar:
        kafka, sidecar.bootstrap = TieredKafka(node.start()), node.bootstrap
        plugin = f"{plugins / METADATA_MANAGER}/*"
        may_find = frozenset({"REPLICATION-LOW"})
        place = Place(kafka.tools, node.bootstrap, plugin, sidecar.address, http, may_find)
        traffic = Traffic(kafka.login, ledger, random.Random(9))
        await kafka.create_topic(TOPIC)
        await write_and_read(kafka, traffic)
        await tier_a_topic(kafka, "of-kafkas")
        await place.carry_out(BEFORE)

        await place.carry_out(BESIDE)
        sidecar.start()
        node.properties |= place.lines_to_add(EACH)
        node.ready = (STARTED,)
        restart(node)
        await place.carry_out(EACH)
        await delete_from_the_tier(kafka, "of-kafkas")
        await write_and_read(kafka, traffic)
        await tier_a_topic(kafka, "of-ours")
        await place.carry_out(AFTER)

        for name in switching_page.properties(BACK):
            del node.properties[name]
        node.ready = (STARTED, TIERED)
        restart(node)
        assert sidecar.stop() == SIDECAR_ENDED
        await place.carry_out(BACK)
        await delete_from_the_tier(kafka, "of-ours")
        await write_and_read(kafka, traffic)
        assert copied_again(kafka.metadata_events(TOPIC)) == []


def restart(node: Node) -> None:
    assert node.stop() == CLEAN_STATUS
    node.start()


async def write_and_read(kafka: TieredKafka, traffic: Traffic) -> None:
    await assert_read(kafka.login, traffic.ledger)
    await traffic.everything(3)
    await kafka.wait_until_trimmed(TOPIC)
    await assert_read(kafka.login, traffic.ledger)


async def tier_a_topic(kafka: TieredKafka, topic: str) -> None:
    await kafka.create_topic(topic)
    await produce(kafka.login, topic, [b"x" * 500] * 60)
    await kafka.wait_until_trimmed(topic)
    assert kafka.objects(topic)


async def delete_from_the_tier(kafka: TieredKafka, topic: str) -> None:
    await kafka.delete_topic(topic)
    await until(lambda: not kafka.objects(topic), f"{topic} left the tier")
