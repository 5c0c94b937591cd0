"""The folder above the partitions: its owner, its lock and its contents."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.partition_log.disk import Disk
from rlmm.partition_log.registry import LogRegistry
from tests.support.logs.partition_logs import (
    FAST,
    TOPIC,
    TOPIC_ID,
    batch,
    copied,
    names_below,
    open_log,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
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


class GatedMaking(Disk):
    """A disk that makes a folder when the test lets it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.gate = threading.Event()

    def make_folder(self, path: Path) -> None:
        self.reached.set()
        assert self.gate.wait(30)
        super().make_folder(path)


class NotedFolders(Disk):
    def __init__(self) -> None:
        self.synced: list[Path] = []

    def sync_folder(self, path: Path) -> None:
        self.synced.append(path)
        super().sync_folder(path)


@asynccontextmanager
async def locked_by_another(root: Path, kind: str) -> AsyncIterator[int]:
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


async def test_folder_when_opening_it_is_cancelled_then_is_free(tmp_path: Path) -> None:
    """A cancelled opening frees the lock of the folder."""
    disk = GatedMaking()
    opening = asyncio.create_task(LogRegistry.open(tmp_path / "logs", FAST, disk=disk))
    await asyncio.to_thread(disk.reached.wait, 30)
    (thread,) = (one for one in threading.enumerate() if one.name.startswith("log-root"))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    disk.gate.set()
    await asyncio.to_thread(thread.join, 30)
    async with await LogRegistry.open(tmp_path / "logs", FAST):
        pass


async def test_folder_when_made_then_its_name_is_synced_before_use(tmp_path: Path) -> None:
    """Synced files in a folder whose own name is lost with the power would be lost, too."""
    disk = NotedFolders()
    async with await LogRegistry.open(tmp_path / "a" / "b", FAST, disk=disk):
        pass
    assert disk.synced[:2] == [tmp_path, tmp_path / "a"]
    disk.synced.clear()
    async with await LogRegistry.open(tmp_path / "a" / "b", FAST, disk=disk):
        pass
    assert tmp_path / "a" not in disk.synced


@pytest.mark.parametrize("kind", ["ours", "a-brokers"])
async def test_folder_when_in_use_then_is_refused_with_the_pid(tmp_path: Path, kind: str) -> None:
    """A second process is refused with the owner's pid, be it rlmm or a broker."""
    async with locked_by_another(tmp_path, kind) as pid:
        with pytest.raises(ConfigError, match=f"in use by process {pid};") as caught:
            await LogRegistry.open(tmp_path, FAST)
        assert "\n" not in str(caught.value)
    async with await LogRegistry.open(tmp_path, FAST):
        pass


async def test_folder_when_its_lock_file_is_stale_then_it_opens(tmp_path: Path) -> None:
    """A dead process's lock file is harmless; a second opener in this process is refused."""
    registry, log = await open_log(tmp_path)
    await log.append(batch(b"a"))
    for _ in range(2):
        with pytest.raises(ConfigError, match=f"in use by process {os.getpid()};"):
            await LogRegistry.open(tmp_path, FAST)
    async with await LogRegistry.open(tmp_path, FAST, read_only=True):
        pass
    crashed = copied(tmp_path, tmp_path / "crashed")
    (crashed / ".lock").write_text("4194303\n")
    await registry.close()
    async with await LogRegistry.open(crashed, FAST) as registry:
        assert await values_of(await registry.partition(TOPIC, 0)) == {0: b"a"}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        pytest.param(lambda p: (p / "photo.jpg").touch(), "holds 1 other entries", id="files"),
        pytest.param(lambda p: (p / "photos-1").mkdir(), "e.g. photos-1", id="alike-name"),
        pytest.param(lambda p: (p / f"{0:020d}.log").touch(), "folder above", id="a-partition"),
        pytest.param(lambda p: (p.rmdir(), p.touch()), "is no folder", id="a-file"),
    ],
)
async def test_folder_when_of_something_else_then_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], what: str, read_only: bool
) -> None:
    """A folder of something else gets one clear line; reading makes no folder that is missing."""
    root = tmp_path / "root"
    with pytest.raises(ConfigError, match="does not exist"):
        await LogRegistry.open(root, FAST, read_only=True)
    root.mkdir()
    make(root)
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
