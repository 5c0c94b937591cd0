"""Whose metadata a client is answered from: never that of another cluster than it named."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.base import threads
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import ConfigError, InvalidArgument, NotReady, RlmmError, WrongCluster
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar import cluster_file
from rlmm.sidecar.cluster_discovery import ProcessEngines, require_no_tables
from rlmm.sidecar.cluster_file import LEARNED_FILE, read_learned
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.settings import AssignmentLimits
from tests.support.builders import tp
from tests.support.engines import ROOM, World, until, until_open
from tests.support.server.frame_servers import FixedEngines, RoleDoor, listening, serving_world
from tests.support.server.raw_frames import connected, greeted, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.engine.engine import Engine


ORDERS = tp("orders", 7)


async def test_hello_when_it_names_the_cluster_then_its_engine_answers() -> None:
    """Of several engines that of the named cluster answers; a hello without a name is refused."""
    one, two = World(1), World(2)
    async with one.engine() as first, two.engine() as second, listening(first, second) as served:
        await until_open(first, 0)
        await until_open(second, 0, 1)
        for world, count in ((one, 1), (two, 2)):
            async with connected(served.path) as client:
                said = await client.hello(cluster_id=world.topic.cluster_id)
                assert said["partition_count"] == count
        async with connected(served.path) as client:
            with pytest.raises(WrongCluster) as caught:
                await client.hello()
            assert one.topic.cluster_id in str(caught.value)
            assert two.topic.cluster_id in str(caught.value)
            assert await client.ended()


async def test_hello_when_it_names_another_cluster_then_refused_with_both_ids() -> None:
    """A broker of another cluster is never answered from this one's metadata."""
    world = World(1)
    async with serving_world(world) as served, connected(served.path) as client:
        with pytest.raises(WrongCluster) as caught:
            await client.hello(cluster_id="elsewhere")
        assert "elsewhere" in str(caught.value)
        assert world.topic.cluster_id in str(caught.value)
        assert await client.ended()


async def test_f95_hello_when_the_log_is_not_reached_then_taken_and_reads_are_not_ready() -> None:
    """F95: while the log's cluster is unknown, hello succeeds and reads are not ready."""
    for named, code in (("right", "unknown-partition"), ("wrong", "wrong-cluster")):
        world = World(1)
        log = world.log()
        reachable = asyncio.Event()
        identity = log.identity

        async def late(*, timeout_s: float, identity=identity, reachable=reachable):  # type: ignore[no-untyped-def]
            await reachable.wait()
            return await identity(timeout_s=timeout_s)

        log.identity = late  # type: ignore[method-assign]
        cluster_id = world.topic.cluster_id if named == "right" else "elsewhere"
        async with (
            world.engine(log=log) as engine,
            listening(engine) as served,
            connected(served.path) as client,
        ):
            said = await client.hello(cluster_id=cluster_id, broker_id=1)
            assert (said["cluster_id"], said["topic_id"]) == (None, None)
            with pytest.raises(NotReady) as caught:
                await client.call("segment_for", wire(ORDERS), 0, 5)
            assert caught.value.reason == "connecting"
            with pytest.raises(InvalidArgument):
                await client.call("segment_for", wire(ORDERS), -1, 5)
            assert await client.call("is_ready", wire(ORDERS)) is False
            reachable.set()
            await until_open(engine, 0)
            if named == "right":
                await client.call("assign", [wire(ORDERS)], [], True)
            answer = await client.answer(client.send("segment_for", wire(ORDERS), 0, 5))
            assert answer.error is not None
            assert answer.error.code == code


class Learning:
    def __init__(self, folder: Path, clusters_max: int) -> None:
        self.topics: dict[str, MemoryTopic] = {}
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.engines = ProcessEngines(
            folder, self._plan, clusters_max=clusters_max, follows_brokers=lambda _: True
        )
        self.service = Service({"clusters": self.engines.run})
        self.engines.begin(self.service)

    def _plan(self, cluster_id: str, servers: tuple[str, ...]) -> EnginePlan:
        self.asked.append((cluster_id, servers))

        async def open_log() -> LogOpener:
            topic = self.topics.setdefault(cluster_id, MemoryTopic(1))
            if not cluster_id.startswith("wrong"):
                topic.cluster_id = cluster_id
            return LogOpener(MemoryLog(topic))

        return EnginePlan(
            cluster_id,
            open_log,
            Assignment.awaited(),
            EngineSettings(memory=ROOM),
            None,
            is_observer=False,
            cluster_id=cluster_id,
        )


async def running(learning: Learning) -> AsyncIterator[None]:
    task = asyncio.create_task(learning.service.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await learning.service.close()
    if not task.cancelled():
        task.result()


async def test_d16_cluster_when_reported_then_followed_and_after_a_restart(tmp_path: Path) -> None:
    """A process without any cluster learns it from a hello, and keeps id and address."""
    learning = Learning(tmp_path, 1)
    async for _ in running(learning):
        await until(lambda: learning.engines._is_read)
        async with listening(engines=learning.engines) as served:
            async with connected(served.path) as client:
                with pytest.raises(WrongCluster, match="must name a cluster_id"):
                    await client.hello()
            async with connected(served.path) as client:
                with pytest.raises(WrongCluster, match="no bootstrap"):
                    await client.hello(cluster_id="blue")
            async with greeted(
                served.path, cluster_id="blue", bootstrap="one:9092,two:9092", broker_id=1
            ) as client:
                await until(lambda: learning.engines.of_cluster("blue") is not None)
                await client.call("assign", [wire(ORDERS)], [], True)
                await client.call("wait_ready", wire(ORDERS))
            async with connected(served.path) as client:
                with pytest.raises(WrongCluster, match="clusters_max = 1"):
                    await client.hello(cluster_id="green", bootstrap="three:9092")
            await until((tmp_path / LEARNED_FILE).exists)
    found = ("blue", ("one:9092", "two:9092"))
    assert learning.asked == [found, found]  # asked who it is, and then followed
    assert read_learned(tmp_path) == {"blue": "one:9092,two:9092"}
    again = Learning(tmp_path, 1)
    async for _ in running(again):
        await until(lambda: again.engines.of_cluster("blue") is not None)
        async with listening(engines=again.engines) as served, connected(served.path) as client:
            await client.hello(cluster_id="blue")
    assert again.asked == [found]


def _is_refused(clusters: Clusters) -> bool:
    try:
        clusters.find("wrong", "one:9092", may_teach=True)
    except NotReady:
        return False
    except WrongCluster:
        return True
    raise AssertionError


async def test_cluster_when_the_address_leads_elsewhere_then_never_answered(tmp_path: Path) -> None:
    """A broker that names a wrong address never gets metadata of another cluster."""
    learning = Learning(tmp_path, 2)
    async for _ in running(learning):
        clusters = Clusters(learning.engines, AssignmentLimits(10))
        is_refused = partial(_is_refused, clusters)
        assert not is_refused()
        await until(is_refused, 30.0)
        assert not learning.service.engines
        with pytest.raises(WrongCluster):
            clusters.find("wrong", "one:9092", may_teach=False)


async def test_clusters_file_when_damaged_then_the_process_names_it(tmp_path: Path) -> None:
    """The process ends with an error that names the damaged file."""
    (tmp_path / LEARNED_FILE).write_text("{}")
    learning = Learning(tmp_path, 1)
    with pytest.raises(ExceptionGroup) as caught:
        await learning.service.run()
    (error,) = caught.value.exceptions
    assert isinstance(error, ConfigError)
    assert LEARNED_FILE in str(error)
    await learning.service.close()


async def test_clusters_file_when_its_disk_hangs_then_the_end_does_not_and_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are not ready and name the hanging disk, and the service still stops in time."""
    monkeypatch.setattr(threads, "_GRACE_S", 0.01)
    monkeypatch.setattr(cluster_file, "read_regular", lambda path, _: path.read_bytes())
    os.mkfifo(tmp_path / LEARNED_FILE)
    learning = Learning(tmp_path, 1)
    try:
        async for _ in running(learning):
            with pytest.raises(NotReady, match="are being read"):
                learning.engines.accept("blue", "one:9092")
            await until(
                lambda: any(one.name == "learned-clusters" for one in threading.enumerate())
            )
        assert "learned-clusters" in threads.left_behind()
    finally:
        os.close(os.open(tmp_path / LEARNED_FILE, os.O_WRONLY))
    await until(lambda: "learned-clusters" not in threads.left_behind())


def test_clusters_when_named_and_learned_then_refused() -> None:
    """The configuration refuses a name for a cluster that is learned."""
    require_no_tables((), 1)
    require_no_tables(("prod",), 0)
    with pytest.raises(ConfigError, match="clusters_max"):
        require_no_tables(("prod",), 1)


class Signs:
    def __init__(self, *engines: Engine) -> None:
        self._of = dict.fromkeys(range(len(engines)), 0)
        for number, engine in enumerate(engines):
            self._count(number, engine)

    def _count(self, number: int, engine: Engine) -> None:
        wake = engine.wake

        def counted() -> None:
            self._of[number] += 1
            wake()

        engine.wake = counted  # type: ignore[method-assign]  # spies

    def new(self) -> list[int]:
        counts = list(self._of.values())
        self._of = dict.fromkeys(self._of, 0)
        return counts


async def test_f95_broker_when_it_speaks_then_the_log_that_is_not_reached_is_tried() -> None:
    """Failure scenario F95: hello and each assignment is a sign; questions of any kind are none."""
    world = World(1)
    world.script.lose_brokers()
    async with world.engine() as engine, listening(engine, follows_brokers=True) as served:
        signs = Signs(engine)
        async with connected(served.path) as client:
            await client.hello(cluster_id=world.topic.cluster_id, broker_id=1)
            assert signs.new() == [1]
            for _ in range(2):
                with pytest.raises(NotReady):
                    await client.call("assign", [wire(ORDERS)], [], True)
            assert signs.new() == [2]
            assert await client.call("is_ready", wire(ORDERS)) is False
            with pytest.raises(NotReady):
                await client.call("segment_for", wire(ORDERS), 0, 5)
            assert signs.new() == [0]
            world.script.restore()
            with pytest.raises(NotReady):
                await client.call("assign", [wire(ORDERS)], [], True)
            await until_open(engine, timeout_s=5)


async def test_f95_client_that_is_no_broker_when_it_speaks_then_it_is_no_sign() -> None:
    """Failure scenario F95: a client that is no broker gives no sign of life."""
    world = World(1)
    world.script.lose_brokers()
    async with world.engine() as engine:
        signs = Signs(engine)
        async with listening(engine) as served, connected(served.path) as client:
            await client.hello(cluster_id=world.topic.cluster_id)
        async with (
            listening(engine, door=RoleDoor("reader")) as served,
            connected(served.path) as client,
        ):
            with pytest.raises(RlmmError):
                await client.hello(cluster_id=world.topic.cluster_id, broker_id=1)
        assert signs.new() == [0]


async def test_f95_broker_of_one_cluster_when_it_speaks_then_it_is_no_sign_of_another() -> None:
    """A broker of one cluster gives no sign for another once the logs' clusters are known."""
    one, two, silent = World(1), World(1), World(1)
    silent.script.lose_brokers()
    async with one.engine() as first, two.engine() as second, silent.engine() as third:
        signs = Signs(first, second, third)
        await until_open(first, 0)
        await until_open(second, 0)
        engines = FixedEngines([first, second, third])
        async with listening(engines=engines) as served:
            async with connected(served.path) as client:
                await client.hello(cluster_id=two.topic.cluster_id, broker_id=1)
                assert signs.new() == [0, 1, 0]
            async with connected(served.path) as client:
                await client.hello(cluster_id=silent.topic.cluster_id, broker_id=1)
                assert signs.new() == [0, 0, 1]
