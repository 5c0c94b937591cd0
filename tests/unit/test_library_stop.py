"""The end of the library within its deadline, whatever hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from rlmm.base.threads import left_behind
from rlmm.engine.engine import EngineSettings
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.folder_check import stored_below
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.writer import FlushResult
from tests.support.blocking import nothing_blocks
from tests.support.builders import started
from tests.support.engines import ROOM, until
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["nothing_blocks"]

DEADLINE_S = 30.0
SETTINGS = EngineSettings(snapshot=SnapshotSettings(free_bytes_min=0), memory=ROOM)


async def test_stop_when_a_snapshot_hangs_then_returns_in_time_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The stop leaves no task, and a hanging snapshot write does not finish later."""
    reached, released = threading.Event(), threading.Event()
    sync = SnapshotDisk.sync

    def slow(disk: SnapshotDisk, descriptor: int) -> None:
        reached.set()
        assert released.wait(DEADLINE_S)
        sync(disk, descriptor)

    monkeypatch.setattr(SnapshotDisk, "sync", slow)
    tasks, loop = asyncio.all_tasks(), asyncio.get_running_loop()
    try:
        async with open_metadata(
            tmp_path / "log", snapshots=tmp_path / "snapshots", settings=SETTINGS, partition_count=1
        ) as metadata:
            await metadata.add_segment(started("a"))
            begin_s = loop.time()
            stopping = asyncio.create_task(metadata.stop(timeout_s=4.0))
            await until(reached.is_set)
            leap(4.0)
            assert await stopping == FlushResult()
            assert loop.time() - begin_s < DEADLINE_S / 2
        assert asyncio.all_tasks() == tasks
        assert left_behind() == ["snapshot-write"]
        assert "threads that hang: snapshot-write" in caplog.text
        assert "last snapshots: given up after" in caplog.text
    finally:
        hung = [one for one in threading.enumerate() if one.name == "snapshot-write"]
        released.set()
        for thread in hung:
            await asyncio.to_thread(thread.join, DEADLINE_S)
    assert await asyncio.to_thread(lambda: list(stored_below(tmp_path / "snapshots"))) == []
