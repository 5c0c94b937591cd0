"""rlmm as a library: `async with rlmm.open(log=...) as metadata`. It leaves no task or lock."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.folder_lock import require_apart, snapshots_lock
from rlmm.base.native_core import engine_in_use, engine_named
from rlmm.base.threads import in_own_thread
from rlmm.engine.engine import Engine, EngineParts
from rlmm.engine.part_group import in_time
from rlmm.errors import Stopped, StopTimedOut, first_of
from rlmm.library.blocking import BlockingMetadata
from rlmm.library.metadata_calls import MetadataCalls
from rlmm.log.files.files_log import FilesLog
from rlmm.log.request_checks import require_openable
from rlmm.snapshot.snapshot_writer import FlushResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import EngineSettings
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.assignment import Assignment
    from rlmm.pump.incidents import Incidents

STOP_S = 30.0
"""Longest time that the end may take, last snapshots included."""


class RemoteLogMetadata(MetadataCalls):
    """The metadata of one cluster's tiered storage, while `open_metadata` holds it open."""

    def __init__(self, engine: Engine, running: asyncio.Task[None]) -> None:
        super().__init__(engine)
        self._running = running
        self._is_stopping = False
        self._stopping = asyncio.Lock()
        self._flushed: FlushResult | None = None
        self.blocking = BlockingMetadata(self, asyncio.get_running_loop())
        """The same for threads; a call on an event loop is refused."""

    @property
    def incidents(self) -> Incidents:
        return self._engine.incidents

    async def stop(self, *, flush: bool = True, timeout_s: float = STOP_S) -> FlushResult:
        """
        Stop reading and answering, then write last snapshots if *flush*; a second call repeats.
        Every wait ends with `Stopped`. Snapshots that are not written by the deadline are dropped.
        Raises `StopTimedOut` where the reading has not ended by the deadline.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        self._engine.refuse(Stopped, "the library is closed")
        if not self._is_stopping:
            self._is_stopping = True
            self._running.cancel()
        _, pending = await asyncio.wait([self._running], timeout=timeout_s)
        if pending:
            msg = f"the reading of the log had not ended after {timeout_s:g} s"
            raise StopTimedOut(msg)
        async with self._stopping:
            if self._flushed is None:
                self._flushed = await self._last_snapshots(deadline_s) if flush else FlushResult()
        return self._flushed

    async def _last_snapshots(self, deadline_s: float) -> FlushResult:
        left_s = max(0.0, deadline_s - asyncio.get_running_loop().time())
        return await in_time(self._engine.flush(), "last snapshots", left_s) or FlushResult()


@asynccontextmanager
async def open_metadata(
    log: MetadataLog | Path | str,
    *,
    snapshots: Path | str | None = None,
    assignment: Assignment | None = None,
    settings: EngineSettings | None = None,
    is_observer: bool = False,
    partition_count: int | None = None,
    engine: str | None = None,
) -> AsyncIterator[RemoteLogMetadata]:
    """
    Follow *log* as long as the block runs, and answer from it. Known as `rlmm.open`.

    *log* is an open log, which its caller closes, or the folder of an embedded log, made with
    *partition_count* (50) metadata partitions. *snapshots* is a folder, where leaving writes a last
    snapshot; without one every start reads the whole log. *engine* holds the state: `native`,
    `python` or `auto`, the native core where it is installed; by default what the process chose,
    and that is `auto`. A failure of the reading is raised.

    Raises `InvalidArgument` for what is no log, `FolderInUse` for a folder in use by a process, and
    `ConfigError` for folders that cannot be used, such as one in the other, and for a native core
    that cannot be used.
    """
    require_openable(log, snapshots)
    chosen = None if engine is None else engine_named(engine)
    engine_in_use(chosen)  # refused before anything is opened
    async with AsyncExitStack() as opened:
        beside = None
        folder = log.folder if isinstance(log, FilesLog) else log
        if isinstance(folder, (Path, str)) and snapshots is not None:
            await in_own_thread("folders", partial(require_apart, Path(folder), Path(snapshots)))
        if isinstance(log, (Path, str)):
            log = beside = await FilesLog.open(
                Path(log),
                partition_count=partition_count,
                is_observer=is_observer,
                engine=chosen,
            )
            opened.push_async_callback(beside.close)
        if snapshots is not None:
            held = ExitStack()
            opened.push_async_callback(in_own_thread, "snapshots-lock", held.close)
            lock = snapshots_lock(Path(snapshots))
            await in_own_thread("snapshots-lock", partial(held.enter_context, lock))
        followed = Engine(
            log,
            settings,
            assignment=assignment,
            snapshots=None if snapshots is None else Path(snapshots),
            is_observer=is_observer,
            parts=EngineParts(engine=chosen),
        )
        running = asyncio.create_task(_run(followed, beside), name="rlmm")
        metadata = RemoteLogMetadata(followed, running)
        try:
            yield metadata
        finally:
            await metadata.stop()
            failure = None if running.cancelled() else running.exception()
        if failure is not None:
            raise first_of(failure)


async def _run(engine: Engine, log: FilesLog | None) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run(), name="engine")
        if log is not None:
            tasks.create_task(log.run(), name="log")
