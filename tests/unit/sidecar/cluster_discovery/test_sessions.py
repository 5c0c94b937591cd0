"""Sessions whose engine is replaced: clients ask on, and assignments stay."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.roles import Peer
from rlmm.errors import LogDamaged, NotAssigned, NotReady, Stopped
from rlmm.metadata.encoding import encode_any
from rlmm.sidecar.session import ClientSession, SessionContext
from rlmm.sidecar.settings import SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from tests.support.builders import finished, started, tp
from tests.support.engines import until
from tests.support.server.frame_servers import RoleDoor
from tests.support.server.learned_clusters import AWAY, Addresses
from tests.support.server.raw_frames import wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

OLD, NEW = "old:9092", "new:9092"
ORDERS, OTHERS = tp("orders", 7), tp("others", 7)


class Client:
    def __init__(self, process: Addresses, **hello: Any) -> None:
        around = SessionContext(
            SidecarSettings(),
            process.clusters,
            RoleDoor("broker"),
            FrameServerCounters(),
            lambda _: {},
            "rlmm test",
            "serve",
        )
        self.session = ClientSession(around)
        said = {"versions": [1], "client": "test", "cluster_id": "blue", **hello}
        self.said = self.session.greet("hello", [said], Peer("unix"))

    async def call(self, method: str, *args: Any) -> Any:
        answer = self.session.answer(method, list(args))
        return await answer if isawaitable(answer) else answer

    async def ask(self, method: str, *args: Any, timeout_s: float = 30.0) -> Any:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return await self.call(method, *args)
                except NotReady:
                    await asyncio.sleep(0.1)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Addresses, Client]]:
    process = Addresses(folder, 1)
    topic = process.put(OLD, "blue")
    topic.write(topic.partitions[0], [encode_any(started("a")), encode_any(finished("a"))])
    async with process.running():
        await asyncio.sleep(0.1)
        client = Client(process, bootstrap=OLD, broker_id=1)
        await client.ask("assign", [wire(ORDERS)], [], True)
        assert await client.ask("segment_for", wire(ORDERS), 0, 5) is not None
        yield process, client


async def drop(process: Addresses) -> None:
    await asyncio.sleep(100)
    process.failing.put_nowait(LogDamaged("torn"))
    await until(lambda: not process.service.engines)


async def test_session_when_its_engine_is_dropped_then_the_next_answers(tmp_path: Path) -> None:
    """A session is not ready while its engine is replaced, and keeps its assignment."""
    async with served(tmp_path) as (process, client):
        reader = Client(process)
        await reader.ask("segment_for", wire(ORDERS), 0, 5)
        await drop(process)
        process.at.clear()
        for one in (client, reader):
            for method, args in (
                ("segment_for", (wire(ORDERS), 0, 5)),
                ("segments_for", ([[wire(ORDERS), 0, 5]],)),
                ("segment_for", (wire(ORDERS), 0, 5, {"timeout_ms": 5})),
                ("segment_for", (wire(ORDERS), 0, 5, {"linearizable": True})),
                ("wait_ready", (wire(ORDERS),)),
                ("read_token", ()),
                ("status", ()),
            ):
                with pytest.raises(NotReady, match=r"torn|answer"):
                    await one.call(method, *args)
            assert await one.call("is_ready", wire(ORDERS)) is False
        process.put(OLD, "blue").write(
            process.at[OLD].partitions[0], [encode_any(started("a")), encode_any(finished("a"))]
        )
        assert await reader.ask("segment_for", wire(ORDERS), 0, 5, timeout_s=61.0) is not None
        for method in ("segments_for", "segment_for"):
            args = ([[wire(ORDERS), 0, 5]],) if method == "segments_for" else (wire(ORDERS), 0, 5)
            assert await client.call(method, *args) is not None
        with pytest.raises(NotAssigned):
            await client.call("segment_for", wire(OTHERS), 0, 5)
        assert await client.call("assign", [wire(ORDERS)], [], True) == 1
        client.session.leave()


@pytest.mark.parametrize("method", ["wait_ready", "segment_for"])
async def test_wait_when_its_engine_is_dropped_then_not_ready(method: str, tmp_path: Path) -> None:
    """A wait at a dropped engine gets not ready, not Stopped."""
    async with served(tmp_path) as (process, _):
        reader = Client(process)
        await reader.ask("segment_for", wire(ORDERS), 0, 5)
        args: tuple[Any, ...] = (0, 5, {"at_least": {0: 99}, "timeout_ms": 110_000})
        if method == "wait_ready":
            process.at[OLD].fault = AWAY
            await asyncio.sleep(120)  # nobody knows any more where the log ends
            args = ({"timeout_ms": 110_000},)
        waiting = asyncio.create_task(reader.call(method, wire(ORDERS), *args))
        await drop(process)
        with pytest.raises(NotReady, match="torn"):
            await waiting


async def test_broker_when_its_cluster_moved_then_has_what_it_had(tmp_path: Path) -> None:
    """The assignment of a broker goes over to the new engine, even if only another broker asks."""
    async with served(tmp_path) as (process, client):
        old = process.at[OLD]
        process.put(NEW, "blue").write(
            process.at[NEW].partitions[0], [encode_any(started("a")), encode_any(finished("a"))]
        )
        old.fault = AWAY
        other = Client(process, bootstrap=NEW, broker_id=2)
        await until(lambda: process.service.is_reached("blue"))
        assert await client.ask("segment_for", wire(ORDERS), 0, 5) is not None
        with pytest.raises(NotReady, match="has not said yet"):
            await other.call("segment_for", wire(ORDERS), 0, 5)
        await other.call("assign", [wire(OTHERS)], [], True)
        assert process.service.engines["blue"].assignment.user == {ORDERS, OTHERS}


async def test_engine_when_it_replaces_another_then_assigned_unheard(tmp_path: Path) -> None:
    """The new engine gets the known assignment without waiting for a request of a broker."""
    async with served(tmp_path) as (process, _):
        await drop(process)
        await until(lambda: process.service.is_reached("blue"))
        engine = process.service.engines["blue"]
        assert not engine.assignment.is_known
        process.clusters.look_after(asyncio.get_running_loop().time())
        assert engine.assignment.user == {ORDERS}
        process.service.refuse("the service is stopping")
        process.clusters.look_after(asyncio.get_running_loop().time())


async def test_engine_when_dropped_then_no_client_or_broker_holds_it(tmp_path: Path) -> None:
    """An engine is all that was read; one that is gone must not stay in memory."""
    async with served(tmp_path) as (process, client):
        await drop(process)
        process.opening = OSError(5, "disk")
        with pytest.raises(NotReady):
            await client.call("segment_for", wire(ORDERS), 0, 5)
        assert (client.session._engine, client.session.known_reads) == (None, None)
        assert client.session.broker is not None
        assert client.session.broker.broker.engine is None
        assert [one.engine for one in process.clusters._brokers.values()] == [None]
        with pytest.raises(NotReady):
            client.session.broker.require(OTHERS)
        assert process.clusters.brokers_statistics()["blue"][1].partitions == 1


async def test_state_when_its_engine_was_dropped_then_it_is_given_back(tmp_path: Path) -> None:
    """The state of a dropped engine is freed, even if it was frozen for the garbage collector."""
    async with served(tmp_path) as (process, _):
        follower = process.service.engines["blue"]._pump.follower(0)
        assert follower is not None
        gone = weakref.ref(follower)  # who holds the shard
        del follower
        gc.freeze()
        try:
            await drop(process)
            await asyncio.sleep(60)
            assert gone() is None
        finally:
            gc.unfreeze()


async def test_session_when_the_service_stops_then_stopped_is_told(tmp_path: Path) -> None:
    """A stopped service ends each session with Stopped."""
    async with served(tmp_path) as (process, client):
        process.service.refuse("the service is stopping")
        for method, args in (("segment_for", (wire(ORDERS), 0, 5)), ("is_ready", (wire(ORDERS),))):
            with pytest.raises(Stopped):
                await client.call(method, *args)
