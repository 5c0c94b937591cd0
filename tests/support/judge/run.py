"""One run: a service that is killed and started again, clients beside it, and the figures."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Final

from rlmm.cli.common.exit_codes import EXIT_USAGE
from rlmm.partition_log.settings import SyncPolicy
from rlmm.process.wiring import LOG_FOLDER, SNAPSHOT_FOLDER
from tests.support.judge.clients import JudgedClient
from tests.support.judge.cuts import cut, with_another_partition
from tests.support.judge.forked import serving
from tests.support.judge.lives import Moments, PartitionLife
from tests.support.judge.observer import LATE_US, JudgedObserver
from tests.support.server.serve_process import FOLDER, Serving

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


CLIENTS: Final = 4
TASKS_PER_CLIENT: Final = 4
WATCH_PAUSE_S: Final = 0.04
"""Pause of a task that asks the observer, which answers faster than the service that writes."""
LIVES: Final = 4
"""User partitions in use at a time; so four tasks, about, meet at each."""
KILLS_PER_OBSERVER: Final = 4
"""Kills of the service for one of the observer, at the most: a run goes on until then."""
WATCHED: Final = 24
"""The newest user partitions: the observer is asked about them, also when they are over."""
METADATA_PARTITIONS: Final = 3
EARLY_SHARE: Final = 0.15
EARLY_LINES: Final = 12
"""A service that is killed while it starts has written so many log lines at the most."""
ARGUMENTS: Final = ("--snapshot-interval-ms", "400")
"""Snapshots are written all the time, so that kills meet them."""
CUT_SHARE: Final = 0.8
"""Kills after which the log is cut, where the observer waits for that."""
TIMEOUT_S: Final = 2.0
"""Deadline of the clients: after a cut a read may wait in vain for an event that was lost."""
COUNTED_EVERY: Final = 20
"""Kills, after one of which the service finds one more partition of its topic."""
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

    def add(self, other: RunFigures) -> None:
        self.operations += other.operations
        self.kills += other.kills
        self.seconds += other.seconds
        self.illegal += other.illegal
        self.counts += other.counts
        self.told += other.told

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
        fault: str | None = None,
    ) -> None:
        self.figures = RunFigures()
        self._folder = folder
        self._wanted = operations
        self._kills = kills
        self._fault = fault
        self._random = Random(seed)
        self._numbers, self._moments = count(), Moments()
        self._unjudged: list[PartitionLife] = []
        self._cut_lives: list[PartitionLife] = []
        """Of the last cut."""
        self._lives = [self._new_life() for _ in range(LIVES)]
        self._progress = asyncio.Event()
        self._observer = JudgedObserver(folder, ARGUMENTS, fault, self._random)

    async def run(self) -> RunFigures:
        """Return the figures when all operations and kills are done, or an answer was illegal."""
        begin_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            services = [tasks.create_task(self._serve()), tasks.create_task(self._observe())]
            await self._work()
            for service in services:
                service.cancel()
        for life in self._unjudged:
            self._judge(life)
        self.figures.seconds = time.monotonic() - begin_s
        return self.figures

    @property
    def _is_over(self) -> bool:
        figures = self.figures
        is_done = figures.operations >= self._wanted and figures.kills >= self._kills
        observed = figures.counts["kills of the observer"] * KILLS_PER_OBSERVER
        return (is_done and observed >= self._kills) or figures.illegal > 0

    # ------------------------------------------------------------------------------- the clients

    async def _work(self) -> None:
        socket = self._folder / FOLDER / "rlmm.sock"
        make = partial(
            JudgedClient,
            random=self._random,
            counts=self.figures.counts,
            timeout_s=TIMEOUT_S,
        )
        clients = [make(socket, is_repeating=number % 2 == 0) for number in range(CLIENTS)]
        clients.append(make(self._observer.socket, late_us=LATE_US))
        async with AsyncExitStack() as closing, asyncio.TaskGroup() as tasks:
            for client in clients:
                closing.push_async_callback(client.connection.close)
                work = self._watch_as if client is clients[-1] else self._work_as
                for _ in range(TASKS_PER_CLIENT):
                    tasks.create_task(work(client))

    async def _watch_as(self, client: JudgedClient) -> None:
        while not self._is_over:
            there = self._random.choice((self._unjudged, self._cut_lives or self._unjudged))
            if not self._observer.is_asked.is_set():
                await self._observer.is_asked.wait()
                there = self._unjudged[-3 * LIVES :]  # most have changed while it stood still
            await self._work_on(self._random.choice(there), client)
            await asyncio.sleep(WATCH_PAUSE_S)

    async def _work_as(self, client: JudgedClient) -> None:
        while not self._is_over:
            at = self._random.randrange(LIVES)
            if self._lives[at].is_over:
                self._lives[at] = self._new_life()
            life = self._lives[at]
            await self._work_on(life, client)
            if life.is_over and not life.pending:
                self._judge(life)  # and once more when nobody watches it

    async def _work_on(self, life: PartitionLife, client: JudgedClient) -> None:
        self.figures.operations += 1
        await client.work(life)
        self._progress.set()

    def _new_life(self) -> PartitionLife:
        for life in self._unjudged[:-WATCHED]:
            if life.is_over and not life.pending:
                self._judge(life)
                self._unjudged.remove(life)
        life = PartitionLife(next(self._numbers), self._moments)
        self._unjudged.append(life)
        return life

    def _judge(self, life: PartitionLife) -> None:
        illegal = life.judge()
        self.figures.illegal += len(illegal)
        if illegal and len(self.figures.told) < ILLEGAL_MAX:
            lines = [f"{life.partition}: no order of these operations explains the marked answers"]
            lines += [f"  begins with {life.model.first}"]
            lines += [f"{'>' if one in illegal else ' '} {one}" for one in life.history]
            self.figures.told.append("\n".join(lines))

    # ------------------------------------------------------------------------------- the services

    async def _observe(self) -> None:
        while not (self._folder / FOLDER / SNAPSHOT_FOLDER).exists():  # so there is a log
            await self._progressed()
        await self._observer.run(self.figures.counts)

    async def _serve(self) -> None:
        log = self._folder / FOLDER / LOG_FOLDER
        while True:
            async with self._started(METADATA_PARTITIONS) as served:
                is_early = self._random.random() < EARLY_SHARE
                if is_early and 0 < self.figures.kills < self._kills:
                    await _read_lines(served, self._random.randint(1, EARLY_LINES))
                    served.send(signal.SIGKILL)
                else:
                    await self._until_killed(served)
                assert await served.end() == -signal.SIGKILL, served.said
            self.figures.kills += 1
            self.figures.counts["kills"] += 1
            cut_share = CUT_SHARE if self._observer.is_ready else CUT_SHARE / 8
            if self._random.random() < cut_share:
                self._cut(log)
            is_counted = any((self._folder / FOLDER).rglob("*.snapshot"))
            if is_counted and self.figures.kills % COUNTED_EVERY == 3:
                with with_another_partition(log, METADATA_PARTITIONS):
                    await self._require_refusal()

    def _started(self, partition_count: int) -> AbstractAsyncContextManager[Serving]:
        said = ("--log-num-partitions", str(partition_count), "--files-sync")
        sync = self._random.choice(list(SyncPolicy))
        return serving(self._folder, *ARGUMENTS, *said, sync, fault=self._fault)

    def _cut(self, log: Path) -> None:
        """Cut the log, and judge from now on by what it holds."""
        contents = cut(log, self._unjudged, METADATA_PARTITIONS, self._random)
        for life, content in contents.items():
            self._judge(life)
            life.begin_anew(content)
        self._cut_lives = list(contents)
        self.figures.counts["histories begun anew by a cut"] += len(contents)
        self._observer.cut.set()

    async def _require_refusal(self) -> None:
        """Start on a topic that got a partition: it ends; whatever it answers is judged."""
        async with self._started(METADATA_PARTITIONS + 1) as served:
            assert await served.end() == EXIT_USAGE, served.said
        said = " ".join((*served.messages, *served.said))
        assert f"has {METADATA_PARTITIONS + 1} partitions and had {METADATA_PARTITIONS}" in said
        self.figures.counts["refusals of another partition count"] += 1

    async def _progressed(self) -> None:
        self._progress.clear()
        await self._progress.wait()

    async def _until_killed(self, served: Serving) -> None:
        reading = asyncio.create_task(_read_lines(served, None))
        try:
            left = max(1, self._kills - self.figures.kills + 1)
            share = 2 * max(self._wanted - self.figures.operations, 0) // left
            until = self.figures.counts["answered"] + self._random.randint(1, max(share, 500))
            while self.figures.counts["answered"] < until:
                await self._progressed()
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
