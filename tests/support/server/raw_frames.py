"""A client that sends any bytes as a frame."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.wire.messages import read_answer, request_frame
from rlmm.wire.values import partition_value

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.messages import Response

DEADLINE_S = 30.0
"""Never reached, unless something is broken."""


class FrameClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._last_id = 0
        self._kept: dict[int | None, Response] = {}

    async def hello(self, **said: Any) -> Any:
        return await self.call("hello", {"versions": [1], "client": "test", **said})

    async def call(self, method: str, *args: Any) -> Any:
        answer = await self.answer(self.send(method, *args))
        if answer.error is not None:
            raise answer.error
        return answer.result

    def send(self, method: str, *args: Any, request_id: int | None = None) -> int:
        if request_id is None:
            self._last_id += 1
            request_id = self._last_id
        self.writer.write(request_frame(request_id, method, list(args), 1 << 28))
        return request_id

    async def answer(self, request_id: int | None) -> Response:
        while request_id not in self._kept:
            answer = await self.next()
            assert answer is not None, f"it hung up, without an answer to {request_id}"
            self._kept[answer.id] = answer
        return self._kept.pop(request_id)

    async def next(self) -> Response | None:
        """Return the next answer; None where the service has hung up."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                size = int.from_bytes(await self.reader.readexactly(4))
                return read_answer(await self.reader.readexactly(size))
            except (asyncio.IncompleteReadError, ConnectionError):
                return None

    async def ended(self) -> bool:
        """Return whether the service has hung up."""
        return await self.next() is None

    def close(self) -> None:
        self.writer.transport.abort()


@asynccontextmanager
async def connected(
    address: Path | tuple[str, int], tls: ssl.SSLContext | None = None
) -> AsyncIterator[FrameClient]:
    if isinstance(address, tuple):
        reader, writer = await asyncio.open_connection(
            *address, ssl=tls, server_hostname=None if tls is None else "localhost"
        )
    else:
        reader, writer = await asyncio.open_unix_connection(address)
    client = FrameClient(reader, writer)
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def greeted(address: Path | tuple[str, int], **said: Any) -> AsyncIterator[FrameClient]:
    async with connected(address) as client:
        await client.hello(**said)
        yield client


def wire(partition: TopicIdPartition) -> list[object]:
    return partition_value(partition)
