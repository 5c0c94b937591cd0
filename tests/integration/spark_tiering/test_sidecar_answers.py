"""Answers of sidecars that are late, cut off or invalid."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from spark_tiering.segment_sources import sidecar_http
from spark_tiering.segment_sources.settings import SidecarSourceSettings
from spark_tiering.segment_sources.sidecar import SidecarFiles, SidecarSegmentSource
from spark_tiering.segment_sources.sidecar_http import Endpoint, SidecarFaultKind
from tests.support.engines import until
from tests.support.partitions.broker_folders import FIRST, PARTITION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HANG_UP = b""


class Silence:
    """Stands for no answer as long as the client waits."""


SILENCE = Silence()


def reply(status: int, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    """Build an answer; *length* is the declared length where it is wrong."""
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


LOG = f"{FIRST}.log"
CONTENT = b"0123456789"
RANGE = "Content-Range: bytes 4-13/100"
WHOLE = reply(206, CONTENT, RANGE)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect pauses instead of waiting."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def files_of(server: ScriptedServer, **options: int) -> SidecarFiles:
    settings = SidecarSourceSettings((server.address,), **options)  # type: ignore[arg-type]  # numbers
    return SidecarFiles(Endpoint(server.address, settings), "/logs", PARTITION)


async def read_of(server: ScriptedServer, **options: int) -> bytes:
    return await asyncio.to_thread(files_of(server, **options).read, LOG, 4, 10)


async def test_read_when_it_is_answered_then_asked_was_for_that_range() -> None:
    """A read requests exactly its range of its file, with nothing unknown."""
    async with scripted_server(WHOLE) as server:
        assert await read_of(server) == CONTENT
    (head,) = server.heads
    assert head.startswith(
        "GET /v1/broker-log/file?folder=%2Flogs&topic_id=AQIDBAUGBwgJCgsMDQ4PEA&topic=orders"
        f"&partition=3&name={LOG} HTTP/1.1\r\n"
    )
    assert "\r\nRange: bytes=4-13\r\n" in head
    assert "Authorization" not in head


@pytest.mark.parametrize(
    "faults",
    [
        [HANG_UP],
        [reply(206, CONTENT[:3], RANGE, length=10)],
        [refusal(429, "too-busy", "Retry-After: 1")],
        [refusal(503, "not-ready")],
        [refusal(500, "error")],
        [HANG_UP, reply(206, CONTENT[:3], RANGE, length=10), refusal(503, "stopped")],
    ],
    ids=["hung-up", "cut", "busy", "not-ready", "fault", "all"],
)
async def test_repeated_answer_is_whole(faults: list[bytes | Silence], pauses: list[float]) -> None:
    """The client asks again for the whole of a cut answer and never joins two."""
    async with scripted_server(*faults, WHOLE) as server:
        assert await read_of(server) == CONTENT
    assert len(server.heads) == len(faults) + 1
    assert len(pauses) == len(faults)
    assert all(0 < pause_s <= 10 for pause_s in pauses)
    assert all("\r\nRange: bytes=4-13\r\n" in head for head in server.heads)


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (HANG_UP, SidecarFaultKind.UNREACHED, "RemoteDisconnected"),
        (reply(206, CONTENT[:3], RANGE, length=10), SidecarFaultKind.CUT, "IncompleteRead"),
        (refusal(503, "log-unavailable"), SidecarFaultKind.BUSY, "so it is: log-unavailable"),
        (reply(206, b"x" * 70_000, RANGE), SidecarFaultKind.CUT, "70000 bytes"),
        (b"HTTP/1.1 200 x\r\n\r\nwithout a length", SidecarFaultKind.CUT, "None bytes"),
        (b"SSH-2.0-OpenSSH\r\n", SidecarFaultKind.UNREACHED, "BadStatusLine"),
        (SILENCE, SidecarFaultKind.TIMED_OUT, "no answer in 0.1 s"),
    ],
    ids=["hung-up", "cut", "busy", "too-long", "no-length", "no-http", "silent"],
)
async def test_read_when_there_is_never_an_answer_then_attempts_are_bounded(
    said: bytes | Silence, kind: SidecarFaultKind, told: str
) -> None:
    """The client stops after a bounded number of attempts and reports the last reason."""
    attempts = sidecar_http._POLICIES[kind].attempts_max
    timeout_ms = 100 if said is SILENCE else 30_000
    async with scripted_server(*[said] * 20) as server:
        with pytest.raises(LogUnavailable, match=rf"did not answer \({kind}\)") as error:
            await read_of(server, timeout_ms=timeout_ms)
        await until(lambda: len(server.heads) >= attempts, 10)
    assert told in str(error.value)
    assert len(server.heads) == attempts


@pytest.mark.parametrize(
    "said",
    [
        reply(200, CONTENT),
        reply(206, CONTENT, "Content-Range: bytes 5-14/100"),
        reply(206, CONTENT, "Content-Range: bytes 4-12/100"),
        reply(206, CONTENT),
        reply(206, CONTENT + b"more", "Content-Range: bytes 4-17/100"),
        reply(302, b"", "Location: http://elsewhere/"),
    ],
    ids=["all", "elsewhere", "fewer", "no-range", "more", "moved"],
)
async def test_read_when_the_answer_is_of_other_bytes_then_is_refused(said: bytes) -> None:
    """The client refuses an answer whose bytes do not match the request."""
    async with scripted_server(said) as server:
        with pytest.raises(LogUnavailable, match="makes no sense"):
            await read_of(server)
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (refusal(401, "not-permitted"), LogNotPermitted),
        (refusal(403, "not-permitted"), LogNotPermitted),
        (refusal(404, "not-found"), LogNotPermitted),
        (reply(404, b"<html>nginx</html>"), LogNotPermitted),
        (refusal(400, "invalid-argument"), LogNotPermitted),
        (refusal(502, "log-not-permitted"), LogNotPermitted),
        (refusal(409, "not-sealed"), LogUnavailable),
    ],
    ids=["401", "403", "404", "404-html", "400", "502", "409"],
)
async def test_read_when_refused_is_not_repeated(said: bytes, error: type[Exception]) -> None:
    """A refused read is not repeated: a deleted file has no bytes, else it is an error."""
    async with scripted_server(said) as server:
        with pytest.raises(error):
            await read_of(server)
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    "said", [refusal(404, "file-absent"), refusal(416, "invalid-argument")], ids=["gone", "ended"]
)
async def test_read_when_the_sidecar_has_nothing_then_has_no_bytes(said: bytes) -> None:
    """Only the sidecar's own answer, not a proxy's status, makes a file count as absent."""
    async with scripted_server(said) as server:
        assert await read_of(server) == b""


SHORT_ID = {"folder": "/x", "topic_id": "short", "topic": "orders", "partition": 1}
FILE = {"name": LOG, "size_bytes": 10, "modified_ms": 5, "is_readable": True, "why": None}


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        ("facts", b""),
        ("facts", b"[]"),
        ("facts", b"[" * 100_000),
        ("facts", {}),
        ("facts", {"files": [{**FILE, "size_bytes": "10"}]}),
        ("facts", {"files": [{**FILE, "size_bytes": True}]}),
        ("facts", {"files": ["orders"]}),
        ("partitions", {}),
        ("partitions", {"folders": [], "partitions": [{}], "unusable": []}),
        ("partitions", {"folders": [], "partitions": [SHORT_ID], "unusable": []}),
        ("partitions", {"folders": [{"folder": 5}], "partitions": [], "unusable": []}),
    ],
    ids=[
        "nothing", "array", "deep", "empty", "text", "truth", "names", "no-partitions",
        "nothing-of-it", "topic-id", "folder",
    ],
)  # fmt: skip
async def test_answer_when_malformed_is_refused(asks: str, told: bytes | dict[str, Any]) -> None:
    """The client refuses an answer that does not have the sidecar's form, or impossible values."""
    content = told if isinstance(told, bytes) else json.dumps(told).encode()
    async with scripted_server(reply(200, content)) as server:
        source = SidecarSegmentSource(SidecarSourceSettings((server.address,)))
        ask = files_of(server).facts if asks == "facts" else source.partitions
        with pytest.raises(LogUnavailable, match="makes no sense"):
            await asyncio.to_thread(ask)


async def test_partitions_when_a_sidecar_names_kafka_s_own_topics_then_they_are_left_out() -> None:
    """The client leaves out Kafka's internal topics, even when a sidecar offers them."""
    one = {"folder": "/x", "topic_id": str(PARTITION.topic_id), "partition": 0}
    partitions = [{**one, "topic": topic} for topic in ("orders", "__consumer_offsets")]
    told = {"folders": [], "partitions": partitions, "unusable": []}
    async with scripted_server(reply(200, json.dumps(told).encode())) as server:
        source = SidecarSegmentSource(SidecarSourceSettings((server.address,)))
        found, _ = await asyncio.to_thread(source.partitions)
    assert [one.partition.topic for one in found] == ["orders"]
    assert (found[0].origin.node_id, found[0].high_watermark) == (None, None)


@pytest.mark.parametrize(
    "address",
    [
        "broker:7405",
        "ftp://broker:7405",
        "https://broker",
        "https://broker:port",
        "https://:7405",
        "https://user:secret@broker:7405",
        "https://broker:7405/v1",
        "https://broker:7405?x",
        "https://[broker:7405",
        "https://broker:99999",
    ],
)
def test_source_when_an_address_is_none_then_is_a_mistake(address: str) -> None:
    """An invalid address is a configuration mistake, found before any request."""
    with pytest.raises(ConfigError, match="https://HOST:PORT"):
        SidecarSegmentSource(SidecarSourceSettings((address,)))


@pytest.mark.parametrize("is_allowed", [False, True], ids=["refused", "allowed"])
async def test_token_when_the_sidecar_is_another_machine_without_tls_then_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    """A token goes by plain HTTP within this machine alone, unless that is allowed."""
    monkeypatch.setattr(sidecar_http, "is_loopback", lambda _: False)
    token_file = tmp_path / "token"
    token_file.touch(0o600)
    token_file.write_text("a-token-0123456789abcdef\n")
    async with scripted_server(WHOLE) as server:
        options: Any = {"token_file": str(token_file), "is_plaintext_token": is_allowed}
        if is_allowed:
            assert await read_of(server, **options) == CONTENT
        else:
            with pytest.raises(ConfigError, match="--source-plaintext-token"):
                await read_of(server, **options)
            await until(lambda: server.connections == 1)
    assert ["Bearer a-token" in head for head in server.heads] == [True] * is_allowed
