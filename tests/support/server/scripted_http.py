"""An HTTP server that answers as it is told, also as no server should."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HANG_UP = b""
"""In place of an answer: the connection ends."""


class Silence:
    """Stands for no answer as long as the client waits."""


SILENCE = Silence()


def reply(status: int, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    """Build an answer; *length* is the promised length where that is wrong."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def refusal(status: int, code: str, *headers: str) -> bytes:
    told = {"error": {"code": code, "message": f"so it is: {code}", "retriable": False}}
    return reply(status, json.dumps(told).encode(), *headers)


class ScriptedServer:
    def __init__(self, script: list[bytes | Silence]) -> None:
        self.script = deque(script)
        self.heads: list[str] = []
        self.connections = 0
        self.address = ""
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                said = self.script.popleft() if self.script else HANG_UP
                if isinstance(said, Silence):
                    await reader.read()
                    return
                writer.write(said)
                if not _is_whole(said):
                    return
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def _is_whole(said: bytes) -> bool:
    head, _, body = said.partition(b"\r\n\r\n")
    return f"Content-Length: {len(body)}".encode() in head


@asynccontextmanager
async def scripted_server(*script: bytes | Silence) -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(list(script))
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    scripted.address = f"http://{host}:{port}"
    try:
        yield scripted
    finally:
        server.close()
        for writer in scripted.writers:  # clients keep theirs open
            writer.close()
        await server.wait_closed()
