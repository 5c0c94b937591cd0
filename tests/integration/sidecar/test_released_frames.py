"""Other clients: released frames of version 1, and a client in Java."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.assignment import Assignment
from rlmm.wire import hello
from rlmm.wire.messages import request_frame
from tests.support.engines import World, until_open
from tests.support.java_client import running
from tests.support.java_client.running import SOURCE, needs_java, run_client
from tests.support.repository import tree
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import connected
from tests.support.server.recorded_frames import to_json
from tests.support.server.released_frames import FILE, Wire, message_of, service
from tests.support.server.released_http import shape

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


CONVERSATION = json.loads(FILE.read_text(encoding="utf-8"))["exchanges"]
FRAMES = json.loads((tree.ROOT / "tests/compat/wire-1.json").read_text(encoding="utf-8"))
REQUESTS = [frame for frame in FRAMES["frames"] if frame["direction"] == "request"]
REFUSED = FRAMES["refused"]
PING = next(frame for frame in REQUESTS if frame["name"] == "ping")
LAST = {"id": 999, "hex": request_frame(999, "ping", []).hex()}
OWN = {"hello", "status"}
"""Fields of hello that may differ from the recorded frames."""
NOT_UNDERSTOOD = {"protocol", "unknown-method", "unsupported-version", "invalid-argument"}


def differences(method: str, kept: bytes, today: bytes) -> list[str]:
    if kept == today:
        return []
    was, now = to_json(message_of(kept)), to_json(message_of(today))
    assert isinstance(was, list)
    assert isinstance(now, list)
    if was[0] != now[0] or (was[1] is None) != (now[1] is None):
        return [f"{was} became {now}"]
    if was[1] is not None:
        return _differences_of_errors(was[1], now[1])
    return _differences_of_maps(was[2], now[2]) if method in OWN else [f"{was} became {now}"]


def _differences_of_errors(was: Any, now: Any) -> list[str]:
    found = [] if (was[0], was[2]) == (now[0], now[2]) else [f"{was} became {now}"]
    absent = object()
    return found + [key for key, value in was[3].items() if now[3].get(key, absent) != value]


def _differences_of_maps(was: Any, now: Any) -> list[str]:
    kept, today = shape(was), shape(now)
    return [
        place
        for place, kind in kept.items()
        if today.get(place) != kind and not (place in today and "null" in {kind, today[place]})
    ]


@asynccontextmanager
async def open_wire(places: int, *, is_greeted: bool) -> AsyncIterator[Wire]:
    world = World(places)
    async with world.engine(assignment=Assignment.everything()) as engine:
        await until_open(engine, *range(places))
        async with listening(engine) as served, connected(served.path) as client:
            wire = Wire(client.reader, client.writer)
            if is_greeted:
                assert message_of(await answer_to(wire, REQUESTS[0]))[1] is None
            yield wire


async def answer_to(wire: Wire, entry: Any) -> bytes:
    (frame,) = await wire.exchanged(bytes.fromhex(entry["hex"]), 1)
    return frame


async def test_conversation_of_version_1_then_has_the_same_answers(tmp_path: Path) -> None:
    """A recorded conversation of version 1 gets the same answers from a new service."""
    found = {}
    async with service(tmp_path) as wire:
        for number, exchange in enumerate(CONVERSATION):
            sent = bytes.fromhex(exchange["sent"])
            today = await wire.exchanged(sent, len(exchange["answered"]))
            for (method, args), kept, answer in zip(
                exchange["asked"], exchange["answered"], today, strict=True
            ):
                if parted := differences(method, bytes.fromhex(kept), answer):
                    found[number, method, str(args)] = parted
    assert found == {}


def test_conversation_of_version_1_then_has_every_method() -> None:
    """The conversation has every method of version 1 with an answer."""
    answered: dict[str, set[bool]] = {}
    for exchange in CONVERSATION:
        for (method, _), told in zip(exchange["asked"], exchange["told"], strict=True):
            answered.setdefault(method, set()).add(told[1] is None)
    assert {method for method, found in answered.items() if True in found} == {
        frame["method"] for frame in REQUESTS
    }


@pytest.mark.parametrize("entry", REQUESTS, ids=lambda entry: entry["name"])
async def test_request_of_version_1_when_it_comes_then_is_understood(entry: Any) -> None:
    """A request of version 1 is answered by its id, refused, or waits while a ping passes it; only
    a topic name that no broker accepts is an invalid argument."""
    async with open_wire(50, is_greeted=entry["method"] != "hello") as wire:
        wire.writer.write(bytes.fromhex(entry["hex"]))
        request_id, error, _ = message_of(await answer_to(wire, LAST))
        assert request_id in {entry["id"], LAST["id"]}
        is_name = error is not None and "a topic name is" in error[1]
        assert error is None or is_name or error[0] not in NOT_UNDERSTOOD, error


@pytest.mark.parametrize("entry", REFUSED, ids=lambda entry: entry["name"])
async def test_bytes_that_version_1_refuses_then_refused_by_the_same_code(entry: Any) -> None:
    """Each wrong frame has its code, and only `protocol` ends the connection."""
    is_hello = entry["name"].startswith("value-hello")
    async with open_wire(1, is_greeted=not is_hello) as wire:
        assert message_of(await answer_to(wire, entry))[1][0] == entry["code"]
        if is_hello or entry["code"] == "protocol":
            assert await wire.reader.read() == b""
        else:
            assert message_of(await answer_to(wire, PING))[1] is None


async def test_version_1_when_given_up_then_refused_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal has the form that version 1 reads, names both, and ends the connection."""
    world = World(1)
    monkeypatch.setattr(hello, "VERSIONS", (2, 3))
    async with (
        world.engine() as engine,
        listening(engine) as served,
        connected(served.path) as client,
    ):
        wire = Wire(client.reader, client.writer)
        request_id, error, result = message_of(await answer_to(wire, REQUESTS[0]))
        assert (request_id, result) == (REQUESTS[0]["id"], None)
        code, message, retriable, fields = error
        assert (code, retriable, fields) == ("unsupported-version", False, {})
        assert "1" in message
        assert "2, 3" in message
        assert await wire.reader.read() == b""


WHO = (running.TOPIC_ID, running.TOPIC, str(running.PARTITION))


@needs_java
@pytest.mark.parametrize("follows_brokers", [True, False], ids=["broker", "all"])
async def test_foreign_client_then_understands_every_answer_of_it(*, follows_brokers: bool) -> None:
    """A client in Java assigns, writes, waits, looks up, lists pages and reads refusals."""
    assignment = Assignment.awaited() if follows_brokers else Assignment.everything()
    async with (
        World().engine(assignment=assignment) as engine,
        listening(engine, follows_brokers=follows_brokers) as served,
    ):
        lines = await run_client(str(served.path), *WHO)
    running.require_told(lines)


@needs_java
def test_foreign_client_then_is_of_one_short_file_and_needs_a_jdk_alone(tmp_path: Path) -> None:
    """Below 200 lines, compiled without a warning, and of all modules it uses the JDK's first."""
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) < 200
    javac, jdeps = shutil.which("javac"), shutil.which("jdeps")
    assert javac is not None
    assert jdeps is not None
    compiling = [javac, "-Xlint:all", "-Werror", "-proc:none", "-encoding", "UTF-8", "-classpath"]
    subprocess.run([*compiling, str(tmp_path), "-d", str(tmp_path), str(SOURCE)], check=True)
    depending = [jdeps, "--list-deps", str(tmp_path)]
    found = subprocess.run(depending, check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["java.base"]
