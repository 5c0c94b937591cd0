"""The library: the opened object, its calls before and after, and its end."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.threads import left_behind
from rlmm.engine.engine import EngineSettings
from rlmm.errors import ConfigError, NotReady, PumpFailed, Stopped, StopTimedOut, Unresolved
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.pump.settings import PumpSettings, WriteSettings
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.folder_check import stored_below
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.snapshot.snapshot_writer import FlushResult
from tests.support.builders import (
    delete_started,
    finished,
    partition_delete,
    segment_id,
    started,
    tp,
)
from tests.support.engines import ROOM, LibraryTopic, until
from tests.support.logs.misbehaving_logs import BrokenLog, UncancellableLog
from tests.support.virtual_time import leap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from rlmm.library.remote_log_metadata import RemoteLogMetadata

    Call = Callable[[RemoteLogMetadata], Coroutine[Any, Any, object]]

TP = tp()
MARKED = PartitionDeleteState.DELETE_PARTITION_MARKED
PLACES = 3
PLACE = metadata_partition_for(TP.topic_id, TP.partition, PLACES)
WAIT_S = 30.0
SETTINGS = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=100),
    snapshot=SnapshotSettings(free_bytes_min=0),
    memory=ROOM,
)
BRIEF = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=100, retry_first_ms=10),
    write=WriteSettings(ready_timeout_ms=20),
    snapshot=SnapshotSettings(free_bytes_min=0),
    memory=ROOM,
)

LINEARIZABLE: Any = {"linearizable": True, "timeout_s": 0.05}
CALLS: dict[str, Call] = {
    "segment_for": lambda it: it.segment_for(TP, 0, 50),
    "segment_for, linearizable": lambda it: it.segment_for(TP, 0, 50, **LINEARIZABLE),
    "segments_for, linearizable": lambda it: it.segments_for([(TP, 0, 50)], **LINEARIZABLE),
    "segment": lambda it: it.segment(segment_id("a")),
    "next_segment_with_txn_index": lambda it: it.next_segment_with_txn_index(TP, 0, 0),
    "highest_offset": lambda it: it.highest_offset(TP, 0),
    "segments": lambda it: it.segments(TP),
    "segments of an epoch": lambda it: it.segments(TP, 0),
    "size": lambda it: it.size(TP),
    "size of an epoch": lambda it: it.size(TP, 0),
    "partition_delete": lambda it: it.partition_delete(TP),
    "wait_ready": lambda it: it.wait_ready(TP, timeout_s=0.01),
    "add_segment": lambda it: it.add_segment(started("b", 100, 199)),
    "update_segment": lambda it: it.update_segment(delete_started("a")),
    "put_partition_delete": lambda it: it.put_partition_delete(partition_delete(MARKED)),
    "store": lambda it: it.store(started("b", 100, 199)),
}
EACH_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@pytest.fixture
def topic() -> LibraryTopic:
    return LibraryTopic(SETTINGS)


@pytest.fixture
async def no_thread_is_left() -> AsyncIterator[None]:
    threads = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= threads


async def copied(metadata: RemoteLogMetadata) -> None:
    await metadata.add_segment(started("a"))
    await metadata.update_segment(finished("a"))


def is_answering(metadata: RemoteLogMetadata) -> bool:
    try:
        metadata.reads.segments(TP)
    except Unresolved:
        return False
    return True


@EACH_CALL
async def test_f93_call_when_log_is_away_then_refused(topic: LibraryTopic, call: Call) -> None:
    """Failure scenario F93: every call raises `NotReady`, and nothing is stored later."""
    topic.script.lose_brokers()
    async with topic.opened(settings=BRIEF) as metadata:
        with pytest.raises(NotReady) as caught:
            await call(metadata)
        assert caught.value.reason == "connecting"
        assert not metadata.is_ready(TP)
        assert metadata.read_token() == {}
        topic.script.restore()
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        assert topic.ends == [0] * PLACES


@EACH_CALL
async def test_f94_call_when_nothing_is_read_then_refused(topic: LibraryTopic, call: Call) -> None:
    """Failure scenario F94: unread events are never answered as absent."""
    topic.script.write(PLACE, encode(started("a")), encode(finished("a")))
    topic.script.stall(PLACE)
    async with topic.opened(settings=BRIEF, assignment=Assignment.nothing()) as metadata:
        await metadata.reconcile(Assignment.everything(), timeout_s=WAIT_S)
        with pytest.raises(NotReady) as caught:
            await call(metadata)
        assert (caught.value.metadata_partition, caught.value.target) == (PLACE, 2)
        assert topic.ends[PLACE] == 2
        topic.script.resume(PLACE)
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        assert [found.id for found in await metadata.segments(TP)] == [segment_id("a")]


@EACH_CALL
async def test_call_when_library_is_left_then_refused(topic: LibraryTopic, call: Call) -> None:
    """A closed library refuses every read and write."""
    async with topic.opened() as metadata:
        await copied(metadata)
    with pytest.raises(Stopped, match="the library is closed"):
        await call(metadata)
    with pytest.raises(Stopped):
        metadata.reads.segments(TP)
    with pytest.raises(Stopped):
        await metadata.reconcile(Assignment.nothing())
    assert sum(topic.ends) == 2


async def test_library_when_left_then_leaves_no_task_no_thread_and_no_lock(tmp_path: Path) -> None:
    """A folder can be opened again and again, and each time all that was begun is over."""
    threads, tasks = set(threading.enumerate()), asyncio.all_tasks()
    for number in range(3):
        async with open_metadata(
            tmp_path / "log", snapshots=tmp_path / "snapshots", settings=SETTINGS
        ) as metadata:
            await metadata.add_segment(started(f"s{number}", number * 100, number * 100 + 99))
            assert len(await metadata.segments(TP)) == number + 1
            await metadata.write_snapshots()
            assert set(threading.enumerate()) - threads
        assert set(threading.enumerate()) <= threads
        assert asyncio.all_tasks() == tasks
    log = await FilesLog.open(tmp_path / "log")
    await log.close()


@pytest.mark.usefixtures("no_thread_is_left")
async def test_library_when_left_then_no_pool_thread(topic: LibraryTopic, tmp_path: Path) -> None:
    """The library leaves no idle thread in the loop's pool, even on the caller's own log."""
    for _ in range(2):
        async with topic.opened(tmp_path / "snapshots") as metadata:
            await metadata.add_segment(started("a"))
            await metadata.write_snapshots()


@pytest.mark.usefixtures("no_thread_is_left")
@pytest.mark.parametrize("error", [ZeroDivisionError("ours"), None], ids=["error", "cancelled"])
async def test_library_when_it_fails_then_closed(tmp_path: Path, error: Exception | None) -> None:
    """An error that ends the block is raised after the last snapshot and the folder's release."""
    loop = asyncio.get_running_loop()

    async def use(entered: asyncio.Future[RemoteLogMetadata], label: str) -> None:
        async with open_metadata(
            tmp_path / "log", snapshots=tmp_path / "snapshots", settings=SETTINGS
        ) as metadata:
            await metadata.add_segment(started(label))
            entered.set_result(metadata)
            if error is not None:
                raise error
            await loop.create_future()

    for position in (1, 2):
        entered: asyncio.Future[RemoteLogMetadata] = loop.create_future()
        task = asyncio.create_task(use(entered, f"s{position}"))
        metadata = await entered
        if error is None:
            task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() if error is None else task.exception() is error
        assert list(metadata.snapshot_positions().values()) == [position]


@pytest.mark.usefixtures("no_thread_is_left")
async def test_library_when_it_cannot_be_opened_then_leaves_nothing(tmp_path: Path) -> None:
    """The library refuses a folder in use by name and leaves it to its owner."""
    tasks = asyncio.all_tasks()
    async with open_metadata(tmp_path, settings=SETTINGS) as metadata:
        with pytest.raises(ConfigError, match="in use"):
            async with open_metadata(tmp_path, settings=SETTINGS):
                pass
        await metadata.add_segment(started("a"))
    assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize("flush", [True, False], ids=["flush", "no-flush"])
async def test_stop_when_told_about_snapshots_then_writes_them_or_not(
    topic: LibraryTopic, tmp_path: Path, flush: bool
) -> None:
    """A stop without a flush leaves none, also when the block is left: the first stop counts."""
    async with topic.opened(tmp_path) as metadata:
        await copied(metadata)
        done = await metadata.stop(flush=flush)
        assert done.written == ((PLACE,) if flush else ())
        assert await metadata.stop(flush=not flush) == done
        assert metadata.snapshot_positions() == ({PLACE: 2} if flush else {})
    assert metadata.snapshot_positions() == ({PLACE: 2} if flush else {})


async def test_stop_when_calls_wait_then_each_ends_by_name(topic: LibraryTopic) -> None:
    """Calls that wait for an offset, readiness or a verdict get `Stopped`."""
    async with topic.opened() as metadata:
        await metadata.wait_ready(TP, timeout_s=WAIT_S)
        topic.script.stall(PLACE)
        waiting = [
            asyncio.create_task(metadata.segments(TP, at_least={PLACE: 5}, timeout_s=WAIT_S)),
            asyncio.create_task(metadata.add_segment(started("a"), timeout_s=WAIT_S)),
        ]
        await until(lambda: topic.ends[PLACE] == 1)
        await until(lambda: metadata.statistics().barrier.waiting == 1)
        await metadata.stop()
        for task in waiting:
            with pytest.raises(Stopped):
                await task


async def test_stop_when_reading_does_not_end_then_times_out(topic: LibraryTopic) -> None:
    """I9: the stop ends at its own deadline and names the work that is still running."""
    log = UncancellableLog(topic.memory)
    async with topic.opened(log=log) as metadata:
        await until(lambda: metadata.statistics().pump.is_connected)
        with pytest.raises(StopTimedOut, match=r"had not ended after 0\.05 s"):
            async with asyncio.timeout(WAIT_S):
                await metadata.stop(timeout_s=0.05)
        with pytest.raises(Stopped):
            metadata.reads.segments(TP)
        log.released.set()
        await metadata.stop()


async def test_library_when_reading_dies_then_raises(topic: LibraryTopic, tmp_path: Path) -> None:
    """After a fatal error every call raises it, and so does the end of the library."""
    log = BrokenLog(topic.memory)
    opened = topic.opened(tmp_path, log=log)
    metadata = await opened.__aenter__()
    await copied(metadata)
    log.is_broken = True
    topic.script.write(PLACE, encode(started("b", 100, 199)))
    await until(lambda: not is_answering(metadata))
    for call in CALLS.values():
        with pytest.raises(PumpFailed, match="ZeroDivisionError"):
            await call(metadata)
    with pytest.raises(ZeroDivisionError, match="nobody thought of it"):
        await opened.__aexit__(None, None, None)
    assert metadata.snapshot_positions() == {PLACE: 2}


async def test_library_when_the_reading_dies_and_the_block_fails_of_it_then_that_is_raised(
    topic: LibraryTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """The block's own error is the one that is raised, and nothing is reported as forgotten."""
    log = BrokenLog(topic.memory)
    log.is_broken = True
    topic.script.write(PLACE, encode(started("a")))
    with pytest.raises(PumpFailed):
        async with topic.opened(log=log) as metadata:
            await metadata.wait_ready(TP, timeout_s=WAIT_S)
    del metadata
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_stop_when_a_snapshot_hangs_then_returns_in_time_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The stop leaves no task, and a hanging snapshot write does not finish later."""
    reached, released = threading.Event(), threading.Event()
    sync = SnapshotDisk.sync

    def slow(disk: SnapshotDisk, descriptor: int) -> None:
        reached.set()
        assert released.wait(WAIT_S)
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
            assert loop.time() - begin_s < WAIT_S / 2
        assert asyncio.all_tasks() == tasks
        assert left_behind() == ["snapshot-write"]
        assert "threads that hang: snapshot-write" in caplog.text
        assert "last snapshots: given up after" in caplog.text
    finally:
        hung = [one for one in threading.enumerate() if one.name == "snapshot-write"]
        released.set()
        for thread in hung:
            await asyncio.to_thread(thread.join, WAIT_S)
    assert await asyncio.to_thread(lambda: list(stored_below(tmp_path / "snapshots"))) == []
