"""
One connection of a client: it sends requests, reads answers, and is dialled here.

No request is repeated, and no call waits beyond its deadline. Invariant: every request that was
sent ends with its answer or a true error; an unanswered event may be stored.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from broker_adapter.address import require_unread
from rlmm.errors import (
    AppendUncertain,
    InvalidArgument,
    OutcomeUnknown,
    PartFailed,
    ProtocolError,
    RlmmError,
    SidecarUnavailable,
    Stopped,
)
from rlmm.wire.framing import FRAME_BYTES_MAX, FrameReader
from rlmm.wire.hello import hello_value, read_hello_answer
from rlmm.wire.messages import ID_MAX, read_answer, request_frame
from rlmm.wire.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_adapter.address import Address
    from rlmm.wire.hello import ClientHello, HelloAnswer


class _Sent(NamedTuple):
    method: str
    answer: asyncio.Future[object]


class ServiceConnection(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader()
        self._frame_bytes_max = FRAME_BYTES_MAX
        self._sent: dict[int, _Sent] = {}
        """Requests without an answer, abandoned ones too: their ids are not free yet."""
        self._last_id = -1
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost: asyncio.Future[RlmmError] = self._loop.create_future()
        self.heard_s = self._loop.time()

    # --------------------------------------------------------------------- from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        try:
            for payload in self._frames.feed(data):
                self._take(payload)
        except ProtocolError as error:
            self.end(error)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        why = "the service has hung up" if exc is None else f"the connection broke: {exc}"
        self.end(SidecarUnavailable(why))

    def end(self, error: RlmmError) -> None:
        """Hang up; waiting calls end with *error*, or its consequence for an event."""
        if self.lost.done():
            return
        self.lost.set_result(error)
        sent, self._sent = self._sent, {}
        self._writable.set()
        if self._transport is not None:
            self._transport.abort()
        for method, answer in sent.values():
            if not answer.done():
                answer.set_exception(unanswered(method, error))

    def _take(self, payload: bytes) -> None:
        request_id, error, result = read_answer(payload)
        if request_id is None:
            assert error is not None
            self.end(error)
            return
        sent = self._sent.pop(request_id, None)
        if sent is None:
            if not self.lost.done():
                self.end(ProtocolError(f"an answer to {request_id}, which was not asked"))
        elif sent.answer.done():  # its caller has left
            return
        elif error is None:
            sent.answer.set_result(result)
        else:
            sent.answer.set_exception(refusal_here(sent.method, error))

    # ------------------------------------------------------------------------------- requests

    @property
    def is_lost(self) -> bool:
        return self.lost.done()

    def send(self, method: str, args: Sequence[object]) -> asyncio.Future[object]:
        """
        Send a request behind all earlier ones; return its answer.

        Raises `SidecarUnavailable` where the connection is over, `InvalidArgument` for a request
        that no frame can hold; then nothing was sent.
        """
        if self._transport is None or self.is_lost:
            why = self.lost.result() if self.is_lost else "it is not open"
            msg = f"{method} was not sent: {why}"
            raise SidecarUnavailable(msg)
        request_id = self._last_id
        while True:
            request_id = 0 if request_id == ID_MAX else request_id + 1
            if request_id not in self._sent:
                break
        frame = request_frame(request_id, method, args, self._frame_bytes_max)
        self._last_id = request_id
        answer: asyncio.Future[object] = self._loop.create_future()
        self._sent[request_id] = _Sent(method, answer)
        self._transport.write(frame)
        return answer

    async def call(self, method: str, args: Sequence[object], deadline_s: float) -> object:
        """
        Return the result of a request by *deadline_s* of the loop's clock; raises its refusal.

        Without an answer it raises `SidecarUnavailable`, or `AppendUncertain` for a sent event.
        """
        answer: asyncio.Future[object] | None = None
        try:
            async with asyncio.timeout_at(deadline_s):
                while not self._writable.is_set():
                    await self._writable.wait()
                answer = self.send(method, args)
                return await answer
        except TimeoutError:
            if answer is None:
                raise SidecarUnavailable(f"{method} was not sent by its deadline") from None
            raise unanswered(method, SidecarUnavailable("its deadline has passed")) from None

    async def answered(self, timeout_s: float) -> None:
        """Return when every request has ended, or after *timeout_s*."""
        waited = [sent.answer for sent in self._sent.values()]
        if waited:
            await asyncio.wait(waited, timeout=timeout_s)

    async def greet(self, hello: ClientHello, deadline_s: float, address: Address) -> HelloAnswer:
        """
        Send `hello` to *address*, and return its answer, whose limits hold from now on.

        Raises `ConfigError`, and sends nothing, where others could read its token.
        """
        if hello.token is not None and self._transport is not None:
            require_unread(address, self._transport)
        value = await self.call("hello", [hello_value(hello)], deadline_s)
        answer = read_hello_answer(value)
        if answer.version not in hello.versions:
            msg = f"the service chose version {answer.version}, which was not offered"
            raise ProtocolError(msg)
        self._frame_bytes_max = answer.limits.frame_bytes_max
        self._frames = FrameReader(self._frame_bytes_max)
        return answer


def unanswered(method: str, error: RlmmError) -> RlmmError:
    """Return the error of a request that was sent and will not be answered, because of *error*."""
    if METHODS[method].is_write:
        lost = AppendUncertain(f"{method} was sent and not answered: {error}")
        lost.__cause__ = error
        return lost
    # Each caller gets an error of its own: tracebacks are written into them.
    if isinstance(error, SidecarUnavailable):
        return SidecarUnavailable(f"{method} was not answered: {error}")
    if isinstance(error, Stopped):
        return Stopped(f"{method} was not answered: {error}")
    again = type(error)(str(error))
    again.__cause__ = error
    return again


def refusal_here(method: str, error: RlmmError) -> RlmmError:
    """
    Return the client's error for a refusal.

    A service that stops ends the connection, not the client. An event may be stored where the
    service stops without a word about it, or failed inside.
    """
    if isinstance(error, PartFailed) and METHODS[method].is_write:
        return unanswered(method, error)
    if not isinstance(error, Stopped):
        return error
    if not METHODS[method].is_write:
        return SidecarUnavailable(f"{method} was not answered: {error}")
    if error.stored_at is None:
        return unanswered(method, error)
    return OutcomeUnknown(str(error), stored_at=error.stored_at)


class ServiceDialer:
    def __init__(self, address: Address, hello: ClientHello, timeout_s: float) -> None:
        self._address = address
        self._hello = hello
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._asides: set[asyncio.Timeout] = set()
        self._is_closed = False

    async def dial(self, deadline_s: float) -> ServiceConnection:
        """Return a connection; raises `SidecarUnavailable` at the deadline."""
        try:
            async with asyncio.timeout_at(deadline_s):
                return await self._address.dial(ServiceConnection)
        except OSError as error:
            raise SidecarUnavailable(_why(error)) from error
        except (OverflowError, ValueError) as error:  # a host or port that there cannot be
            msg = f"{self._address} is no address: {error}"
            raise InvalidArgument(msg) from error

    async def greeted_aside(self, deadline_s: float) -> HelloAnswer:
        if self._is_closed:
            raise Stopped("the client is closed")
        deadline_s = min(deadline_s, self._loop.time() + self._timeout_s)
        aside = asyncio.timeout_at(deadline_s)
        self._asides.add(aside)
        try:
            async with aside:
                connection = await self.dial(deadline_s)
                try:
                    return await connection.greet(self._hello, deadline_s, self._address)
                finally:
                    connection.end(SidecarUnavailable("it has told what it was asked for"))
        except TimeoutError:
            if self._is_closed:
                raise Stopped("the client is closed") from None
            raise SidecarUnavailable(f"{self._address} did not answer in time") from None
        finally:
            self._asides.discard(aside)

    def close(self) -> None:
        self._is_closed = True
        for aside in self._asides:
            if not aside.expired():
                aside.reschedule(self._loop.time())


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return error.strerror or str(error)
