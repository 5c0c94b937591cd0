"""A socket that answers, is silent, hangs up or refuses as a test says."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker_adapter.address import TcpAddress, UnixAddress
from broker_adapter.stand_in import StandInService
from rlmm.metadata.ids import Uuid
from rlmm.wire.hello import HelloAnswer, ServiceLimits, hello_answer_value
from rlmm.wire.messages import answer_frame, read_request, refusal_frame

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.errors import RlmmError

LIMITS = ServiceLimits(64 * 1024, 128, 1024, 1_000, 1_000, 0)


@dataclass
class Served:
    hello: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, list[Any]]] = field(default_factory=list)
    writer: asyncio.StreamWriter | None = None

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]


class FakeService:
    def __init__(self, path: Path, tls: ssl.SSLContext | None = None) -> None:
        self.path = path
        self.kept = StandInService()
        self.connections: list[Served] = []
        self.limits = LIMITS
        self.greetings: deque[RlmmError] = deque()
        """How the next hellos are refused."""
        self.partition_counts: deque[int | None] = deque()
        """Partition counts in the next hellos, where they are not the true one."""
        self.hang_up_before: Counter[str] = Counter()
        """Methods whose next requests are not carried out: it hangs up instead."""
        self.hang_up_after: Counter[str] = Counter()
        """Methods whose next requests are carried out, and not answered: it hangs up."""
        self.refusals: dict[str, deque[RlmmError]] = {}
        """How the next requests of a method are refused."""
        self.silent: set[str] = set()
        """Methods that are kept and not answered."""
        self.held: list[tuple[Served, bytes]] = []
        self._tls = tls
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> UnixAddress:
        return UnixAddress(self.path)

    @property
    def tcp(self) -> TcpAddress:
        assert self._server is not None
        return TcpAddress("127.0.0.1", self._server.sockets[0].getsockname()[1])

    async def begin(self, *, over_tcp: bool = False) -> None:
        if over_tcp:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        else:
            self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def end(self) -> None:
        assert self._server is not None
        self._server.close()
        for served in self.connections:
            self.hang_up(served)
        self.path.unlink(missing_ok=True)

    def hang_up(self, served: Served) -> None:
        if served.writer is not None:
            served.writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = Served(writer=writer)
        self.connections.append(served)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                answer = self._answer(served, await reader.readexactly(size))
                if answer is not None:
                    writer.write(answer)
        writer.transport.abort()

    def _answer(self, served: Served, payload: bytes) -> bytes | None:
        request_id, method, args = read_request(payload)
        if method == "hello":
            said: Any = args[0]
            return self._greet(served, request_id, said)
        served.asked.append((method, args))
        if self._takes(self.hang_up_before, method):
            self.hang_up(served)
            return None
        if self.refusals.get(method):
            return refusal_frame(request_id, self.refusals[method].popleft())
        answer = self.kept.answer(served.hello.get("broker_id"), payload)
        if self._takes(self.hang_up_after, method):
            self.hang_up(served)
            return None
        if method in self.silent:
            self.held.append((served, answer))
            return None
        return answer

    def _takes(self, counts: Counter[str], method: str) -> bool:
        if not counts[method]:
            return False
        counts[method] -= 1
        return True

    def _greet(self, served: Served, request_id: int, hello: dict[str, Any]) -> bytes:
        served.hello = hello
        if self.greetings:
            return refusal_frame(request_id, self.greetings.popleft())
        count = self.partition_counts.popleft() if self.partition_counts else 4
        answer = HelloAnswer(1, "fake", "c", Uuid.of(0, 9), count, "admin", "serve", self.limits)
        return answer_frame(request_id, hello_answer_value(answer))


@asynccontextmanager
async def faking(path: Path) -> AsyncIterator[FakeService]:
    service = FakeService(path)
    await service.begin()
    try:
        yield service
    finally:
        await service.end()
