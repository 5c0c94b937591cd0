# A connection as far as the raw Kafka log uses one. The request is a duck: everything that the
# library asks of it stands in the protocol.
from asyncio import Future
from collections.abc import Coroutine, Mapping
from io import BytesIO
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

class _Encoded(Protocol):
    def encode(self) -> bytes: ...

class _Numbered(Protocol):
    @property
    def correlation_id(self) -> int: ...

class _ResponseType(Protocol[T_co]):
    def decode(self, buffer: BytesIO, /) -> T_co: ...

class _Prepared(_Encoded, Protocol[T_co]):
    @property
    def RESPONSE_TYPE(self) -> _ResponseType[T_co]: ...
    def build_request_header(self, correlation_id: int, client_id: str) -> _Encoded: ...
    def parse_response_header(self, buffer: BytesIO, /) -> _Numbered: ...

class _Request(Protocol[T_co]):
    def prepare(self, versions: Mapping[int, tuple[int, int]], /) -> _Prepared[T_co]: ...

class AIOKafkaConnection:
    def connected(self) -> bool: ...
    def send(self, request: _Request[T]) -> Coroutine[Any, Any, T]: ...
    def close(self) -> Future[None] | None: ...

async def create_conn(
    host: str,
    port: int,
    *,
    client_id: str = ...,
    request_timeout_ms: int = ...,
    max_idle_ms: int | None = ...,
    **security: object,
) -> AIOKafkaConnection: ...
