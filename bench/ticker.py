"""A ticker on an event loop: it ticks, asks questions, and notes delays."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.measure import cpu_ns, percentile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TICK_S = 0.0005
ASKED_PER_TICK = 5


@dataclass
class Noticed:
    turns_us: list[int] = field(default_factory=list)
    cpu_us: list[int] = field(default_factory=list)
    """What this process computed between two turns, whatever others did to the machine."""
    reads_us: list[int] = field(default_factory=list)
    """From the tick that was due to the answer: what somebody who asks waits."""

    def figures(self, when: str, asked_ms: float | None = None) -> list[Figure]:
        found = []
        for percent, label in ((50, "p50"), (99, "p99"), (100, "max")):
            turn = percentile(self.turns_us, percent) / 1_000
            found.append(Figure(f"turn of the loop {when}, {label}", turn, "ms"))
        for percent, label in ((50, "p50"), (99, "p99"), (100, "max")):
            cpu = percentile(self.cpu_us, percent) / 1_000
            found.append(Figure(f"own CPU between two turns {when}, {label}", cpu, "ms"))
        slowest = max(self.reads_us) / 1_000
        found.append(Figure(f"slowest read {when}", slowest, "ms", at_most=asked_ms))
        return found


@asynccontextmanager
async def ticking(ask: Callable[[], object]) -> AsyncIterator[Noticed]:
    noticed = Noticed()
    ticker = asyncio.create_task(_tick(ask, noticed))
    try:
        yield noticed
    finally:
        ticker.cancel()
        await asyncio.gather(ticker, return_exceptions=True)


async def _tick(ask: Callable[[], object], noticed: Noticed) -> None:
    last, last_cpu = time.perf_counter_ns(), cpu_ns()
    while True:
        await asyncio.sleep(TICK_S)
        now = time.perf_counter_ns()
        noticed.turns_us.append((now - last) // 1_000)
        noticed.cpu_us.append((cpu_ns() - last_cpu) // 1_000)
        due = last + int(TICK_S * 1e9)
        for _ in range(ASKED_PER_TICK):
            ask()
            noticed.reads_us.append((time.perf_counter_ns() - due) // 1_000)
            due = time.perf_counter_ns()
        last, last_cpu = time.perf_counter_ns(), cpu_ns()
