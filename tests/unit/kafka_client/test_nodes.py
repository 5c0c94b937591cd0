"""The connections to one broker: idle ones are kept, broken ones are replaced."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from rlmm.kafka_client.connections.broker_connections import Node
from rlmm.kafka_client.connections.task_set import TaskSet
from rlmm.kafka_messages.cluster import BrokerAddress
from tests.support.kafka.fake_connections import FakeConnection, FakeDialer
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer


class HungUp(FakeConnection):
    """A connection that the broker has closed and the client has not."""

    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True
        super().abort()


@pytest.mark.parametrize("is_borrowed", [True, False], ids=["borrowed", "control"])
async def test_connection_when_the_broker_hung_up_then_another_is_made(is_borrowed: bool) -> None:
    """A connection that is of no use any more is not dropped: its socket would stay open."""
    kafka, crew = FakeKafka(), TaskSet()
    dialer = cast("Dialer", FakeDialer(kafka))
    node = Node(BrokerAddress(0, "broker-0", 9092), dialer, crew, asyncio.get_running_loop().time)
    gone = HungUp(kafka, 0)
    gone.is_open = False
    if is_borrowed:
        await (await node.borrow("fetch")).close()
        node._pools["fetch"]._idle.append(cast("BrokerConnection", gone))
        found = await node.borrow("fetch")
    else:
        node._control = cast("BrokerConnection", gone)
        found = await node.control()
    assert found.is_open
    assert gone.is_aborted
    await node.close()
    await crew.close()
