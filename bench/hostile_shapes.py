"""
Shapes of hostile clients: which bytes each sends, in which role, over how many connections.

A shape is data, so that the process of the attackers makes its bytes itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rlmm.wire.framing import FRAME_BYTES_MAX
from rlmm.wire.framing import frame as framed
from rlmm.wire.messages import request_frame

if TYPE_CHECKING:
    from collections.abc import Callable

HELD: Final = bytes(16)


class Role(StrEnum):
    STRANGER = "stranger"
    READER = "reader"
    BROKER = "broker"
    ADMIN = "admin"


class Way(StrEnum):
    REPEAT = "sends it again and again, and takes the answers"
    UNREAD = "sends it again and again, and takes no answer"
    RECONNECT = "connects, sends it, and connects again"
    HOLD = "sends it once, and keeps the connection"
    DRIP = "sends it byte by byte"
    HTTP = "sends it to the HTTP port"


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    role: Role
    way: Way
    connections: int
    make: Callable[[], bytes]
    waits_ms: float = 0.0
    """Between two of one connection."""


def _raw(method: str, body: bytes) -> bytes:
    """Return a frame whose arguments are *body*, as it is."""
    name = method.encode()
    return framed(b"\x93\x01" + bytes((0xA0 | len(name),)) + name + body, 1 << 30)


def _array(element: bytes, size: int = FRAME_BYTES_MAX - 100) -> bytes:
    count = size // len(element)
    return b"\xdd" + struct.pack(">I", count) + element * count


MAPS_IN_MAPS: Final = b"\x81\x01" * 400 + b"\xc0"


def hello(token: str | None = None, **said: object) -> bytes:
    if token is not None:
        said["token"] = token
    return request_frame(0, "hello", [{"versions": [1], "client": "hostile", **said}])


def _partitions(count: int, name: str = "t" * 249) -> list[list[object]]:
    return [[HELD, name, number] for number in range(count)]


def _assignments() -> bytes:
    return b"".join(
        request_frame(1, "assign", [_partitions(4_000, f"{number:0249}"), [], False])
        for number in range(4)
    )


def _lookups(count: int) -> list[list[object]]:
    return [[partition, 0, 0] for partition in _partitions(count, "nowhere")]


def _far_waits() -> bytes:
    return b"".join(
        request_frame(number, "wait_ready", [[HELD, "nowhere", number], {"timeout_ms": 100_000}])
        for number in range(1, 250)
    )


def _pings(count: int = 500) -> bytes:
    return b"".join(request_frame(number, "ping", []) for number in range(count))


def _json_bomb() -> bytes:
    body = b"[" * 500_000 + b"]" * 500_000
    head = f"POST /v1/segments HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _http_headers() -> bytes:
    return (
        b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: y\r\n" % one for one in range(100_000)) + b"\r\n"
    )


_S, _R, _B, _A = Role.STRANGER, Role.READER, Role.BROKER, Role.ADMIN

STRANGERS: Final = (
    Shape("hello of nested maps, 60 KiB", _S, Way.RECONNECT, 4,
          lambda: _raw("hello", _array(MAPS_IN_MAPS, 60_000))),
    Shape("hello of 120 KiB in one piece", _S, Way.RECONNECT, 8,
          lambda: _raw("hello", _array(MAPS_IN_MAPS, 120_000))),
    Shape("hello of 4 MiB", _S, Way.RECONNECT, 4, lambda: _raw("hello", _array(MAPS_IN_MAPS))),
    Shape("wrong tokens", _S, Way.RECONNECT, 32, lambda: hello("wrong-token-0123456789")),
    Shape("silent connections", _S, Way.HOLD, 400, lambda: b"\0"),
    Shape("connections that come and go", _S, Way.RECONNECT, 64, lambda: b"\xff\xff\xff\xff"),
    Shape("half hellos", _S, Way.HOLD, 200,
          lambda: struct.pack(">I", 60_000) + bytes(50_000)),
    Shape("hellos byte by byte", _S, Way.DRIP, 100, hello, waits_ms=1.0),
)  # fmt: skip
"""Of clients without credentials, for the plain port and for the one with TLS."""

KNOWN: Final = (
    Shape("nested maps, 4 MiB, one connection", _R, Way.REPEAT, 1,
          lambda: _raw("ping", _array(MAPS_IN_MAPS))),
    Shape("nested maps, 4 MiB", _R, Way.REPEAT, 4, lambda: _raw("ping", _array(MAPS_IN_MAPS))),
    Shape("empty arrays, 4 MiB", _R, Way.REPEAT, 4, lambda: _raw("segments_for", _array(b"\x90"))),
    Shape("array of nil, 4 MiB", _R, Way.REPEAT, 4, lambda: _raw("ping", _array(b"\xc0"))),
    Shape("arrays of nil in arrays, 4 MiB", _R, Way.REPEAT, 4,
          lambda: _raw("ping", _array(b"\xdc\x9c\x40" + b"\xc0" * 40_000))),
    Shape("a text of 4 MiB", _R, Way.REPEAT, 4,
          lambda: request_frame(1, "ping", ["x" * (FRAME_BYTES_MAX - 100)])),
    Shape("nested maps, 500 bytes, in pipelines", _R, Way.REPEAT, 16,
          lambda: _raw("ping", b"\x91" + b"\x81\x01" * 240 + b"\xc0") * 100),
    Shape("unfinished frames of 3 MiB", _R, Way.HOLD, 64,
          lambda: struct.pack(">I", FRAME_BYTES_MAX) + bytes(3 * 1024 * 1024)),
    Shape("frames byte by byte", _R, Way.DRIP, 200, _pings, waits_ms=1.0),
    Shape("pings in pipelines", _R, Way.REPEAT, 200, _pings),
    Shape("status in pipelines", _R, Way.REPEAT, 32,
          lambda: request_frame(1, "status", []) * 50),
    Shape("status unread", _R, Way.UNREAD, 200, lambda: request_frame(1, "status", []) * 50),
    Shape("1,000 look-ups a frame", _R, Way.REPEAT, 16,
          lambda: request_frame(1, "segments_for", [_lookups(1_000)])),
    Shape("1,000 look-ups a frame, unread", _R, Way.UNREAD, 200,
          lambda: request_frame(1, "segments_for", [_lookups(1_000)])),
    Shape("waits", _R, Way.HOLD, 100, _far_waits),
    Shape("4,000 partitions an assignment", _B, Way.REPEAT, 4, _assignments),
    Shape("one assignment after the other", _B, Way.REPEAT, 8,
          lambda: request_frame(1, "assign", [_partitions(4_000), [], True])
          + request_frame(2, "stop_partitions", [_partitions(4_000)])),
    Shape("segments of 20,000 leader epochs", _B, Way.REPEAT, 4,
          lambda: request_frame(1, "add_segment", [
              [HELD, "t", 0],
              [HELD, 0, 9**9, 7, 0, 0, [[at, at] for at in range(20_000)], 1, None, 0, False],
          ])),
    Shape("nested maps, 4 MiB, of an administrator", _A, Way.REPEAT, 4,
          lambda: _raw("log_bounds", _array(MAPS_IN_MAPS))),
    Shape("bounds of the log", _A, Way.REPEAT, 16,
          lambda: request_frame(1, "log_bounds", [list(range(8))])),
)  # fmt: skip

HTTP: Final = (
    Shape("HTTP: metrics", _R, Way.HTTP, 32, lambda: _get("/metrics")),
    Shape("HTTP: livez", _S, Way.HTTP, 64, lambda: _get("/livez")),
    Shape("HTTP: unknown paths", _S, Way.HTTP, 32, lambda: _get("/" + "x" * 6_000)),
    Shape("HTTP: brackets", _S, Way.HTTP, 8, _json_bomb),
    Shape("HTTP: 100,000 headers", _S, Way.HTTP, 8, _http_headers),
)
