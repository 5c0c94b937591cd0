"""One handle for each partition, one process for each folder."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, InvalidArgument, LogRecreated, LogUnavailable, NotFound
from rlmm.partition_log.disk import Disk
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import SyncPolicy
from tests.support import tree
from tests.support.disks import FaultyDisk, GatedDisk
from tests.support.partition_logs import (
    FAST,
    TOPIC,
    TOPIC_ID,
    batch,
    copied,
    names_below,
    open_log,
    partition_folder,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

HOLDER = """
import fcntl, os, sys
lock = os.open(sys.argv[1] + "/.lock", os.O_RDWR | os.O_CREAT)
if sys.argv[2] == "ours":
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, str(os.getpid()).encode())
else:
    fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""

MANY = """
import asyncio, resource, sys
from pathlib import Path
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from tests.support.partition_logs import batch

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


@asynccontextmanager
async def locked_by_another(root: Path, kind: str) -> AsyncIterator[int]:
    """Another process that holds the folder's lock, as we or as a broker would; gives its pid."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(root), kind,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"locked\n"
    try:
        yield process.pid
    finally:
        process.stdin.close()
        await process.wait()


async def test_partition_when_touched_a_thousand_times_at_once_then_is_opened_once(
    tmp_path: Path,
) -> None:
    """However many come first together, the folder is opened once and all get one handle."""
    registry, log = await open_log(tmp_path)
    await log.append(batch(b"a"))
    await registry.close()
    disk = FaultyDisk()
    async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
        logs = await asyncio.gather(*(registry.partition(TOPIC, 0) for _ in range(1_000)))
        assert len(set(map(id, logs))) == 1
        assert registry.statistics().opened == 1
        assert disk.calls.count("open") == 1


async def test_partition_when_one_who_waits_for_it_is_cancelled_then_the_others_get_it(
    tmp_path: Path,
) -> None:
    """An opening belongs to nobody who waits for it."""
    disk = GatedDisk(lambda folder: folder is not None and folder.name == "events-0")
    registry = await LogRegistry.open(tmp_path, FAST, disk=disk)
    async with registry:
        disk.gate.clear()
        tasks = [asyncio.create_task(registry.create(TOPIC, 0, TOPIC_ID)) for _ in range(3)]
        await asyncio.to_thread(disk.reached.wait, 30)
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        disk.gate.set()
        first, second = await asyncio.gather(*tasks[1:])
        assert first is second
        assert registry.statistics().opened == 1


async def test_partition_when_slow_to_open_then_delays_no_other(tmp_path: Path) -> None:
    """While one opening hangs, another partition is opened, written and read."""
    disk = GatedDisk(lambda folder: folder is not None and folder.name == "events-0")
    async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
        disk.gate.clear()
        slow = asyncio.create_task(registry.create(TOPIC, 0, TOPIC_ID))
        await asyncio.to_thread(disk.reached.wait, 30)
        other = await registry.create(TOPIC, 1, TOPIC_ID)
        await other.append(batch(b"a"))
        assert await values_of(other) == {0: b"a"}
        assert not slow.done()
        disk.gate.set()
        await slow


async def test_partition_when_absent_then_is_not_found_and_made_when_asked(tmp_path: Path) -> None:
    """Only `create` makes a folder, also when somebody looked for it at the same moment."""
    async with await LogRegistry.open(tmp_path, FAST) as registry:
        with pytest.raises(NotFound, match="no partition events-0"):
            await registry.partition(TOPIC, 0)
        assert not partition_folder(tmp_path).exists()
        found, made = await asyncio.gather(
            registry.partition(TOPIC, 0),
            registry.create(TOPIC, 0, TOPIC_ID),
            return_exceptions=True,
        )
        assert isinstance(found, NotFound)
        assert await registry.partition(TOPIC, 0) is made
        assert [str(name) for name in await registry.topic_partitions()] == ["events-0"]


async def test_partition_when_the_disk_refuses_then_the_next_touch_tries_again(
    tmp_path: Path,
) -> None:
    """An opening that failed for the moment is not remembered."""
    disk = FaultyDisk()
    async with await LogRegistry.open(tmp_path, FAST, disk=disk) as registry:
        disk.fail("create", errno.ENOSPC)
        with pytest.raises(LogUnavailable, match="events-0 cannot be opened: No space left"):
            await registry.create(TOPIC, 0, TOPIC_ID)
        await (await registry.create(TOPIC, 0, TOPIC_ID)).append(batch(b"a"))


async def test_partition_when_of_another_topic_id_then_is_refused(tmp_path: Path) -> None:
    """A topic that was deleted and made anew does not inherit the old one's log."""
    registry, _ = await open_log(tmp_path)
    with pytest.raises(LogRecreated, match="AQIDBAUGBwgJCgsMDQ4PEA"):
        await registry.create(TOPIC, 0, bytes(15) + b"\1")
    await registry.close()
    async with await LogRegistry.open(tmp_path, FAST) as registry:
        with pytest.raises(LogRecreated, match="belongs to topic id AQIDBAUGBwgJCgsMDQ4PEA"):
            await registry.create(TOPIC, 0, bytes(15) + b"\1")
        assert (await registry.create(TOPIC, 0, TOPIC_ID)).topic_id == TOPIC_ID


async def test_partition_when_named_like_a_path_then_is_refused(tmp_path: Path) -> None:
    """No name leads out of the folder."""
    async with await LogRegistry.open(tmp_path / "logs", FAST) as registry:
        with pytest.raises(InvalidArgument):
            await registry.create("../events", 0, TOPIC_ID)
    assert not names_below(tmp_path, "events*")


async def test_registry_when_closed_then_refuses_and_closing_again_does_nothing(
    tmp_path: Path,
) -> None:
    """After the end there is no partition, and no second end."""
    registry, log = await open_log(tmp_path)
    await registry.close()
    await registry.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await registry.partition(TOPIC, 0)
    with pytest.raises(LogUnavailable, match="closed"):
        await log.append(batch(b"a"))


async def test_registry_when_closed_with_appends_in_flight_then_they_are_acknowledged(
    tmp_path: Path,
) -> None:
    """What was written before the end is synced, and its writer told the offset."""
    registry, log = await open_log(tmp_path, replace(FAST, sync=SyncPolicy.EACH_GROUP))
    tasks = [asyncio.create_task(log.append(batch(b"%d" % n))) for n in range(10)]
    await asyncio.sleep(0)
    await registry.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    stored = [one.base_offset for one in results if not isinstance(one, BaseException)]
    refused = [one for one in results if isinstance(one, BaseException)]
    assert all(isinstance(one, LogUnavailable) for one in refused), refused
    async with await LogRegistry.open(tmp_path, FAST) as registry:
        assert list(await values_of(await registry.partition(TOPIC, 0))) == stored


# the folder


@pytest.mark.parametrize("kind", ["ours", "a-brokers"])
async def test_folder_when_in_use_then_a_second_process_is_refused_with_the_owners_pid(
    tmp_path: Path, kind: str
) -> None:
    """Two processes cannot have one folder, whether the first is ours or a broker."""
    async with locked_by_another(tmp_path, kind) as pid:
        with pytest.raises(ConfigError, match=f"in use by process {pid};") as caught:
            await LogRegistry.open(tmp_path, FAST)
        assert "\n" not in str(caught.value)
    async with await LogRegistry.open(tmp_path, FAST):
        pass


async def test_folder_when_open_in_this_process_then_is_refused_to_it_too(tmp_path: Path) -> None:
    """One process has a folder once, and a refused attempt does not loosen the lock."""
    async with await LogRegistry.open(tmp_path, FAST):
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"in use by process {os.getpid()};"):
                await LogRegistry.open(tmp_path, FAST)
        async with await LogRegistry.open(tmp_path, FAST, read_only=True):
            pass


async def test_folder_when_its_lock_file_is_stale_then_it_opens(tmp_path: Path) -> None:
    """What a dead process left behind is no obstacle."""
    registry, log = await open_log(tmp_path)
    await log.append(batch(b"a"))
    crashed = copied(tmp_path, tmp_path / "crashed")
    (crashed / ".lock").write_text("4194303\n")
    await registry.close()
    async with await LogRegistry.open(crashed, FAST) as registry:
        assert await values_of(await registry.partition(TOPIC, 0)) == {0: b"a"}


@pytest.mark.parametrize(
    ("make", "what"),
    [
        pytest.param(lambda p: (p / "photo.jpg").touch(), "holds 1 other entries", id="files"),
        pytest.param(lambda p: (p / "photos-1").mkdir(), "e.g. photos-1", id="alike-name"),
        pytest.param(lambda p: (p / f"{0:020d}.log").touch(), "folder above", id="a-partition"),
        pytest.param(lambda p: (p.rmdir(), p.touch()), "is no folder", id="a-file"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_folder_when_of_something_else_then_is_refused_and_left_alone(
    tmp_path: Path, make: object, what: str, read_only: bool
) -> None:
    """A folder that holds something else gets one clear line, and nothing written into it."""
    root = tmp_path / "root"
    root.mkdir()
    make(root)  # type: ignore[operator]  # a function of the table
    before = names_below(tmp_path)
    with pytest.raises(ConfigError, match=what) as caught:
        await LogRegistry.open(root, FAST, read_only=read_only)
    assert str(root) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert names_below(tmp_path) == before


async def test_partition_folder_when_of_something_else_then_is_refused(tmp_path: Path) -> None:
    """A folder with a partition's name and other content is not written into."""
    registry, _ = await open_log(tmp_path)
    async with registry:
        (tmp_path / "photos-1").mkdir()
        (tmp_path / "photos-1" / "photo.jpg").touch()
        with pytest.raises(ConfigError, match=r"no partition's folder: it holds 1 files"):
            await registry.create("photos", 1, TOPIC_ID)
        (tmp_path / "photos-2").touch()
        with pytest.raises(ConfigError, match="is no folder"):
            await registry.create("photos", 2, TOPIC_ID)


class ReadOnlyDisk(Disk):
    """A disk that was mounted for reading only."""

    def make_folder(self, path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


async def test_folder_when_on_a_read_only_disk_then_is_refused_with_the_way_out(
    tmp_path: Path,
) -> None:
    """One line says what is wrong and what to do."""
    with pytest.raises(ConfigError, match=r"Read-only file system; choose .* read-only") as caught:
        await LogRegistry.open(tmp_path / "logs", FAST, disk=ReadOnlyDisk())
    assert "\n" not in str(caught.value)


async def test_folder_when_absent_then_reading_it_is_refused(tmp_path: Path) -> None:
    """Opening for reading makes nothing."""
    with pytest.raises(ConfigError, match="does not exist"):
        await LogRegistry.open(tmp_path / "logs", FAST, read_only=True)
    assert not (tmp_path / "logs").exists()


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
