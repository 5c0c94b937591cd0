"""
A crash at every step of writing a snapshot, by exception and by SIGKILL, and SIGKILL at random.

Afterwards a snapshot's path holds the old file or the new one, whole, and what is restored is the
state of one of them.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from rlmm.base.threads import BackgroundWork
from rlmm.snapshot.atomic import SnapshotDisk, write_atomically
from rlmm.snapshot.folder_check import examine, stored_below
from tests.support.engine.snapshot_process import (
    FIRST,
    SECOND,
    large_shard_at,
    save,
    shard_at,
    shelf_in,
)
from tests.support.engine.snapshots import PARTITION, Crash, CrashingDisk, files_below
from tests.support.repository import tree

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.metadata.shard import Shard

ENDS = ("create", "write", "sync", "rename", "sync_folder", "remove")
"""The steps of writing, in order; there are several writes. Removing the oldest is the last."""


def kinds_of(steps: list[str]) -> tuple[str, ...]:
    written = itertools.dropwhile(lambda step: step == "sync_folder", steps)
    return tuple(dict.fromkeys(written))


def restored(root: Path) -> tuple[int, Shard]:
    shelf = shelf_in(root, SnapshotDisk())
    found, refusals = shelf.restore(BackgroundWork(), PARTITION, 0, 1_000_000)
    assert found is not None
    assert refusals == [], "a crash left a snapshot that is not whole"
    assert not [name for name in files_below(root) if not name.endswith(".snapshot")]
    return found[1].position, found[2]


def assert_old_or_new(root: Path, step: int, steps: list[str]) -> None:
    left = [name for name in files_below(root) if not name.endswith(".snapshot")]
    assert len(left) <= 1
    assert all(examine(stored).is_good for stored in stored_below(root))
    position, shard = restored(root)
    is_renamed = "rename" in steps[:step]
    assert position == (SECOND if is_renamed else FIRST)
    assert shard.image() == shard_at(position).image()
    kept = [stored.position for stored in stored_below(root)]
    assert FIRST in kept


@pytest.mark.parametrize("before", [(), (FIRST - 2, FIRST)], ids=["first", "later"])
def test_f16_snapshot_when_the_process_ends_at_any_step_then_is_the_old_or_the_new_one(
    tmp_path: Path, before: tuple[int, ...]
) -> None:
    """An exception at any system call leaves the old snapshot, if any, or the new one whole."""
    written = SECOND if before else FIRST
    steps = ["create"]
    for step in itertools.count():
        root = tmp_path / str(step)
        for position in before:
            save(shelf_in(root, SnapshotDisk()), shard_at(position))
        disk = CrashingDisk(step)
        try:
            save(shelf_in(root, disk), shard_at(written))
        except Crash:
            if before:
                assert_old_or_new(root, step, disk.steps)
            else:
                whole = [examine(stored).is_good for stored in stored_below(root)]
                assert whole == ([True] if "rename" in disk.steps[:step] else [])
            save(shelf_in(root, SnapshotDisk()), shard_at(written))  # and the next one is written
            assert [stored.position for stored in stored_below(root)] == [written, *before[1:]]
            assert restored(root)[0] == written
        else:
            steps = disk.steps
            break
    assert len(list(tmp_path.iterdir())) == len(steps) + 1 >= 9
    if before:
        assert kinds_of(steps) == ENDS
    else:
        assert steps.index("sync_folder") < steps.index("create")  # the folders, from the top


def test_f16_path_when_the_process_ends_at_any_step_of_replacing_it_then_is_whole(
    tmp_path: Path,
) -> None:
    """A file that replaces another of the same name is the old or the new one at every step."""
    path = tmp_path / "file"
    steps: list[str] = []
    for step in itertools.count():
        write_atomically(SnapshotDisk(), path, [b"old " * 100])
        disk = CrashingDisk(step)
        try:
            write_atomically(disk, path, [b"new " * 100, b"more"])
        except Crash:
            is_new = "rename" in disk.steps[:step]
            assert path.read_bytes() == (b"new " * 100 + b"more" if is_new else b"old " * 100)
        else:
            steps = disk.steps
            break
    assert steps == ["create", "write", "write", "sync", "rename", "sync_folder"]


async def test_f16_snapshot_when_killed_at_any_step_then_is_the_old_or_the_new_one(
    tmp_path: Path,
) -> None:
    """A SIGKILL at any system call leaves the old snapshot or the new one whole."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.engine.snapshot_process", "steps", str(tmp_path),
        stdout=asyncio.subprocess.PIPE, cwd=tree.ROOT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0
    steps = output.decode().split()
    assert kinds_of(steps) == ENDS
    for step in range(len(steps)):
        assert_old_or_new(tmp_path / str(step), step, steps)


async def killed(root: Path, first: int, snapshots: int) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.engine.snapshot_process", "life", str(root),
        str(first), stdout=asyncio.subprocess.PIPE, cwd=tree.ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    last = first - 1
    told = 0
    while line := await process.stdout.readline():
        told += 1
        if told == snapshots:
            process.send_signal(signal.SIGKILL)
        if line.endswith(b"\n"):
            last = int(line)
    assert await process.wait() == -signal.SIGKILL
    return last


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kills", [pytest.param(3, id="short"), pytest.param(100, id="long", marks=pytest.mark.long)]
)
async def test_f16_snapshots_when_killed_at_random_moments_then_the_last_told_is_there(
    tmp_path: Path, kills: int
) -> None:
    """After each kill the last reported snapshot is restored, and no files pile up."""
    rng = random.Random(kills)
    first = 1
    for _ in range(kills):
        last = await killed(tmp_path, first, rng.randrange(1, 6))
        assert len(files_below(tmp_path)) <= 4  # two generations, one unpruned, one unfinished
        position, shard = restored(tmp_path)
        assert position in {last, last + 1}
        assert shard.image() == large_shard_at(position).image()
        first = position + 1
