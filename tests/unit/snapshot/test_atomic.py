"""The folders of snapshots: their names are on the medium before anything in them counts."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import SnapshotError
from rlmm.snapshot.atomic import SnapshotDisk, make_durable_folder
from tests.support.engine.snapshots import frozen_of, segments, shard_of, store_in

if TYPE_CHECKING:
    from pathlib import Path


class ForcingDisk(SnapshotDisk):
    def __init__(self) -> None:
        self.forced: list[Path] = []
        self.failing: dict[Path, int] = {}

    def sync_folder(self, path: Path) -> None:
        if path in self.failing:
            raise OSError(self.failing[path], "not forced")
        self.forced.append(path)
        super().sync_folder(path)


async def test_f16_folder_when_its_name_was_not_forced_then_the_next_snapshot_forces_it(
    tmp_path: Path,
) -> None:
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


async def test_f16_folder_when_it_is_known_to_be_there_then_only_what_is_new_is_forced(
    tmp_path: Path,
) -> None:
    """The names above a snapshot are forced once, not with every snapshot."""
    disk = ForcingDisk()
    store = store_in(tmp_path, disk=disk)
    await store.write(frozen_of(shard_of(segments(1))))
    disk.forced.clear()
    saved = await store.write(frozen_of(shard_of(segments(2))))
    assert disk.forced == [saved.path.parent]


def test_folder_when_above_the_root_nobody_may_look_then_is_made_all_the_same(
    tmp_path: Path,
) -> None:
    """A folder above the root that cannot be opened is not forced."""
    disk = ForcingDisk()
    disk.failing[tmp_path] = errno.EACCES
    root = tmp_path / "snapshots"
    make_durable_folder(disk, root / "3", root)
    assert disk.forced == [root]
    disk.failing[root] = errno.EACCES
    with pytest.raises(PermissionError):
        make_durable_folder(disk, root / "4", root)
