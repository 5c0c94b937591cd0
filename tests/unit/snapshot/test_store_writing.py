"""The next snapshot: the ones it replaces, and the effects of a full or failing disk."""

from __future__ import annotations

import asyncio
import errno
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import SnapshotError, SnapshotRefused
from rlmm.log.shard_images import ShardImages
from rlmm.metadata.python_shard import PythonShard
from rlmm.snapshot.atomic import SnapshotDisk, make_durable_folder
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.store import SnapshotStore
from tests.support.builders import segment_id, started, tp
from tests.support.engine.snapshots import (
    FREE,
    HISTORY,
    IDENTITY,
    PARTITION,
    CrashingDisk,
    FaultySnapshotDisk,
    damage,
    files_below,
    flip,
    frozen_of,
    saved_at,
    segments,
    shard_of,
    store_in,
)

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.snapshot.store import RestoredSnapshot

END = 1_000_000
ROOMY = SnapshotSettings(free_bytes_min=1_000_000)


async def test_write_when_one_is_damaged_then_the_last_good_one_stays(tmp_path: Path) -> None:
    """The damaged one goes; the older one that was restored from does not count it."""
    _, newest = await saved_at(tmp_path, 5, 6)
    damage(newest, flip)
    store = store_in(tmp_path)
    await store.restore(PARTITION, 0, END)
    await store.write(frozen_of(shard_of(segments(7))))
    assert files_below(tmp_path) == [
        f"{PARTITION}/{10:020d}.snapshot",
        f"{PARTITION}/{14:020d}.snapshot",
    ]


async def test_write_when_a_damaged_one_is_there_then_replaces_it(tmp_path: Path) -> None:
    """A new snapshot replaces a damaged one at the same position."""
    _, newest = await saved_at(tmp_path, 5, 6)
    damage(newest, flip)
    store = store_in(tmp_path)
    await store.restore(PARTITION, 0, END)
    await store.write(frozen_of(shard_of(segments(6))))
    restored = await store_in(tmp_path).restore(PARTITION, 0, END)
    assert restored is not None
    assert restored.shard.position == 12


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_folder"])
@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.EIO, SnapshotError), (errno.ENOSPC, SnapshotRefused), (errno.EDQUOT, SnapshotRefused)],
    ids=["EIO", "ENOSPC", "EDQUOT"],
)
async def test_f17_write_when_the_disk_fails_then_what_was_there_stays(
    tmp_path: Path, call: str, code: int, kind: type[SnapshotError]
) -> None:
    """The failure is named with place and position, and nothing unfinished is left."""
    await saved_at(tmp_path, 5)
    disk = FaultySnapshotDisk()
    store = store_in(tmp_path, disk=disk)
    await store.restore(PARTITION, 0, END)
    disk.failing[call] = code
    with pytest.raises(SnapshotError, match=f"metadata partition {PARTITION} at position 12") as at:
        await store.write(frozen_of(shard_of(segments(6))))
    assert type(at.value) is kind
    saved = store.saved(PARTITION)
    assert saved is not None
    assert saved.position == 10
    names = [name for name in files_below(tmp_path) if not name.endswith(f"{12:020d}.snapshot")]
    assert names == [f"{PARTITION}/{10:020d}.snapshot"]
    disk.failing.clear()
    await store.write(frozen_of(shard_of(segments(6))))


async def test_f17_write_when_older_ones_stay_then_has_succeeded(tmp_path: Path) -> None:
    """A write succeeds even if older snapshots cannot be removed."""
    await saved_at(tmp_path, 1, 2)
    disk = FaultySnapshotDisk()
    disk.failing["remove"] = errno.EIO
    await store_in(tmp_path, disk=disk).write(frozen_of(shard_of(segments(3))))
    assert len(files_below(tmp_path)) == 3


async def test_f17_write_when_the_disk_is_nearly_full_then_is_refused(tmp_path: Path) -> None:
    """Below the low-water mark nothing is written, and existing snapshots stay."""
    await saved_at(tmp_path, 5)
    disk = FaultySnapshotDisk()
    disk.free = 999_999
    store = store_in(tmp_path, disk=disk, settings=ROOMY)
    with pytest.raises(SnapshotRefused, match="999999 bytes are free"):
        await store.write(frozen_of(shard_of(segments(6))))
    assert files_below(tmp_path) == [f"{PARTITION}/{10:020d}.snapshot"]


async def test_f17_write_when_it_would_not_fit_then_is_refused(tmp_path: Path) -> None:
    """A snapshot is expected to be as large as the one before it."""
    disk = FaultySnapshotDisk()
    store = store_in(tmp_path, disk=disk, settings=ROOMY)
    disk.free = 2_000_000
    saved = await store.write(frozen_of(shard_of(segments(50))))
    disk.free = 1_000_000 + saved.size_bytes - 1
    with pytest.raises(SnapshotRefused, match=f"about {saved.size_bytes} would be written"):
        await store.write(frozen_of(shard_of(segments(51))))
    disk.free = 1_000_000 + saved.size_bytes
    await store.write(frozen_of(shard_of(segments(51))))


async def test_f17_write_when_the_disk_fills_meanwhile_then_is_given_up(tmp_path: Path) -> None:
    """A first snapshot, whose size is unknown, also stops at the low-water mark."""
    disk = FaultySnapshotDisk()
    disk.free = 2_000_000
    store = store_in(tmp_path, disk=disk, settings=ROOMY)

    def part() -> bytes:
        disk.free = 1_000_000
        return shard.partition_image(tp()) or b""

    events: list[Event] = [started(segment_id(1), custom_metadata=bytes(9_000_000))]
    shard = shard_of(events)
    with pytest.raises(SnapshotRefused, match="1000000 bytes are free"):
        await store.write(ShardImages(PARTITION, 1, HISTORY, [part]))
    assert files_below(tmp_path) == []


async def test_f14_snapshot_is_written_and_read_in_other_threads(tmp_path: Path) -> None:
    """Images are made, files written, synced and read, and states built in other threads."""
    ours = threading.get_ident()
    threads: dict[str, int] = {}

    class Noting(CrashingDisk):
        def _meet(self, call: str) -> None:
            threads[call] = threading.get_ident()
            super()._meet(call)

        def read(self, descriptor: int, size: int, position: int) -> bytes:
            threads["read"] = threading.get_ident()
            return super().read(descriptor, size, position)

    class Noted(PythonShard):
        def import_partition(self, image: bytes) -> TopicIdPartition:
            threads["import"] = threading.get_ident()
            return super().import_partition(image)

    def part() -> bytes:
        threads["image"] = threading.get_ident()
        return shard.partition_image(tp()) or b""

    shard = shard_of(segments(3))
    store = SnapshotStore(tmp_path, IDENTITY, Noted, FREE, disk=Noting())
    await store.write(ShardImages(PARTITION, shard.position, HISTORY, [part]))
    assert await store.restore(PARTITION, 0, END) is not None
    assert {"create", "write", "sync", "rename", "sync_folder"} < threads.keys()
    assert {"image", "read", "import"} < threads.keys()
    assert ours not in threads.values()


async def test_write_when_cancelled_then_leaves_what_was_there(tmp_path: Path) -> None:
    """A stop does not wait for a large snapshot: it is given up, and nothing is left of it."""
    store = store_in(tmp_path)
    await store.write(frozen_of(shard_of(segments(5))))
    loop = asyncio.get_running_loop()

    async def cancel() -> None:
        task.cancel()
        await asyncio.sleep(0)

    def cancelling() -> bytes:
        asyncio.run_coroutine_threadsafe(cancel(), loop).result(10)
        return shard.partition_image(tp()) or b""

    shard = shard_of(segments(6))
    parts = [cancelling, lambda: b""]
    task = asyncio.create_task(store.write(ShardImages(PARTITION, 12, HISTORY, parts)))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files_below(tmp_path) == [f"{PARTITION}/{10:020d}.snapshot"]
    saved = store.saved(PARTITION)
    assert saved is not None
    assert saved.position == 10


class ForcingDisk(SnapshotDisk):
    def __init__(self) -> None:
        self.forced: list[Path] = []
        self.failing: dict[Path, int] = {}

    def sync_folder(self, path: Path) -> None:
        if path in self.failing:
            raise OSError(self.failing[path], "not forced")
        self.forced.append(path)
        super().sync_folder(path)


async def test_f16_folder_not_forced_then_is_forced_by_the_next_snapshot(tmp_path: Path) -> None:
    """A snapshot in a folder that a crash may take away again is none."""
    disk = ForcingDisk()
    root = tmp_path / "snapshots"
    store = store_in(root, disk=disk)
    disk.failing[root] = errno.EIO
    frozen = frozen_of(shard_of(segments(1)))
    with pytest.raises(SnapshotError):
        await store.write(frozen)
    disk.failing.clear()
    disk.forced.clear()
    saved = await store.write(frozen)
    above = [folder for folder in saved.path.parents if folder.is_relative_to(tmp_path)]
    assert sorted(disk.forced) == sorted(above)


async def test_f16_folder_that_is_durable_then_is_not_forced_again(tmp_path: Path) -> None:
    """The names above a snapshot are forced once, not with every snapshot."""
    disk = ForcingDisk()
    store = store_in(tmp_path, disk=disk)
    await store.write(frozen_of(shard_of(segments(1))))
    disk.forced.clear()
    saved = await store.write(frozen_of(shard_of(segments(2))))
    assert disk.forced == [saved.path.parent]


def test_folder_above_the_root_when_it_cannot_be_opened_then_is_not_forced(tmp_path: Path) -> None:
    """A folder above the root that cannot be opened is not forced."""
    disk = ForcingDisk()
    disk.failing[tmp_path] = errno.EACCES
    root = tmp_path / "snapshots"
    make_durable_folder(disk, root / "3", root)
    assert disk.forced == [root]
    disk.failing[root] = errno.EACCES
    with pytest.raises(PermissionError):
        make_durable_folder(disk, root / "4", root)


@pytest.mark.parametrize("looks", [0, 1], ids=["before-the-rename", "behind-the-rename"])
async def test_write_when_the_log_is_cut_meanwhile_then_no_snapshot_stays(
    tmp_path: Path, looks: int
) -> None:
    """A state that the log has disowned is neither written nor kept, whenever the cut comes."""
    (older,) = await saved_at(tmp_path, 1)
    store = store_in(tmp_path)
    answers = iter([True] * looks + [False] * 9)
    frozen = replace(frozen_of(shard_of(segments(2))), is_valid=lambda: next(answers))
    with pytest.raises(SnapshotError, match="the log was cut while it was written"):
        await store.write(frozen)
    assert files_below(tmp_path) == [f"{PARTITION}/{older.name}"]
    assert store.saved(PARTITION) is None


async def test_write_when_the_log_is_cut_behind_it_then_is_not_relied_on(tmp_path: Path) -> None:
    """A snapshot that was set aside right behind its rename suppresses no later one."""
    store = store_in(tmp_path)
    answers = iter([True, True, False, False])
    frozen = replace(frozen_of(shard_of(segments(2))), is_valid=lambda: next(answers))
    with pytest.raises(SnapshotError, match="the log was cut"):
        await store.write(frozen)
    assert store.saved(PARTITION) is None


@pytest.mark.parametrize("is_long", [False, True], ids=["before-it-is-gone", "behind-it"])
async def test_snapshot_when_restored_and_then_taken_back_by_its_writer_then_is_written_anew(
    tmp_path: Path, is_long: bool
) -> None:
    """A follower may restore a snapshot just before its writer removes it; it counts as unsaved."""
    loop = asyncio.get_running_loop()
    is_read, is_gone = threading.Event(), threading.Event()
    restores: list[Future[RestoredSnapshot | None]] = []

    class Read(PythonShard):
        def import_partition(self, image: bytes) -> TopicIdPartition:
            is_read.set()
            assert not is_long or is_gone.wait(10)
            return super().import_partition(image)

    class Meeting(SnapshotDisk):
        def sync_folder(self, path: Path) -> None:
            if path.name == str(PARTITION) and not restores:
                restores.append(
                    asyncio.run_coroutine_threadsafe(store.restore(PARTITION, 0, END), loop)
                )
                assert is_read.wait(10)
                assert is_long or restores[0].result(10) is not None
            super().sync_folder(path)

    store = SnapshotStore(tmp_path, IDENTITY, Read, FREE, disk=Meeting())
    shard = shard_of(segments(2))
    with pytest.raises(SnapshotError, match="the log was cut"):
        await store.write(replace(frozen_of(shard), is_valid=lambda: not restores))
    is_gone.set()
    assert await asyncio.wrap_future(restores[0]) is not None
    assert files_below(tmp_path) == []
    assert store.saved(PARTITION) is None
    assert store.statistics().saved == {}
    saved = await store.write(frozen_of(shard))
    assert store.saved(PARTITION) == saved


async def test_snapshot_when_set_aside_while_it_is_written_then_is_not_relied_on(
    tmp_path: Path,
) -> None:
    """A follower that begins anew may set aside a snapshot whose writer has not synced it yet."""
    loop = asyncio.get_running_loop()
    folders: list[Path] = []

    class Meeting(SnapshotDisk):
        def sync_folder(self, path: Path) -> None:
            if path.name == str(PARTITION) and not folders:
                folders.append(path)
                restore = store.restore(PARTITION, 0, 1)
                assert asyncio.run_coroutine_threadsafe(restore, loop).result(10) is None
            super().sync_folder(path)

    store = store_in(tmp_path, disk=Meeting())
    shard = shard_of(segments(2))
    assert not (await store.write(frozen_of(shard))).path.exists()
    assert store.saved(PARTITION) is None
    saved = await store.write(frozen_of(shard))
    assert saved.path.exists()
    assert store.saved(PARTITION) == saved
