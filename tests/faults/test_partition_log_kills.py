"""SIGKILL of a process that appends, at random moments, and torn tails added by hand."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.logs.partition_log_process import SETTINGS
from tests.support.logs.partition_logs import batch, log_files, stored_log, values_of
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = 8

Acknowledged = dict[int, tuple[int, int, int]]
"""Offset to process, writer and number."""


async def append_until_killed(root: Path, acknowledgements: int) -> Acknowledged:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.logs.partition_log_process", str(root), str(WRITERS),
        stdout=asyncio.subprocess.PIPE, cwd=tree.ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    told: Acknowledged = {}
    while line := await process.stdout.readline():
        if len(told) == acknowledgements:
            process.kill()
        if line.endswith(b"\n"):
            offset, writer, number = map(int, line.split())
            assert offset not in told, "an offset was given twice"
            told[offset] = (process.pid, writer, number)
    assert await process.wait() == -9
    return told


def tear(root: Path, rng: random.Random) -> None:
    with log_files(root)[-1].open("ab") as file:
        torn = batch(b"torn" * 50)
        file.write(
            rng.choice([b"", torn[: rng.randrange(1, len(torn))], bytes(4096), rng.randbytes(100)])
        )


def check(stored: dict[int, bytes | None], told: Acknowledged) -> None:
    events = {at: tuple(map(int, (value or b"").split()[:3])) for at, value in stored.items()}
    missing = {offset: event for offset, event in told.items() if events.get(offset) != event}
    assert not missing, f"{len(missing)} acknowledged events are lost or elsewhere: {missing}"
    assert list(stored) == list(range(len(stored)))
    assert len(set(events.values())) == len(events)
    latest: dict[tuple[int, ...], int] = {}
    for pid, writer, number in events.values():
        assert number == latest.get((pid, writer), -1) + 1
        latest[pid, writer] = number


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kills", [pytest.param(10, id="short"), pytest.param(50, id="long", marks=pytest.mark.long)]
)
async def test_process_when_killed_then_loses_no_stored_append(tmp_path: Path, kills: int) -> None:
    """After each kill: 0 acknowledged events lost, 0 twice, 0 out of order; and it goes on."""
    rng = random.Random(kills)
    told: Acknowledged = {}
    cut_bytes = 0
    for _ in range(kills):
        told |= await append_until_killed(tmp_path, rng.randrange(1, 300))
        tear(tmp_path, rng)
        if rng.random() < 0.5:
            continue  # the next process itself recovers
        async with stored_log(tmp_path, SETTINGS) as log:
            cut_bytes += log.recovered.cut_bytes
            check(await values_of(log), told)
    async with stored_log(tmp_path, SETTINGS) as log:
        cut_bytes += log.recovered.cut_bytes
        assert log.statistics().segments > 5
        check(await values_of(log), told)
    assert cut_bytes > 0
