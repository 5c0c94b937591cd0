"""Connection of one command to a running service, and its calls that brokers do not use."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self, TypeVar

from broker_adapter.calls import Call
from broker_adapter.connection import ServiceConnection
from broker_adapter.retry_policies import RetryPolicy
from rlmm.base.backoff import Pauses
from rlmm.errors import (
    ConfigError,
    InvalidArgument,
    LogRecreated,
    LogUnavailable,
    NotPermitted,
    ProtocolError,
    RlmmError,
    SidecarUnavailable,
    TooBusy,
    UnknownMethod,
    UnsupportedVersion,
    WrongCluster,
)
from rlmm.wire import operator_queries
from rlmm.wire.options import wait_options_value
from rlmm.wire.value_checks import refuse
from rlmm.wire.values import partition_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_adapter.address import Address
    from rlmm.errors import LogError
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.wire.hello import ClientHello, HelloAnswer

A = TypeVar("A")

CONNECT_S: Final = 5.0
_REPEATED: Final = RetryPolicy(
    "looking", (TooBusy, LogUnavailable), Pauses(0.05, 1.0), attempts_max=100, last_s=0.05
)
_REFUSED: Final = (NotPermitted, WrongCluster, UnsupportedVersion, TooBusy)


class SidecarLink:
    """Sends requests on one connection at a time; reconnects once after a loss."""

    def __init__(self, address: Address, hello: ClientHello, timeout_s: float) -> None:
        self._address = address
        self._hello = hello
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._connection: ServiceConnection | None = None
        self._server: HelloAnswer | None = None
        self._connecting = asyncio.Lock()

    @classmethod
    async def open(cls, address: Address, hello: ClientHello, timeout_s: float) -> Self:
        """Connect and authenticate; raises the obstacle as one line."""
        link = cls(address, hello, timeout_s)
        await link._connected(link._loop.time() + timeout_s)
        return link

    @property
    def where(self) -> str:
        return str(self._address)

    @property
    def server(self) -> HelloAnswer:
        assert self._server is not None, "it is open"
        return self._server

    async def ask(self, call: Call[A], timeout_s: float | None = None) -> A:
        """Return the answer within a deadline; raises the refusal."""
        chosen_s = self._timeout_s if timeout_s is None else timeout_s
        deadline_s = self._loop.time() + chosen_s

        async def attempt() -> A:
            return await self._asked(call, deadline_s)

        try:
            attempts = _REPEATED.attempts(
                now=self._loop.time, deadline_s=deadline_s, hook=lambda *_: None
            )
            answer: A = await attempts(attempt)
        except UnknownMethod as error:
            msg = (
                f"the service at {self.where} ({self.server.server}) does not know "
                f"{call.method}: it is older than this command"
            )
            raise UnknownMethod(msg) from error
        return answer

    async def _asked(self, call: Call[A], deadline_s: float) -> A:
        """Return the answer; repeat the request once if the connection is lost, as in a restart."""
        for is_last in (False, True):
            connection = await self._connected(deadline_s)
            try:
                return call.answer(await connection.call(call.method, call.args, deadline_s))
            except SidecarUnavailable as error:
                if is_last or not connection.is_lost:
                    msg = f"the service at {self.where} did not answer: {error}"
                    raise SidecarUnavailable(msg) from error
        raise AssertionError("the last attempt returns or raises")

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.end(SidecarUnavailable("this has hung up"))

    # -------------------------------------------------------------------------- the connection

    async def _connected(self, deadline_s: float) -> ServiceConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_lost:
                connect_s = min(deadline_s, self._loop.time() + CONNECT_S)
                connection = await self._dialled(connect_s)
                try:
                    self._meet(await self._greeted(connection, connect_s))
                except BaseException:
                    connection.end(SidecarUnavailable("it was not let in"))
                    raise
                self._connection = connection
            return self._connection

    def _meet(self, server: HelloAnswer) -> None:
        """Require that the service after a reconnect has the same metadata as before."""
        known = None if self._server is None else self._server.topic_id
        if known is not None and server.topic_id not in {None, known}:
            msg = f"the service at {self.where} follows another metadata topic than before"
            raise LogRecreated(msg)
        self._server = server
        if server.cluster_id:
            self._hello = replace(self._hello, cluster_id=server.cluster_id)

    async def _dialled(self, deadline_s: float) -> ServiceConnection:
        try:
            async with asyncio.timeout_at(deadline_s):
                return await self._address.dial(ServiceConnection)
        except ssl.SSLCertVerificationError as error:
            msg = f"its certificate is not trusted: {error.verify_message}"
            raise self._unavailable(msg) from error
        except OSError as error:  # what TLS says, and time-outs, among them
            raise self._unavailable(self._why(error)) from error
        except (OverflowError, ValueError) as error:  # a host or port that there cannot be
            msg = f"{self.where} is no address: {error}"
            raise ConfigError(msg) from error

    def _why(self, error: OSError) -> str:
        """Return the system's text; asyncio's repeats the address."""
        if isinstance(error, TimeoutError) and error.errno is None:
            return f"nobody answers there for {min(CONNECT_S, self._timeout_s):g} s"
        if isinstance(error, ssl.SSLError) or (self._is_encrypted and error.errno is None):
            said = getattr(error, "reason", None) or str(error) or type(error).__name__
            return f"TLS was not agreed on ({said}): is it encrypted there?"
        if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno)
        return error.strerror or str(error) or type(error).__name__

    async def _greeted(self, connection: ServiceConnection, deadline_s: float) -> HelloAnswer:
        try:
            return await connection.greet(self._hello, deadline_s, self._address)
        except ConfigError:
            raise
        except _REFUSED as error:
            raise type(error)(f"the service at {self.where} refuses: {error}") from error
        except (ProtocolError, InvalidArgument) as error:
            msg = f"what listens at {self.where} is no service{self._perhaps_tls}: {error}"
            raise ProtocolError(msg) from error
        except RlmmError as error:
            msg = f"it takes connections and does not greet{self._perhaps_tls}: {error}"
            raise self._unavailable(msg) from error

    @property
    def _is_encrypted(self) -> bool:
        return getattr(self._address, "tls", None) is not None

    @property
    def _perhaps_tls(self) -> str:
        """Return a hint if the service may require TLS and the command did not use it."""
        is_plain = hasattr(self._address, "tls") and not self._is_encrypted
        return " (is it encrypted there? then --tls)" if is_plain else ""

    def _unavailable(self, why: str) -> SidecarUnavailable:
        return SidecarUnavailable(f"the service at {self.where} was not reached: {why}")


def list_partitions(
    place: int, after: bytes | None, limit: int
) -> Call[operator_queries.SummaryPage]:
    return Call("list_partitions", [place, after, limit], operator_queries.read_summary_page)


def open_image(partition: TopicIdPartition, size: int) -> Call[operator_queries.ImageHead]:
    """Open the state image of *partition*, and return its first bytes."""
    args = [partition_value(partition), size]
    return Call("open_image", args, operator_queries.read_image_head, (partition,))


def read_image(offset: int, size: int) -> Call[bytes]:
    def read(value: object) -> bytes:
        found = operator_queries.read_bytes(value, "a piece of an image")
        if not found:
            refuse("a piece of an image", "of one byte at least", value)
        return found

    return Call("read_image", [offset, size], read)


def close_image() -> Call[None]:
    return Call("close_image", [], lambda _: None)


def log_bounds(
    places: Sequence[int],
) -> Call[tuple[Uuid, list[operator_queries.LogEnds | LogError]]]:
    """Return the identity of the log, and the bounds of the metadata partitions *places*."""
    count = len(places)
    return Call(
        "log_bounds", [list(places)], lambda value: operator_queries.read_log_ends(value, count)
    )


def read_log(
    topic_id: Uuid, place: int, position: int, skip: int, size: int, timeout_ms: int
) -> Call[operator_queries.LogPiece | None]:
    """Return record batches of metadata partition *place* from *position* on."""
    args: list[object] = [topic_id, place, position, skip, size, wait_options_value(timeout_ms)]
    return Call("read_log", args, operator_queries.read_log_piece)
