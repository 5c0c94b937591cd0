"""One handle for each partition, one process for each folder."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.base.log_context import bound
from rlmm.errors import AppendUncertain, InvalidArgument, LogRecreated, LogUnavailable, NotFound
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import SyncPolicy
from rlmm.telemetry.logs import set_up
from rlmm.telemetry.settings import LoggingSettings
from tests.support.engines import until
from tests.support.logs.failing_disks import FaultyDisk, GatedDisk
from tests.support.logs.partition_logs import (
    FAST,
    TOPIC,
    TOPIC_ID,
    batch,
    names_below,
    open_log,
    values_of,
)
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

MANY = """
import asyncio, resource, sys
from pathlib import Path
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from tests.support.logs.partition_logs import batch

async def main(root, count, rounds):
    topic_id = bytes(range(1, 17))
    settings = LogSettings(sync=SyncPolicy.NEVER)
    async with await LogRegistry.open(root, settings) as registry:
        numbers = range(count)
        for _ in range(rounds):
            logs = await asyncio.gather(*(registry.create("events", n, topic_id) for n in numbers))
            appended = await asyncio.gather(*(log.append(batch(b"x")) for log in logs))
        assert {one.next_offset for one in appended} == {rounds}
        found = await asyncio.gather(*(log.read(0) for log in logs))
        assert all(one.next_offset == rounds for one in found)
        figures = registry.statistics()
        assert (figures.partitions, figures.opened) == (count, count)
        assert figures.open_files <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
    print("done", flush=True)

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]),) * 2)
asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), 2))
"""


async def test_partition_when_touched_a_thousand_times_is_opened_once(tmp_path: Path) -> None:
    """A thousand first callers open the folder once and get the same handle."""
    registry, log = await open_log(tmp_path)
    await log.append(batch(b"a"))
    await registry.close()
    disk = FaultyDisk()
    async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
        logs = await asyncio.gather(*(registry.partition(TOPIC, 0) for _ in range(1_000)))
        assert len(set(map(id, logs))) == 1
        assert registry.statistics().opened == 1
        assert disk.calls.count("open") == 1


async def test_partition_when_slow_to_open_then_delays_no_other(tmp_path: Path) -> None:
    """While an opening hangs, another partition works, and a cancelled waiter cancels no other."""
    disk = GatedDisk(lambda folder: folder is not None and folder.name == "events-0")
    async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
        disk.gate.clear()
        tasks = [asyncio.create_task(registry.create(TOPIC, 0, TOPIC_ID)) for _ in range(3)]
        await asyncio.to_thread(disk.reached.wait, 30)
        other = await registry.create(TOPIC, 1, TOPIC_ID)
        await other.append(batch(b"a"))
        assert await values_of(other) == {0: b"a"}
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        assert not any(task.done() for task in tasks[1:])
        disk.gate.set()
        first, second = await asyncio.gather(*tasks[1:])
        assert first is second
        assert registry.statistics().opened == 2


async def test_partition_when_absent_then_is_not_found_and_made_when_asked(tmp_path: Path) -> None:
    """Only `create` makes a folder, even with a look-up at the same time, and none outside."""
    async with await LogRegistry.open(tmp_path / "logs", FAST) as registry:
        with pytest.raises(NotFound, match="no partition events-0"):
            await registry.partition(TOPIC, 0)
        with pytest.raises(InvalidArgument):
            await registry.create("../events", 0, TOPIC_ID)
        assert not names_below(tmp_path, "events*")
        found, made = await asyncio.gather(
            registry.partition(TOPIC, 0),
            registry.create(TOPIC, 0, TOPIC_ID),
            return_exceptions=True,
        )
        assert isinstance(found, NotFound)
        assert await registry.partition(TOPIC, 0) is made
        assert [str(name) for name in await registry.topic_partitions()] == ["events-0"]


async def test_partition_when_refused_then_can_be_opened_again(tmp_path: Path) -> None:
    """A full disk fails an opening for now; a topic made anew does not inherit an older log."""
    disk = FaultyDisk()
    for _ in range(2):
        async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
            if not names_below(tmp_path, "*.log"):
                disk.fail("create", errno.ENOSPC)
                with pytest.raises(LogUnavailable, match="events-0 cannot be opened: No space"):
                    await registry.create(TOPIC, 0, TOPIC_ID)
                await (await registry.create(TOPIC, 0, TOPIC_ID)).append(batch(b"a"))
            with pytest.raises(LogRecreated, match="AQIDBAUGBwgJCgsMDQ4PEA"):
                await registry.create(TOPIC, 0, bytes(15) + b"\1")
            assert (await registry.create(TOPIC, 0, TOPIC_ID)).topic_id == TOPIC_ID


async def test_registry_when_closed_then_acknowledges_appends_and_refuses(tmp_path: Path) -> None:
    """Appends before the close get their offsets; a closed registry gives no partition."""
    registry, log = await open_log(tmp_path, replace(FAST, sync=SyncPolicy.EACH_GROUP))
    tasks = [asyncio.create_task(log.append(batch(b"%d" % n))) for n in range(10)]
    await asyncio.sleep(0)
    await registry.close()
    await registry.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    stored = [one.base_offset for one in results if not isinstance(one, BaseException)]
    refused = [one for one in results if isinstance(one, BaseException)]
    assert all(isinstance(one, LogUnavailable) for one in refused), refused
    for call in (registry.partition(TOPIC, 0), log.append(batch(b"a"))):
        with pytest.raises(LogUnavailable, match="closed"):
            await call
    async with await LogRegistry.open(tmp_path, FAST) as registry:
        assert list(await values_of(await registry.partition(TOPIC, 0))) == stored


async def test_registry_when_its_close_is_cancelled_then_writes_no_more(tmp_path: Path) -> None:
    """After a cancelled close no handle writes into the folder."""
    disk = GatedDisk(lambda folder: folder is not None and folder.name == "events-1")
    registry, log = await open_log(tmp_path, replace(FAST, sync=SyncPolicy.EACH_GROUP), disk=disk)
    await log.append(batch(b"a"))
    disk.gate.clear()
    opening = asyncio.create_task(registry.create(TOPIC, 1, TOPIC_ID))
    await asyncio.to_thread(disk.reached.wait, 30)
    closing = asyncio.create_task(registry.close())
    await asyncio.sleep(0)
    closing.cancel()
    disk.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await closing
    for handle in (log, await opening):
        with pytest.raises(LogUnavailable, match="closed"):
            await handle.append(batch(b"b"))
    async with await LogRegistry.open(tmp_path, FAST) as again:
        assert not again.was_clean
        assert await values_of(await again.partition(TOPIC, 0)) == {0: b"a"}


async def test_handle_when_reopened_then_the_old_one_is_noted_no_more(tmp_path: Path) -> None:
    """The check point comes from the partition's present handle only."""
    disk = FaultyDisk()
    registry, log = await open_log(tmp_path, replace(FAST, sync=SyncPolicy.EACH_GROUP), disk=disk)
    async with registry:
        await log.append(batch(b"a"))
        disk.fail("sync")
        with pytest.raises(AppendUncertain):
            await log.append(batch(b"b"))
        assert log in registry._moved
        again = await registry.reopen(TOPIC, 0)
        assert registry._moved == {again}


@pytest.mark.parametrize(
    ("partitions", "files"),
    [
        pytest.param(1_000, 100, id="short"),
        pytest.param(10_000, 1_024, id="long", marks=pytest.mark.long),
    ],
)
async def test_partitions_when_ten_times_the_limit_of_files_then_all_work(
    tmp_path: Path, partitions: int, files: int
) -> None:
    """Descriptors are bounded: every partition is written, read and closed under the limit."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MANY, str(tmp_path), str(partitions), str(files),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=tree.ROOT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert output.decode() == "done\n"


async def test_notes_when_begun_by_a_partition_then_are_the_folders(tmp_path: Path) -> None:
    """Log lines about all partitions have the fields of the folder, not those of the reader."""
    disk = FaultyDisk()
    written = io.StringIO()
    settings = replace(FAST, checkpoint_interval_ms=10)
    with set_up(LoggingSettings(), written), bound(cluster="east"):
        async with await LogRegistry.open(tmp_path, settings, disk=disk) as registry:
            with bound(metadata_partition=3):
                log = await registry.create(TOPIC, 0, TOPIC_ID)
                await log.append(batch(b"a"))
                disk.fail("replace_file", times=1_000)
                await log.append(batch(b"b"))
            await until(lambda: "check points not written" in written.getvalue(), 30)
            disk.heal()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    (line, *_) = (line for line in lines if "check points not written" in line["message"])
    assert line["cluster"] == "east"
    assert "metadata_partition" not in line
