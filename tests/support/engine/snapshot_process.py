"""
Processes that write snapshots and are killed.

    python -m tests.support.engine.snapshot_process steps <folder>
    python -m tests.support.engine.snapshot_process life <folder> <first>

`steps` writes one snapshot at `FIRST`, then one at `SECOND`, in a child of its own for every step
that the second takes, below `<folder>/<step>`; the child is killed by SIGKILL at that step. It says
how the steps are called, in order. `life` writes snapshots at rising positions from `<first>` on,
until it is killed, and says each position when it is on the medium.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rlmm.base.threads import BackgroundWork
from rlmm.snapshot.snapshot_folder import SnapshotFolder
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.snapshots import (
    FREE,
    IDENTITY,
    CrashingDisk,
    frozen_of,
    header_of,
    segments,
    shard_of,
)

if TYPE_CHECKING:
    from rlmm.snapshot.atomic import SnapshotDisk

COPIES = 1_000
FIRST, SECOND = 4, 8
"""Positions, and events, of two snapshots; older generations stand before them."""


def shelf_in(root: Path, disk: SnapshotDisk) -> SnapshotFolder:
    return SnapshotFolder(root, IDENTITY, ChosenShard, FREE, disk)


def save(shelf: SnapshotFolder, shard: ChosenShard) -> None:
    written = shelf.write(BackgroundWork(), header_of(shard), frozen_of(shard), 0)
    shelf.prune(written, set(), set())


def shard_at(position: int) -> ChosenShard:
    return shard_of(segments(position // 2))


def large_shard_at(position: int) -> ChosenShard:
    shard = shard_of(segments(COPIES))
    shard.position = position
    return shard


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _at_each_step(folder: Path) -> None:
    steps: list[str] = []
    for step in itertools.count():
        root = folder / str(step)
        if os.fork() == 0:
            for position in (FIRST - 2, FIRST):
                save(shelf_in(root, CrashingDisk()), shard_at(position))
            disk = CrashingDisk(step, _kill)
            save(shelf_in(root, disk), shard_at(SECOND))
            (folder / "done").write_text("\n".join(disk.steps))
            os._exit(0)
        _, status = os.wait()
        if not os.WIFSIGNALED(status):
            break
    steps = (folder / "done").read_text().split()
    _say(*steps)


def _live(root: Path, first: int) -> NoReturn:
    shelf = shelf_in(root, CrashingDisk())
    for position in itertools.count(first):
        save(shelf, large_shard_at(position))
        _say(position)
    raise AssertionError("positions do not end")


def _say(*words: object) -> None:
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode("ascii"))


if __name__ == "__main__":
    if sys.argv[1] == "steps":
        _at_each_step(Path(sys.argv[2]))
    else:
        _live(Path(sys.argv[2]), int(sys.argv[3]))
