"""
A connection to one broker: the one user of the library's connection; translates its errors.

A broker answers a connection's requests in order: requests that wait have others, see
`broker_connections`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import aiokafka
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError

from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError, LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.connections.diagnosis import diagnose, refused_token
from rlmm.kafka_client.security.client_options import library_options, tls_context
from rlmm.kafka_client.settings import SaslMechanism
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.wire import MessageReader, MessageWriter, request_header

if TYPE_CHECKING:
    import io
    from collections.abc import Coroutine, Generator, Mapping
    from types import ModuleType

    from aiokafka.conn import AIOKafkaConnection

    from rlmm.kafka_client.settings import KafkaSettings, SecuritySettings
    from rlmm.kafka_messages.wire import MessageType, Request

T = TypeVar("T")


class ClearTextFilter(logging.Filter):
    """Passes the library's warning of a password in clear text once in a process, in our words."""

    is_said = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not str(record.msg).startswith("Sending username and password in the clear"):
            return True
        is_first, self.is_said = not self.is_said, True
        record.msg = (
            "the password for Kafka goes over the network in clear text: security.protocol is "
            "SASL_PLAINTEXT and sasl.mechanism is PLAIN"
        )
        return is_first


logging.getLogger("aiokafka.conn").addFilter(ClearTextFilter())

AIOKAFKA = "0.14"
"""The minor version of aiokafka whose connections this module drives."""
_CLOSE_S = 1.0
_CORRELATION_ID = struct.Struct(">i")
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Where a wildcard address can be reached: on the machine that listens on it."""


class Dialer:
    """Makes connections, all with the same security."""

    def __init__(self, settings: KafkaSettings, options: dict[str, object]) -> None:
        self._options = options
        """Security in the library's names."""
        self._settings = settings

    @classmethod
    async def prepare(cls, settings: KafkaSettings) -> Dialer:
        """Read the configured files; `ConfigError` for an unusable file or wrong aiokafka."""
        if not aiokafka.__version__.startswith(f"{AIOKAFKA}."):
            raise ConfigError(
                f"aiokafka {aiokafka.__version__} is installed, the Kafka client needs "
                f"{AIOKAFKA}: install aiokafka {AIOKAFKA}"
            )
        context = await in_own_thread("tls", partial(tls_context, settings.security))
        return cls(settings, library_options(settings.security, context))

    async def dial(self, host: str, port: int, role: str) -> BrokerConnection:
        """Connect and log in as client *role*; raises `LogUnavailable` or `LogNotPermitted`."""
        settings = self._settings
        host = _LOOPBACK.get(host, host)
        address = address_text(host, port)
        try:
            async with asyncio.timeout(settings.socket_connection_setup_timeout_ms / 1000):
                made = await create_conn(
                    host,
                    port,
                    client_id=settings.client_id(role),
                    request_timeout_ms=settings.request_timeout_ms,
                    max_idle_ms=settings.connections_max_idle_ms,
                    **self._options,
                )
        # A bad answer to a SASL step surfaces as an assertion or a ValueError of the library's.
        except (OSError, EOFError, KafkaError, ValueError, AssertionError) as error:
            raise diagnose(address, settings.security, error) from error
        connection = BrokerConnection(made, address, settings.security)
        if settings.security.sasl_mechanism is SaslMechanism.OAUTHBEARER:
            await self._require_login(connection)
        return connection

    async def _require_login(self, connection: BrokerConnection) -> None:
        try:
            told = await connection.call(MetadataRequest([self._settings.topic.name]))
        except BaseException:
            connection.abort()
            raise
        if any(topic.code == ErrorCode.ILLEGAL_SASL_STATE for topic in told.topics):
            connection.abort()
            raise refused_token(connection.address, self._settings.security)


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class BrokerConnection:
    """An open connection; failed or hung up it must be closed: the library keeps its socket."""

    def __init__(self, made: AIOKafkaConnection, address: str, security: SecuritySettings) -> None:
        self._made = made
        self._is_closed = False
        self._security = security
        self.address = address

    @property
    def is_open(self) -> bool:
        return self._made.connected()

    def call(self, request: Request[T]) -> Coroutine[None, None, T]:
        """
        Send *request*; awaiting the result gives its answer.

        Raises `LogUnavailable` at once when it was surely not sent; awaiting raises it when the
        broker may have got it. A cancelled wait drops the answer, and later requests wait for it.
        `UnsupportedVersion` for a broker that is too old leaves the connection as good as before.
        """
        if not self._made.connected():
            raise LogUnavailable(f"{self.address}: the connection is closed")
        envelope = _Envelope(request)
        try:
            pending = self._made.send(envelope)
        except KafkaError as error:
            raise diagnose(self.address, self._security, error) from error
        return self._answer(request, envelope.version, _Pending(pending))

    async def _answer(self, request: Request[T], version: int, pending: _Pending) -> T:
        try:
            payload = await pending
        except (OSError, EOFError, KafkaError) as error:
            self.abort()
            raise diagnose(self.address, self._security, error) from error
        try:
            reader = MessageReader(payload.data, _CORRELATION_ID.size)
            reader.tags()
            return request.read(reader, version)
        except (ValueError, IndexError) as error:
            self.abort()
            msg = f"{self.address}: the answer to {request.api.name} makes no sense: {error}"
            raise LogUnavailable(msg) from error

    def abort(self) -> None:
        self._is_closed = True
        self._made.close()

    def __del__(self, warnings: ModuleType = warnings) -> None:
        if not self._is_closed:
            msg = f"{self.address}: a connection was dropped, not closed"
            warnings.warn(msg, ResourceWarning, source=self, stacklevel=2)

    async def close(self) -> None:
        """Close it; requests that wait for an answer end with `LogUnavailable`."""
        self._is_closed = True
        closed = self._made.close()
        if closed is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await asyncio.shield(closed)


class _Pending:
    """The library's coroutine for an answer; dropped unawaited without Python's warning."""

    def __init__(self, coroutine: Coroutine[Any, None, _Payload]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, None, _Payload]:
        return self._coroutine.__await__()

    def __del__(self) -> None:
        self._coroutine.close()


class _Payload:
    """An answer as bytes; its text form, which the library may log, is short."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"{len(self.data)} bytes"

    @classmethod
    def decode(cls, buffer: io.BytesIO) -> _Payload:
        return cls(buffer.getvalue())


class _Header:
    """A header: written, or as far as the library reads one."""

    def __init__(self, data: bytes, correlation_id: int) -> None:
        self._data = data
        self.correlation_id = correlation_id

    def encode(self) -> bytes:
        return self._data


class _Envelope:
    """A request in the form that the library's connection sends: everything it asks of one."""

    RESPONSE_TYPE = _Payload

    def __init__(self, request: Request[T]) -> None:
        self._request = request
        self._api: MessageType = request.api
        self.version = -1

    def __repr__(self) -> str:
        return f"{self._api.name} v{self.version}"

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> _Envelope:
        version = self._api.choose(versions)
        if version is None:
            spoken = versions.get(self._api.key)
            raise (UnsupportedVersion if self._api.since else LogUnavailable)(
                f"the broker speaks {self._api.name} in versions {spoken}, "
                f"one of {self._api.versions} is needed: Kafka {self._api.since or '3.1'} or newer"
            )
        self.version = version
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> _Header:
        header = request_header(self._api, self.version, correlation_id, client_id)
        return _Header(header, correlation_id)

    def encode(self) -> bytes:
        out = MessageWriter()
        self._request.write(out, self.version)
        return out.done()

    def parse_response_header(self, buffer: io.BytesIO) -> _Header:
        data = buffer.read(_CORRELATION_ID.size)
        return _Header(data, _CORRELATION_ID.unpack(data)[0])
