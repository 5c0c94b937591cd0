"""Signs of life of a cluster: hellos and assignments of brokers, and no other request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import NotReady, RlmmError
from tests.support.builders import tp
from tests.support.engines import World, until_open
from tests.support.server.frame_servers import FixedEngines, RoleDoor, listening
from tests.support.server.raw_frames import connected, wire

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine

ORDERS = tp("orders", 7)


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
