"""Connections to a `FakeKafka`, and the dialer that makes them: they stand in for the real ones."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rlmm.errors import LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rlmm.kafka_messages.wire import Request
    from tests.support.kafka.fake_kafka import FakeKafka


class FakeConnection:
    def __init__(self, kafka: FakeKafka, broker: int) -> None:
        self.address = f"broker-{broker}:9092"
        self.is_open = True
        self._kafka = kafka
        self._broker = broker
        self._turn = asyncio.Lock()
        self._closed = asyncio.get_running_loop().create_future()

    def call(self, request: Request[Any]) -> Coroutine[None, None, Any]:
        if not self.is_open:
            raise LogUnavailable(f"{self.address}: the connection is closed")
        answering = asyncio.ensure_future(self._answer(request))
        return self._await_answer(answering)

    async def _answer(self, request: Request[Any]) -> Any:
        async with self._turn:
            return await self._kafka.answer(self._broker, request)

    async def _await_answer(self, answering: asyncio.Future[Any]) -> Any:
        try:
            await asyncio.wait({answering, self._closed}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                try:
                    return answering.result()
                except LogUnavailable:
                    self.abort()
                    raise
            raise LogUnavailable(f"{self.address}: the other side closed the connection")
        finally:
            answering.cancel()

    def abort(self) -> None:
        self.is_open = False
        if not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        self.abort()


class FakeDialer:
    def __init__(self, kafka: FakeKafka) -> None:
        self.options: dict[str, object] = {}
        self._kafka = kafka

    async def dial(self, host: str, port: int, role: str) -> FakeConnection:
        del port
        broker = int(host.removeprefix("broker-"))
        self._kafka.dials.append((asyncio.get_running_loop().time(), broker, role))
        await asyncio.sleep(0)
        await self._kafka.await_release(broker, "dial")
        if broker in self._kafka.refuses:
            raise self._kafka.refuses[broker]
        if broker in self._kafka.down:
            raise LogUnavailable(f"broker-{broker}:9092: no broker listens there")
        connection = FakeConnection(self._kafka, broker)
        self._kafka.connections[broker].append(connection)
        return connection
