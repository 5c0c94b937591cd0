"""N7 of `bench native`: server CPU of a look-up by the frame server, beside an echo server in C."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.native_service import serving
from bench.native_starts import data_folder
from bench.native_stream import NOT_FOUND
from bench.sidecar_ground import Asked, compiled, echo_server, load
from rlmm.base.native_core import ShardEngine
from rlmm.log.files.files_log import FilesLog
from rlmm.process.wiring import LOG_FOLDER
from rlmm.wire.messages import answer_frame, request_frame
from rlmm.wire.values import partition_value
from tests.support.server.raw_frames import greeted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from bench.native_ground import Ground
    from bench.sidecar_ground import Load, Noted, Process, Programs

RANDOM_MAX, HOT_MAX, MANY_MAX = 2.2, 1.9, 0.20
CLIENTS = 64
IN_ONE = 16
_FIRST_ID = 70_000
"""Ids of five bytes, as a connection has that lives for some time."""


def compare_serving(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    ground.with_questions()
    folder = data_folder(ground)
    programs = compiled(ground.place)
    lookups = _lookups(ground)
    run.section(f"N7: server CPU of a look-up, {CLIENTS} clients, {sizes.events:,} events")
    said = {"cluster_id": asyncio.run(_cluster_id(folder))}
    with serving(folder, ShardEngine.NATIVE) as service:
        answers = asyncio.run(_answers(service.server, said, lookups[:IN_ONE]))
        hello = request_frame(1, "hello", [{"versions": [1], "client": "bench", **said}])
        answer = answer_frame(_FIRST_ID, answers[0][1])
        hot = random.Random(1).sample(lookups, min(sizes.hot, len(lookups)))
        ways = {
            "at random": Asked(hello, _singles(lookups), answer),
            "hot": Asked(hello, _singles(hot), answer),
            "16 in a frame": Asked(hello, _many(lookups), answer_frame(_FIRST_ID, answers)),
        }
        noted, echoed = _passes(ground, programs, service.server, ways)
        service.stop()
    _state(ground, noted, echoed)


def _lookups(ground: Ground) -> list[list[Any]]:
    """Return the questions that have an answer, as values of the wire."""
    users = [partition_value(one) for one in ground.stream.partitions()]
    return [
        [users[one.user], one.epoch, one.offset]
        for one in ground.stream.questions()
        if one.offset != NOT_FOUND
    ]


async def _cluster_id(folder: Path) -> str:
    log = await FilesLog.open(folder / LOG_FOLDER)
    try:
        return (await log.identity(timeout_s=10.0)).cluster_id
    finally:
        await log.close()


async def _answers(server: Process, said: dict[str, str], asked: list[list[Any]]) -> list[Any]:
    async with greeted(server.socket, **said) as client:
        answers: list[Any] = await client.call("segments_for", asked)
    assert all(error is None and segment is not None for error, segment in answers)
    return answers


def _singles(lookups: list[list[Any]]) -> list[bytes]:
    return [request_frame(_FIRST_ID + at, "segment_for", one) for at, one in enumerate(lookups)]


def _many(lookups: list[list[Any]]) -> list[bytes]:
    pieces = [lookups[at : at + IN_ONE] for at in range(0, len(lookups) - IN_ONE, IN_ONE)]
    return [request_frame(_FIRST_ID + at, "segments_for", [one]) for at, one in enumerate(pieces)]


@contextmanager
def _loaded(
    ground: Ground, programs: Programs, server: Process, name: str, asked: Asked
) -> Iterator[Load]:
    folder = ground.place / f"load {name}"
    folder.mkdir(exist_ok=True)
    with load(programs, server, folder, asked, clients=CLIENTS) as found:
        yield found


def _passes(
    ground: Ground, programs: Programs, server: Process, ways: dict[str, Asked]
) -> tuple[dict[str, list[Noted]], dict[str, list[Noted]]]:
    """Load rlmm and the echo with the same frames, in turns."""
    noted: dict[str, list[Noted]] = {name: [] for name in ways}
    echoed: dict[str, list[Noted]] = {name: [] for name in ways}
    for name, asked in ways.items():
        with ExitStack() as opened:
            echo = opened.enter_context(echo_server(programs, ground.place, asked.answer))
            theirs = opened.enter_context(_loaded(ground, programs, echo, f"echo {name}", asked))
            ours = opened.enter_context(_loaded(ground, programs, server, name, asked))
            for _ in range(ground.sizes.passes):
                echoed[name].append(theirs.run(ground.sizes.pass_ms))
                noted[name].append(ours.run(ground.sizes.pass_ms))
    return noted, echoed


def _cpu_us(noted: list[Noted]) -> float:
    """Sum over all passes, because the system counts in steps of some milliseconds."""
    return sum(one.cpu_us * one.answers for one in noted) / sum(one.answers for one in noted)


def _state(ground: Ground, noted: dict[str, list[Noted]], echoed: dict[str, list[Noted]]) -> None:
    run = ground.run
    for name, found in noted.items():
        run.add(Figure(f"N7: echo in C, {name}", _cpu_us(echoed[name]), "us/frame"))
        run.add(Figure(f"N7: rlmm, {name}", _cpu_us(found), "us/frame"))
    for name, limit in (("at random", RANDOM_MAX), ("hot", HOT_MAX)):
        ratio = _cpu_us(noted[name]) / _cpu_us(echoed[name])
        run.add(Figure(f"N7: rlmm / echo in C, {name}", ratio, "times", at_most=limit))
    ratio = _cpu_us(noted["16 in a frame"]) / (IN_ONE * _cpu_us(noted["at random"]))
    run.add(Figure("N7: 16 in a frame / 16 frames", ratio, "times", at_most=MANY_MAX))
