"""
A process that follows a folder's log, with snapshots, and writes to it until it is killed.

    python -m tests.support.logs.engine_process <folder> <life>

It prints `opening`, `ready` and the number of restored states, `snapshots` and the number written,
and each claim (`tests.support.engine.claims`). It ends once its lines are not read any more.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.engine.engine import EngineSettings
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.engine.broker_writers import WAIT_S, Copier, ask
from tests.support.engine.claims import Question, line_of, user_partition

if TYPE_CHECKING:
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from tests.support.engine.claims import Answered, Wrote

PLACES = 3
COPIERS = 24
OPENING, READY, SNAPSHOTS = "opening", "ready", "snapshots"
LOG, KEPT = "log", "snapshots"
LOG_SETTINGS = LogSettings(
    sync=SyncPolicy.EACH_GROUP,
    segment_bytes=65_536,
    index_interval_bytes=500,
    checkpoint_interval_ms=50,
    tick_interval_ms=50,
)
SETTINGS = EngineSettings(snapshot=SnapshotSettings(interval_ms=30, free_bytes_min=0))
"""Small segments, frequent check points and snapshots: a kill hits all of them."""


def say(*words: object) -> None:
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode("ascii"))


def tell(claim: Wrote | Answered) -> None:
    say(line_of(claim))


async def ask_early(metadata: RemoteLogMetadata) -> None:
    questions = [
        Question(kind, writer, 0)
        for writer in range(COPIERS)
        for kind in ("segments", "partition_delete")
    ]
    while questions:
        questions = [each for each in questions if not ask(metadata, each, PLACES, tell)]
        await asyncio.sleep(0.001)


async def count(metadata: RemoteLogMetadata) -> None:
    for writer in range(COPIERS):
        await metadata.wait_ready(user_partition(writer, 0), timeout_s=WAIT_S)
    kept = metadata.statistics()
    say(READY, 0 if kept.restored is None else kept.restored.restored)
    told = 0
    while True:
        kept = metadata.statistics()
        if kept.snapshots is not None and kept.snapshots.written > told:
            told = kept.snapshots.written
            say(SNAPSHOTS, told)
        await asyncio.sleep(0.01)


async def live(folder: Path, life: int) -> None:
    say(OPENING)
    log = await FilesLog.open(folder / LOG, partition_count=PLACES, settings=LOG_SETTINGS)
    async with (
        open_metadata(log, snapshots=folder / KEPT, settings=SETTINGS) as metadata,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(log.run())
        tasks.create_task(ask_early(metadata))
        tasks.create_task(count(metadata))
        for number in range(COPIERS):
            copier = Copier(metadata, tell, life, number, COPIERS, PLACES)
            tasks.create_task(copier.run())


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
