"""
`python -m bench.partition_log`: the partition log beside plain loops on the same disk: appends with
group commit, reading, and recovery with CRC. Both sides of a ratio take turns.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.figures import Figure, Run
from bench.measure import machine_facts
from rlmm.partition_log.names import CLEAN_END, RECOVERY_POINTS
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.partition_log.partition import PartitionLog

WRITERS = (1, 16, 256)
EVENT_BYTES = 250
"""About what an event of a segment takes."""
ROUNDS = 5
READ_BYTES = 1024 * 1024
LAYOUTS = {"16 KiB batches": (16, 1_000), "batches of one": (1, EVENT_BYTES)}
"""Records of a batch, and bytes of a record."""
READ_ASKED = 0.5
RECOVERY_ASKED = 1_000.0
TOPIC, TOPIC_ID = "bench", bytes(range(1, 17))
SETTINGS = LogSettings(sync=SyncPolicy.NEVER)


@dataclass(frozen=True, slots=True)
class Appends:
    per_s: float
    latencies_us: Sequence[float]

    def at(self, share: float) -> float:
        return sorted(self.latencies_us)[int(share * (len(self.latencies_us) - 1))]


def some_batch(records: int, size: int) -> bytes:
    return build_batch(records_of([os.urandom(size) for _ in range(records)], 0, 1), 0)


def plain_appends(folder: Path, content: bytes, count: int) -> Appends:
    descriptor = os.open(folder / "plain", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    latencies_us: list[float] = []
    begin = last = time.perf_counter()
    for number in range(count):
        os.pwrite(descriptor, content, number * len(content))
        os.fdatasync(descriptor)
        now = time.perf_counter()
        latencies_us.append((now - last) * 1e6)
        last = now
    os.close(descriptor)
    return Appends(count / (last - begin), latencies_us)


async def log_appends(
    folder: Path, content: bytes, count: int, writers: int, policy: SyncPolicy
) -> Appends:
    root = folder / "log"
    shutil.rmtree(root, ignore_errors=True)
    latencies_us: list[float] = []

    async def write(log: PartitionLog, appends: int) -> None:
        for _ in range(appends):
            begin = time.perf_counter()
            await log.append(content)
            latencies_us.append((time.perf_counter() - begin) * 1e6)

    async with await LogRegistry.open(root, replace(SETTINGS, sync=policy)) as registry:
        log = await registry.create(TOPIC, 0, TOPIC_ID)
        await log.append(content)
        begin = time.perf_counter()
        await asyncio.gather(*(write(log, count // writers) for _ in range(writers)))
        seconds = time.perf_counter() - begin
    return Appends(len(latencies_us) / seconds, latencies_us)


def add_appends(run: Run, name: str, rounds: Sequence[Appends]) -> float:
    rate = statistics.median(one.per_s for one in rounds)
    run.add(Figure(name, rate, "appends/s"))
    for share in (0.5, 0.99):
        latency = statistics.median(one.at(share) for one in rounds)
        run.add(Figure(f"{name}, latency p{share * 100:.0f}", latency, "us"))
    return rate


async def compare_appends(run: Run, folder: Path, count: int) -> None:
    content = some_batch(1, EVENT_BYTES)
    run.section(f"appends of one event in a batch of {len(content)} bytes, synced")
    for writers in WRITERS:
        plain, ours = [], []
        for _ in range(ROUNDS):
            plain.append(plain_appends(folder, content, count))
            appends = count * min(writers, 16)
            ours.append(await log_appends(folder, content, appends, writers, SyncPolicy.EACH_GROUP))
        base = add_appends(run, f"write + fdatasync in a loop, beside {writers}", plain)
        rate = add_appends(run, f"group commit, {writers} writers", ours)
        run.add(Figure(f"group commit / loop, {writers} writers", rate / base, "times"))
    for policy in (SyncPolicy.INTERVAL, SyncPolicy.NEVER):
        ours = [await log_appends(folder, content, 16 * count, 1, policy) for _ in range(ROUNDS)]
        add_appends(run, f"policy {policy}, 1 writer", ours)


async def filled(root: Path, content: bytes, size: int, settings: LogSettings) -> None:
    group = content * max(1, READ_BYTES // len(content))
    async with await LogRegistry.open(root, settings) as registry:
        log = await registry.create(TOPIC, 0, TOPIC_ID)
        for _ in range(max(1, size // len(group))):
            await log.append(group, verify_crc=False)


def log_files(root: Path) -> list[Path]:
    return sorted((root / f"{TOPIC}-0").glob("*.log"))


def plain_read(root: Path) -> int:
    total = 0
    for path in log_files(root):
        descriptor = os.open(path, os.O_RDONLY)
        position = 0
        while data := os.pread(descriptor, READ_BYTES, position):
            position += len(data)
        os.close(descriptor)
        total += position
    return total


async def log_read(log: PartitionLog) -> int:
    total, position = 0, 0
    while (found := await log.read(position, bytes_max=READ_BYTES)) is not None:
        total += len(found.data)
        position = found.next_offset or position
    return total


async def compare_reads(run: Run, folder: Path, size: int) -> None:
    run.section(f"reading {size >> 20} MiB in pieces of {READ_BYTES >> 20} MiB, without CRC")
    for name, layout in LAYOUTS.items():
        root = folder / "read"
        shutil.rmtree(root, ignore_errors=True)
        settings = replace(SETTINGS, segment_bytes=max(size // 4, 4 * READ_BYTES))
        await filled(root, some_batch(*layout), size, settings)
        plain_s, ours_s = [], []
        async with await LogRegistry.open(root, settings) as registry:
            log = await registry.partition(TOPIC, 0)
            expected = plain_read(root)
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                plain_read(root)
                middle = time.perf_counter()
                total = await log_read(log)
                ours_s.append(time.perf_counter() - middle)
                plain_s.append(middle - begin)
                assert total == expected, f"{total} bytes read, {expected} stored"
        plain, ours = statistics.median(plain_s), statistics.median(ours_s)
        run.add(Figure(f"files, {name}", expected / plain / 1e6, "MB/s"))
        run.add(Figure(f"record sets, {name}", expected / ours / 1e6, "MB/s"))
        run.add(Figure(f"record sets / files, {name}", plain / ours, "times", READ_ASKED))


async def compare_recovery(run: Run, folder: Path, size: int) -> None:
    run.section(f"recovery of {size >> 20} MiB with every CRC, opening included")
    for name, layout in LAYOUTS.items():
        root = folder / "recovery"
        shutil.rmtree(root, ignore_errors=True)
        await filled(root, some_batch(*layout), size, SETTINGS)
        stored = log_files(root)[0].stat().st_size
        taken_s = []
        for _ in range(ROUNDS):
            (root / CLEAN_END).unlink()
            (root / RECOVERY_POINTS).write_bytes(b"0\n0\n")
            async with await LogRegistry.open(root, SETTINGS) as registry:
                begin = time.perf_counter()
                log = await registry.partition(TOPIC, 0)
                taken_s.append(time.perf_counter() - begin)
                assert log.recovered.scanned_bytes == stored, log.recovered
        speed = stored / statistics.median(taken_s) / 1e6
        asked = RECOVERY_ASKED if name == "16 KiB batches" else None
        run.add(Figure(f"recovery, {name}", speed, "MB/s", asked))


@click.command()
@click.option("--appends", default=1_000, show_default=True, help="Appends of a plain round.")
@click.option("--mebibytes", default=256, show_default=True, help="What is read and recovered.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
def main(appends: int, mebibytes: int, folder: Path | None) -> None:
    """Measure the partition log beside plain loops, and judge what is asked of it."""
    run = Run(in_this_process=True)
    facts = machine_facts()
    click.echo(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))
    with tempfile.TemporaryDirectory(prefix="bench-partition-log-", dir=folder) as place:
        asyncio.run(compare_appends(run, Path(place), appends))
        asyncio.run(compare_reads(run, Path(place), mebibytes << 20))
        asyncio.run(compare_recovery(run, Path(place), mebibytes << 20))
    run.section("of these something is asked:")
    for figure in run.asked:
        click.echo(f"  {figure}")


if __name__ == "__main__":
    main()
