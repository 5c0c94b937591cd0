"""Damaged frames for a frame server."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgpack

from rlmm.wire.framing import FrameReader
from rlmm.wire.messages import request_frame
from tests.support.server.recorded_frames import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

DEADLINE_S: Final = 60.0
"""Never reached, unless the server does not hang up."""
FRAMES_PER_CONNECTION: Final = 200
_CHUNK: Final = 20
_END: Final = b"\0\0\0\0"
"""A frame that ends a connection: its length is not allowed."""
_PARSED_EACH: Final = 8
_GOLDEN: Final = [golden for golden in requests() if golden.meaning["method"] != "hello"]
_HELLOS: Final = [golden.data for golden in requests() if golden.meaning["method"] == "hello"]
_QUESTIONS: Final = [(str(one.meaning["method"]), one.meaning["args"]) for one in _GOLDEN]
_ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 127, 128, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1,
    -(2**63), 0.5, float("nan"), float("inf"), "", "x", "\0", "orders", "../..", "n" * 300, b"",
    b"x", bytes(15), bytes(16), bytes(17), b"\xff" * 16, [], [[]], [None] * 3, [bytes(16), "t", 0],
    {}, {"timeout_ms": 1}, {"timeout_ms": 0}, {"timeout_ms": -1}, {"at_least": {0: 2**40}},
    {"linearizable": True, "timeout_ms": 1}, {"at_least": {-1: 0}}, {"at_least": []},
    {"unassigned": "store"}, {"unknown": 1}, {1: 2},  [[[[[[[]]]]]]],
)  # fmt: skip


@dataclass
class Fuzzed:
    connections: int = 0
    damaged: int = 0
    answers: int = 0
    codes: set[str] = field(default_factory=set)


class Fuzzer:
    def __init__(self, path: Path, tokens: Sequence[tuple[str, int | None]], rng: Random) -> None:
        self._path = path
        self._tokens = tokens
        self._rng = rng
        self.fuzzed = Fuzzed()

    async def run(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            await self._connection()

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_unix_connection(self._path)
        fuzzed = self.fuzzed
        fuzzed.connections += 1
        try:
            if not await self._say(writer):
                return
            async with asyncio.timeout(DEADLINE_S):
                told = await reader.read(-1)
            if not fuzzed.connections % _PARSED_EACH:
                self._parse(told)
        except ConnectionError:
            return
        finally:
            writer.transport.abort()

    async def _say(self, writer: asyncio.StreamWriter) -> bool:
        kind = self._rng.random()
        if kind < 0.9:
            writer.write(self._hello())
        if kind < 0.5:
            return await self._ask(writer)
        self.fuzzed.damaged += 1
        writer.write(self._damaged(_GOLDEN if kind < 0.9 else None))
        if kind >= 0.97:
            return False  # hang up in the middle of whatever it was
        writer.write(_END)
        writer.write_eof()  # the end may have become a part of a damaged frame
        return True

    async def _ask(self, writer: asyncio.StreamWriter) -> bool:
        for _ in range(FRAMES_PER_CONNECTION // _CHUNK):
            if writer.is_closing():
                return False  # hello was refused
            writer.write(b"".join(self._request() for _ in range(_CHUNK)))
            await asyncio.sleep(0)
        for _ in range(self._rng.choice((0, 0, 0, 50))):
            await asyncio.sleep(0)  # until some of what has to wait has waited
        writer.write(_END)
        return True

    def _hello(self) -> bytes:
        rng = self._rng
        token, broker_id = rng.choice(self._tokens)
        said = {"versions": [1], "client": "fuzz", "token": token}
        return request_frame(
            2**32 - 1, "hello", [said if broker_id is None else {**said, "broker_id": broker_id}]
        )

    def _request(self) -> bytes:
        rng = self._rng
        method, args = rng.choice(_QUESTIONS)
        found = list(args)  # type: ignore[call-overload]
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            found = self._changed(found)
        if rng.random() < 0.02:
            method = rng.choice(("", "nothing", "__class__", "answer", "\0", "x" * 200))
        return request_frame(rng.randrange(2**32 - 1), method, found)

    def _changed(self, value: list[Any]) -> list[Any]:
        rng = self._rng
        value = list(value)
        at = rng.randrange(len(value) + 1)
        if at == len(value):
            value.append(rng.choice(_ODD))
        elif isinstance(value[at], (list, tuple)) and rng.random() < 0.7:
            value[at] = self._changed(list(value[at]))
        elif rng.random() < 0.1:
            del value[at]
        else:
            value[at] = rng.choice(_ODD)
        return value

    def _damaged(self, goldens: Sequence[Any] | None) -> bytes:
        rng = self._rng
        if goldens is None and rng.random() < 0.3:
            return rng.randbytes(rng.randrange(1, 100))
        data = bytearray(rng.choice(_HELLOS) if goldens is None else rng.choice(goldens).data)
        keeps_length = rng.random() < 0.8
        for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
            at = rng.randrange(4 if keeps_length else 0, len(data))
            how = rng.random()
            if how < 0.6:
                data[at] = rng.randrange(256)
            elif how < 0.8:
                data[at:at] = rng.randbytes(rng.choice((1, 4)))
            elif len(data) > 5:
                del data[at:]
                break
        if keeps_length:
            data[:4] = struct.pack(">I", len(data) - 4)
        return bytes(data)

    def _parse(self, told: bytes) -> None:
        for payload in FrameReader().feed(told):
            answer: Any = msgpack.unpackb(payload, strict_map_key=False)
            _, error, _ = answer
            self.fuzzed.answers += 1
            if error is not None:
                self.fuzzed.codes.add(error[0])
