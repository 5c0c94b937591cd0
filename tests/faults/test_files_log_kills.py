"""The `files` log whose process is killed at any moment, again and again in the same folder."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import META_PROPERTIES, TOPIC
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
from tests.conformance.log.under_test import ANSWER_S, read_until
from tests.support.logs.files_log_process import (
    OPENING,
    PARTITIONS,
    SETTINGS,
    Acknowledged,
    digest,
    origin_of,
    parse,
    value_of,
)
from tests.support.logs.partition_logs import FIRST_MS, copied
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.log.protocol import LogIdentity

Stored = dict[int, list[tuple[int, bytes]]]

ACKNOWLEDGED_MAX = 300


def live_and_die(folder: Path, life: int, lines_read: int) -> list[Acknowledged]:
    """Let a process append until it printed that many lines (0: while it opens), and kill it."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.logs.files_log_process", str(folder), str(life)],
        cwd=tree.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            lines = [process.stdout.readline() for _ in range(1 + lines_read)]
        finally:
            process.kill()
        # Not `communicate`: it would lose what was read ahead of the lines.
        rest, complaints = process.stdout.readlines(), process.stderr.read()
    assert (process.returncode, lines[0]) == (-signal.SIGKILL, f"{OPENING}\n"), complaints
    assert "Traceback" not in complaints
    lines = [*lines[1:], *rest]
    return [parse(line) for line in lines if line.endswith("\n")]


async def read_folder(folder: Path) -> tuple[LogIdentity, Stored]:
    log = await FilesLog.open(folder, partition_count=PARTITIONS, settings=SETTINGS)
    stored: Stored = {}
    try:
        found = await log.bounds(range(PARTITIONS), timeout_s=ANSWER_S)
        for partition, bounds in found.items():
            assert isinstance(bounds, LogBounds), bounds
            assert bounds.log_start_offset == 0
            stored[partition] = await read_until(log, partition, 0, bounds.high_watermark)
            assert len(stored[partition]) == bounds.high_watermark
        return await log.identity(timeout_s=ANSWER_S), stored
    finally:
        await log.close()


def tear_tail(folder: Path, rng: random.Random) -> None:
    partition = rng.randrange(PARTITIONS)
    files = sorted((folder / f"{TOPIC}-{partition}").glob("*.log"))
    if not files:
        return
    next_offset = int(files[-1].stem)
    for batch in walk(files[-1].read_bytes()):
        if isinstance(batch, Batch):
            next_offset = batch.next_offset
    values = records_of([b"torn" * rng.randrange(1, 200)], next_offset, FIRST_MS)
    whole = build_batch(values, 0)
    tail = rng.choice(
        (
            rng.randbytes(rng.randrange(1, 5_000)),
            whole[: rng.randrange(1, len(whole))],
            whole[: len(whole) // 2],
            whole[:-1] + bytes([whole[-1] ^ 1]),
            bytes(rng.randrange(1, 5_000)),
        )
    )
    with files[-1].open("ab") as file:
        file.write(tail)


def check_stored(stored: Stored, acknowledged: dict[tuple[int, int], str], before: Stored) -> None:
    """Each partition is dense and in order, with its earlier and all acknowledged values, once."""
    for partition, records in stored.items():
        assert [offset for offset, _ in records] == list(range(len(records)))
        assert records[: len(before.get(partition, []))] == before.get(partition, [])
        origins = [origin_of(value) for _, value in records]
        assert [value for _, value in records] == [value_of(*origin) for origin in origins]
        for lane in {origin[:2] for origin in origins}:
            numbers = [number for *of, number in origins if tuple(of) == lane]
            assert numbers == sorted(numbers)
    everything = Counter(origin_of(value) for records in stored.values() for _, value in records)
    assert set(everything.values()) <= {1}
    for (partition, offset), said in acknowledged.items():
        assert offset < len(stored[partition])
        assert digest(stored[partition][offset][1]) == said


def count_unacknowledged(
    stored: Stored, life: int, acknowledged: list[Acknowledged]
) -> Counter[int]:
    known = {(each.writer, each.number) for each in acknowledged}
    return Counter(
        writer
        for records in stored.values()
        for of, writer, number in (origin_of(value) for _, value in records)
        if of == life and (writer, number) not in known
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seed", "kills"),
    [pytest.param(1, 10, id="10"), pytest.param(2, 50, id="50", marks=pytest.mark.long)],
)
def test_files_log_when_killed_then_keeps_all_events(tmp_path: Path, seed: int, kills: int) -> None:
    """After any kill the folder opens with every acknowledged event once, and goes on."""
    rng = random.Random(seed)
    folder = tmp_path / "log"
    identities: set[LogIdentity] = set()
    acknowledged: dict[tuple[int, int], str] = {}
    stored: Stored = {}
    for life in range(kills):
        is_early = rng.random() < 0.2
        said = live_and_die(folder, life, 0 if is_early else rng.randint(1, ACKNOWLEDGED_MAX))
        for each in said:
            assert (each.partition, each.offset) not in acknowledged
            acknowledged[each.partition, each.offset] = each.digest
        if rng.random() < 0.5:
            tear_tail(folder, rng)
        # A look at a copy leaves the crashed folder to the next process.
        is_copied = rng.random() < 0.5
        is_begun = (folder / META_PROPERTIES).exists()
        looked_at = copied(folder, tmp_path / "copy") if is_copied and is_begun else folder
        identity, found = asyncio.run(read_folder(looked_at))
        identities.add(identity)
        check_stored(found, acknowledged, stored)
        assert set(count_unacknowledged(found, life, said).values()) <= {1}
        stored = found
    assert len(identities) == 1
    assert len(acknowledged) > kills
