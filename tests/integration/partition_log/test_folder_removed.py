"""A folder, its files or its lock that are removed or inherited while the log is open."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.base.folder_lock import folder_lock
from rlmm.errors import AppendUncertain, FolderInUse, LogDamaged
from rlmm.partition_log.disk import DISK
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from tests.support.logs.partition_logs import FAST, TOPIC, batch, open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REMOVALS: dict[str, Callable[[Path], object]] = {
    "the folder": shutil.rmtree,
    "the partition's folder": lambda root: shutil.rmtree(root / f"{TOPIC}-0"),
    "the segment": lambda root: next((root / f"{TOPIC}-0").glob("*.log")).unlink(),
    "moved": lambda root: (root / f"{TOPIC}-0").rename(root / "moved"),
}


@contextmanager
def inherited(folder: Path) -> Iterator[None]:
    """Hold the open files of *folder* a second time, as a child that was forked does."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target == str(folder) or target.startswith(f"{folder}/"):
            found.append(os.dup(int(link.name)))
    assert found
    try:
        yield
    finally:
        for descriptor in found:
            os.close(descriptor)


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
async def test_append_when_its_files_were_removed_then_is_not_acknowledged(
    tmp_path: Path, remove: Callable[[Path], object]
) -> None:
    """The sync of the next append finds the file gone, and the partition is offline by name."""
    registry, log = await open_log(tmp_path / "log", LogSettings(sync=SyncPolicy.EACH_GROUP))
    try:
        await log.append(batch(b"a"), timeout_s=30)
        remove(tmp_path / "log")
        with pytest.raises(AppendUncertain, match="removed or moved while in use"):
            await log.append(batch(b"b"), timeout_s=30)
        with pytest.raises(LogDamaged, match=r"is offline: .* removed or moved while in use"):
            await log.append(batch(b"c"), timeout_s=30)
        assert registry.statistics().offline == 1
    finally:
        await registry.close()


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
async def test_log_when_its_files_were_removed_while_idle_then_the_next_tick_takes_it_offline(
    tmp_path: Path, remove: Callable[[Path], object]
) -> None:
    """Without any write, the periodic look finds the files gone."""
    registry, log = await open_log(tmp_path / "log", FAST)
    try:
        await log.append(batch(b"a"), timeout_s=30)
        remove(tmp_path / "log")
        await registry.tick()
        assert log.fault is not None
        assert "removed or moved while in use" in log.fault
    finally:
        await registry.close()


async def test_closed_segment_when_it_was_removed_then_a_read_takes_the_partition_offline(
    tmp_path: Path,
) -> None:
    """A read of a segment that retention did not delete names the missing file."""
    settings = LogSettings(segment_bytes=100, open_files_max=1)
    registry, log = await open_log(tmp_path / "log", settings)
    try:
        for _ in range(3):
            await log.append(batch(b"a"), timeout_s=30)
        log.path.joinpath(f"{0:020d}.log").unlink()
        with pytest.raises(LogDamaged, match=r"0\.log was removed or moved while in use"):
            await log.read(0)
    finally:
        await registry.close()


async def test_folder_when_its_lock_file_is_removed_then_has_one_owner(tmp_path: Path) -> None:
    """The lock of the folder itself refuses a second owner, and its end frees the folder."""
    registry, _ = await open_log(tmp_path)
    try:
        (tmp_path / ".lock").unlink()
        with pytest.raises(FolderInUse, match="is in use by"):
            await LogRegistry.open(tmp_path, FAST)
    finally:
        await registry.close()
    async with await LogRegistry.open(tmp_path, FAST):
        pass


async def test_folder_when_a_forked_child_lives_on_then_its_lock_is_free(tmp_path: Path) -> None:
    """The end of the log releases its locks, and does not only close its files."""
    registry, _ = await open_log(tmp_path)
    with inherited(tmp_path):
        await registry.close()
        async with await LogRegistry.open(tmp_path, FAST):
            pass


def test_data_folder_when_a_forked_child_lives_on_then_its_lock_is_free(tmp_path: Path) -> None:
    """The lock of a data folder or of snapshots ends with its block, also for a child."""
    with folder_lock(tmp_path):
        held = inherited(tmp_path)
        held.__enter__()
    with folder_lock(tmp_path):
        held.__exit__(None, None, None)


def test_data_folder_when_its_lock_file_is_removed_then_has_one_owner(tmp_path: Path) -> None:
    """Another owner is refused, although its lock file is a new one."""
    with folder_lock(tmp_path):
        (tmp_path / "rlmm.lock").unlink()
        with pytest.raises(FolderInUse, match="is in use by"), folder_lock(tmp_path):
            pass
    with folder_lock(tmp_path):
        pass


def test_sizes_when_a_file_vanishes_meanwhile_then_has_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A temporary file that is renamed after its name was read does not look like a lost folder."""
    (tmp_path / "kept").write_bytes(b"abc")
    (tmp_path / "gone").write_bytes(b"abc")

    class Entry(NamedTuple):
        name: str

        def is_file(self) -> bool:
            return True

        def stat(self) -> os.stat_result:
            return (tmp_path / self.name).stat()

    @contextmanager
    def scandir(folder: Path) -> Iterator[list[Entry]]:
        (folder / "gone").unlink()
        yield [Entry("gone"), Entry("kept")]

    monkeypatch.setattr(os, "scandir", scandir)
    assert DISK.sizes(tmp_path) == {"kept": 3}
