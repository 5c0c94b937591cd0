"""
The hostile clients of one shape, in a process of their own, until they are ended.

They do not wait for the service: as soon as it takes bytes, it gets more of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from bench.hostile_shapes import HTTP, KNOWN, STRANGERS, Role, Shape, Way, hello

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.synchronize import Event

SHAPES: Final = {shape.name: shape for shape in (*STRANGERS, *KNOWN, *HTTP)}
_PIECE: Final = 256 * 1024
_PAUSE_S: Final = 0.001
_DRIPS: Final = 64
_PIECES_S: Final = 10.0
_START_S: Final = 60.0
_NICE: Final = 10
"""On few processors attackers would else take those of the service and of the friendly client."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int
    http_port: int
    has_tls: bool
    tokens: Mapping[str, str]
    broker_id: int


def unverified() -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname = False
    found.verify_mode = ssl.CERT_NONE
    return found


class _Sent:
    """Counts the pieces that clients have sent, and tells when there are enough."""

    def __init__(self, enough: int) -> None:
        self._left = enough
        self.is_enough = asyncio.Event()

    def count(self) -> None:
        self._left -= 1
        if not self._left:
            self.is_enough.set()


async def attack_for_pieces(target: Target, shape: Shape, pieces: int, seconds: float) -> None:
    """
    Let the clients of *shape* run until they have sent some *pieces*, and for *seconds* on.

    The service may stop taking from clients that do not read: they end after a time as well.
    """
    sent = _Sent(pieces)
    clients = asyncio.ensure_future(_attack(target, shape, sent))
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PIECES_S):
                await sent.is_enough.wait()
        await asyncio.wait([clients], timeout=seconds)
    finally:
        clients.cancel()
        await asyncio.wait([clients])


async def _attack(target: Target, shape: Shape, sent: _Sent) -> None:
    data, first = shape.make(), b""
    if shape.role is not Role.STRANGER and shape.way is not Way.HTTP:
        said: dict[str, object] = {}
        if shape.role is Role.BROKER:
            said["broker_id"] = target.broker_id
        first = hello(target.tokens[shape.role], **said)
    tls = unverified() if target.has_tls and shape.way is not Way.HTTP else None
    async with asyncio.TaskGroup() as group:
        for _ in range(shape.connections):
            group.create_task(_connect_always(target, shape, (first, data), tls, sent))


async def _connect_always(
    target: Target,
    shape: Shape,
    said: tuple[bytes, bytes],
    tls: ssl.SSLContext | None,
    sent: _Sent,
) -> None:
    first, data = said
    port = target.http_port if shape.way is Way.HTTP else target.port
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(target.host, port, ssl=tls)
            try:
                if first:
                    writer.write(first)
                    await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                await _speak(shape, reader, writer, data, sent)
            finally:
                writer.transport.abort()
        await asyncio.sleep(_PAUSE_S)


async def _speak(
    shape: Shape,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    data: bytes,
    sent: _Sent,
) -> None:
    if shape.way is Way.UNREAD:
        while True:
            await _send(writer, data, sent)
    taking = asyncio.ensure_future(_take_all(reader))
    try:
        if shape.way is Way.DRIP:
            for _ in range(_DRIPS):
                for at in range(len(data)):
                    await _send(writer, data[at : at + 1], sent)
                    await asyncio.sleep(shape.waits_ms / 1_000)
        elif shape.way in (Way.RECONNECT, Way.HOLD):
            await _send(writer, data, sent)
            await taking
        else:
            while not taking.done():
                await _send(writer, data, sent)
    finally:
        taking.cancel()


async def _send(writer: asyncio.StreamWriter, data: bytes, sent: _Sent) -> None:
    for at in range(0, len(data), _PIECE):
        writer.write(data[at : at + _PIECE])
        await writer.drain()
        sent.count()
    await asyncio.sleep(0)


async def _take_all(reader: asyncio.StreamReader) -> None:
    while await reader.read(_PIECE):
        pass


async def _attack_always(target: Target, shape: Shape, begun: Event) -> None:
    sent = _Sent(1)
    async with asyncio.TaskGroup() as group:
        group.create_task(_attack(target, shape, sent))
        await sent.is_enough.wait()
        begun.set()


def _run(target: Target, name: str, begun: Event) -> None:
    os.nice(_NICE)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each write after a cut-off
    asyncio.run(_attack_always(target, SHAPES[name], begun))


@contextmanager
def attacked(target: Target, shape: Shape) -> Iterator[None]:
    """Let hostile clients of *shape* run beside the block, which begins when they have."""
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_run, args=(target, shape.name, begun), daemon=True)
    process.start()
    try:
        if not begun.wait(_START_S):
            msg = f"the attackers of {shape.name!r} have not begun in {_START_S:.0f} s"
            raise RuntimeError(msg)
        yield
        if not process.is_alive():
            msg = f"the attackers of {shape.name!r} have ended with {process.exitcode}"
            raise RuntimeError(msg)
    finally:
        process.kill()
        process.join()
