"""One run: a service that is killed and started again, clients beside it, and the figures."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

from tests.support.judge.clients import JudgedClient
from tests.support.judge.lives import PartitionLife
from tests.support.server.serve_process import DEADLINE_S, FOLDER, RLMM, Serving, serving

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


CLIENTS: Final = 4
TASKS_PER_CLIENT: Final = 4
LIVES: Final = 4
"""User partitions in use at a time; so four tasks, about, meet at each."""
METADATA_PARTITIONS: Final = 3
EARLY_SHARE: Final = 0.15
EARLY_LINES: Final = 12
"""A service that is killed while it starts has written so many log lines at the most."""
SNAPSHOT_INTERVAL_MS: Final = 400
"""Snapshots are written all the time, so that kills meet them."""
ILLEGAL_MAX: Final = 3
"""Histories that are kept to be told."""


@dataclass(slots=True)
class RunFigures:
    operations: int = 0
    kills: int = 0
    seconds: float = 0.0
    illegal: int = 0
    """Answers that no order of the operations on their user partition explains."""
    counts: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.operations:,} operations, {self.kills:,} kills, "
            f"{self.counts['outcome unknown']:,} unknown outcomes, "
            f"{self.illegal:,} illegal answers; {self.seconds:.0f} s, "
            f"{self.operations / max(self.seconds, 0.001):.0f} operations/s"
        )


class JudgedRun:
    def __init__(
        self,
        folder: Path,
        *,
        operations: int,
        kills: int,
        seed: int,
        program: Sequence[str] = RLMM,
        timeout_s: float = DEADLINE_S,
    ) -> None:
        self.figures = RunFigures()
        self._folder = folder
        self._wanted = operations
        self._kills = kills
        self._program = program
        self._timeout_s = timeout_s
        self._random = Random(seed)
        self._numbers, self._moments = count(), count()
        self._lives = [self._new_life() for _ in range(LIVES)]
        self._progress = asyncio.Event()

    async def run(self) -> RunFigures:
        """Return the figures when all operations and kills are done, or an answer was illegal."""
        begin_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            service = tasks.create_task(self._serve())
            await self._work()
            service.cancel()
        for life in self._lives:
            self._judge(life)
        self.figures.seconds = time.monotonic() - begin_s
        return self.figures

    @property
    def _is_over(self) -> bool:
        figures = self.figures
        is_done = figures.operations >= self._wanted and figures.kills >= self._kills
        return is_done or figures.illegal > 0

    # ------------------------------------------------------------------------------- the clients

    async def _work(self) -> None:
        socket = self._folder / FOLDER / "rlmm.sock"
        async with AsyncExitStack() as closing, asyncio.TaskGroup() as tasks:
            for number in range(CLIENTS):
                client = JudgedClient(
                    *(socket, self._random, self.figures.counts),
                    timeout_s=self._timeout_s,
                    is_repeating=number % 2 == 0,
                )
                closing.push_async_callback(client.connection.close)
                for _ in range(TASKS_PER_CLIENT):
                    tasks.create_task(self._work_as(client))

    async def _work_as(self, client: JudgedClient) -> None:
        while not self._is_over:
            at = self._random.randrange(LIVES)
            life = self._lives[at]
            if life.is_over:
                life = self._lives[at] = self._new_life()
            self.figures.operations += 1
            await client.work(life)
            self._progress.set()
            if life.is_over and life.pending == 0:
                self._judge(life)

    def _new_life(self) -> PartitionLife:
        return PartitionLife(next(self._numbers), self._moments)

    def _judge(self, life: PartitionLife) -> None:
        illegal = life.judge()
        self.figures.illegal += len(illegal)
        if illegal and len(self.figures.told) < ILLEGAL_MAX:
            lines = [f"{life.partition}: no order of these operations explains the marked answers"]
            lines += [f"{'>' if one in illegal else ' '} {one}" for one in life.history]
            self.figures.told.append("\n".join(lines))

    # ------------------------------------------------------------------------------- the service

    async def _serve(self) -> None:
        arguments = (
            *("--log-num-partitions", str(METADATA_PARTITIONS)),
            *("--snapshot-interval-ms", str(SNAPSHOT_INTERVAL_MS)),
        )
        while True:
            async with serving(self._folder, *arguments, program=self._program) as served:
                is_early = self._random.random() < EARLY_SHARE
                if is_early and 0 < self.figures.kills < self._kills:
                    await _read_lines(served, self._random.randint(1, EARLY_LINES))
                    served.send(signal.SIGKILL)
                else:
                    await self._until_killed(served)
                assert await served.end() == -signal.SIGKILL, served.said
            self.figures.kills += 1

    async def _until_killed(self, served: Serving) -> None:
        reading = asyncio.create_task(_read_lines(served, None))
        try:
            left = max(1, self._kills - self.figures.kills + 1)
            share = 2 * max(self._wanted - self.figures.operations, 0) // left
            until = self.figures.counts["answered"] + self._random.randint(1, max(share, 20))
            while self.figures.counts["answered"] < until or self.figures.kills >= self._kills:
                self._progress.clear()
                await self._progress.wait()
                assert not reading.done(), f"the service has ended by itself: {served.said}"
        finally:
            if not reading.done():
                served.send(signal.SIGKILL)
            await reading


async def _read_lines(served: Serving, count: int | None) -> None:
    """Read *count* log lines, or all until the service has ended."""
    read = 0
    while (count is None or read < count) and await served.next_line() is not None:
        read += 1
        served.lines.clear()
