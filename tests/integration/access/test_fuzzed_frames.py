"""A server under random frames: it does not fail, leak, or delay other clients."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from rlmm.access.authentication import UNIX_CLIENT, Authenticator
from rlmm.access.settings import AccessSettings, TlsSettings
from rlmm.base.secret import Secret
from tests.support.engines import World, until, until_open
from tests.support.fuzzing.frames import Fuzzer
from tests.support.server.access_files import ADMIN, BOUND, BROKER, READER, TOKENS
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import greeted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.server.frame_servers import Listening
    from tests.support.server.raw_frames import FrameClient

SHORT = 100_000
LONG = int(os.environ.get("RLMM_FUZZED_FRAMES", "10000000"))
FUZZERS = 4
TOKENS_SHOWN = (
    (READER, None), (READER, None), (BROKER, None), (BROKER, 7), (BROKER, 8), (BOUND, 7),
    (ADMIN, None), (ADMIN, 7), (READER, 7), ("unknown-0123456789", None),
)  # fmt: skip
NEIGHBOUR_S = 1.5
"""
The most CPU time of this process while a neighbour waits for one answer. It includes making and
sending all frames, and excludes other processes.
"""
DEADLINE_S = 60.0
"""Never reached, unless the neighbour is not answered."""
MEMORY_BYTES = 96 * 1024 * 1024
"""
The most that the process may grow once it is warm: a leak of 100 bytes a frame in the long form is
ten times as much.
"""
WARM = 0.1


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    """Return the open files, sockets and pipes of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class Neighbour:
    """A client that keeps asking, and notes how much the server did before each answer."""

    def __init__(self, client: FrameClient) -> None:
        self._client = client
        self._is_over = False
        self.longest_s = 0.0
        self.answers = 0

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Ask while the block runs; every question is answered at its end."""
        self._is_over = False
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(self._ask())
            yield
            self._is_over = True
            async with asyncio.timeout(DEADLINE_S):
                await asked

    async def _ask(self) -> None:
        while not self._is_over:
            begin_s = time.process_time()
            await self._client.call("status")
            self.longest_s = max(self.longest_s, time.process_time() - begin_s)
            self.answers += 1
            await asyncio.sleep(0.01)


def has_done(served: Listening, count: int) -> bool:
    """Whether the server answered or refused that many requests, wrong ones included."""
    found = served.sidecar.statistics()
    return sum(found.answered.values()) + sum(found.refusals.values()) >= count


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(LONG, id="long", marks=[pytest.mark.long, pytest.mark.timeout(14_400)]),
    ],
)
async def test_fuzzed_frames_then_nothing_falls_nothing_stays_and_a_neighbour_is_answered(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No task, file, held byte or client stays, and a neighbour is answered soon."""
    world = World(3)
    door = Authenticator(AccessSettings(tokens=Secret(TOKENS)), TlsSettings())
    warm_bytes = 0
    async with world.engine() as engine:
        await until_open(engine, 0, 1, 2)
        tasks_before, files_before = len(asyncio.all_tasks()), open_files()
        async with listening(engine, door=door) as served:
            async with greeted(served.path, token=ADMIN) as client:
                neighbour = Neighbour(client)
                fuzzers = [
                    Fuzzer(served.path, TOKENS_SHOWN, Random(f"frames/{number}"))
                    for number in range(FUZZERS)
                ]
                for share in (WARM, 1.0):
                    warm_bytes = resident_bytes()
                    is_enough = partial(has_done, served, int(count * share))
                    async with neighbour.asking():
                        await asyncio.gather(*(one.run(is_enough) for one in fuzzers))
            await until(lambda: sum(served.sidecar.statistics().connections.values()) == 0)
            found = served.sidecar.statistics()
            clients = door.statistics().clients
        await until(lambda: len(asyncio.all_tasks()) <= tasks_before)
        await until(lambda: open_files() <= files_before)
    grown_bytes = resident_bytes() - warm_bytes

    assert [code for _, code in found.refusals if code == "part-failed"] == []
    assert [line for line in caplog.records if line.levelname == "ERROR"] == []
    assert (found.held_bytes, found.greeting_bytes) == (0, 0)
    assert (found.waiting, found.waiting_bytes) == (0, 0)
    assert {taken.connections for taken in clients.values()} == {0}
    assert set(clients) <= {"reader", "broker", "broker-7", "ops", UNIX_CLIENT}
    assert neighbour.answers > 20
    assert neighbour.longest_s < NEIGHBOUR_S
    assert grown_bytes < MEMORY_BYTES
    codes = set.union(*(one.fuzzed.codes for one in fuzzers))
    assert {"protocol", "not-permitted", "invalid-argument", "unknown-method"} <= codes
    assert sum(one.fuzzed.damaged for one in fuzzers) > count // 1_000
