"""The `files` log, where the contract of every log leaves it free."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import AppendRefused, ConfigError, InvalidArgument, LogUnavailable
from rlmm.log.files import files_log
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import PARTITION_COUNT, TOPIC, look_at
from rlmm.log.protocol import LogBounds
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import LogSettings, SyncPolicy
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
from tests.conformance.log.under_test import ANSWER_S, read_on, read_until, settled
from tests.support.logs.failing_disks import ReadOnlyDisk
from tests.support.manual_clock import START_MS, ManualClock
from tests.unit.log.test_folder import BROKER_PROPERTIES, CLUSTER_ID, TOPIC_ID, listing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


NO_BYTES: tuple[Any, ...] = (None, "text")


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[FilesLog]:
    log = await FilesLog.open(folder, clock=ManualClock(), **settings)
    try:
        yield log
    finally:
        await log.close()


def written_at(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


async def write_broker_folder(folder: Path, number: int, *values: bytes, epoch: int = 5) -> None:
    registry = await LogRegistry.open(folder)
    log = await registry.create(TOPIC, number, bytes(TOPIC_ID))
    for value in values:
        await log.append(build_batch(records_of([value], 0), 0), leader_epoch=epoch)
    await registry.close()
    (folder / "meta.properties").write_text(BROKER_PROPERTIES)


async def test_open_when_not_configured_then_begins_with_kafkas_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A log begins, and is logged, once in a folder that is not there, with 50 partitions."""
    folder = tmp_path / "a" / "log"
    identities = set()
    for _ in range(2):
        async with opened(folder) as log:
            identities.add(await log.identity(timeout_s=ANSWER_S))
    (identity,) = identities
    assert identity.partition_count == PARTITION_COUNT
    names = {path.name for path in folder.iterdir() if path.is_dir()}
    assert names == {f"{TOPIC}-{number}" for number in range(PARTITION_COUNT)}
    for name in names:
        content = (folder / name / "partition.metadata").read_text()
        assert content == f"version: 0\ntopic_id: {identity.topic_id}"
    assert f"cluster.id={identity.cluster_id}\n" in (folder / "meta.properties").read_text()
    (message,) = [text for text in caplog.messages if "a new, empty log" in text]
    assert str(folder) in message


async def test_f7_f44_open_when_the_count_differs_then_is_refused(tmp_path: Path) -> None:
    """The refusal names both counts and leaves the folder unchanged."""
    async with opened(tmp_path, partition_count=3) as log:
        await log.append(2, b"a", timeout_s=ANSWER_S)
    before = listing(tmp_path)
    with pytest.raises(ConfigError, match="made with 3 partitions, the configuration says 50"):
        await FilesLog.open(tmp_path, partition_count=50)
    assert listing(tmp_path) == before
    async with opened(tmp_path) as log:
        assert await read_until(log, 2, 0, 1) == [(0, b"a")]


REFUSED: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "a foreign folder": (["holiday.jpg"], {}, r"holds 'holiday\.jpg'"),
    "no log for an observer": ([], {"is_observer": True}, f"no folder {TOPIC}-N"),
    "no partitions": ([], {"partition_count": 0}, "got 0"),
    "too many partitions": ([], {"partition_count": 10**7}, "got 10000000"),
}


@pytest.mark.parametrize(("names", "settings", "message"), REFUSED.values(), ids=REFUSED)
async def test_open_when_refused_then_nothing_is_written(
    tmp_path: Path, names: list[str], settings: dict[str, Any], message: str
) -> None:
    """The log leaves not even a lock file in a folder that it refuses."""
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=message):
        await FilesLog.open(tmp_path, **settings)
    assert listing(tmp_path) == names


async def test_open_when_the_folder_is_in_use_then_names_the_process(tmp_path: Path) -> None:
    """Two writers never share a folder; an observer may look beside one."""
    async with opened(tmp_path, partition_count=1) as log:
        await log.append(0, b"a", timeout_s=ANSWER_S)
        with pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"):
            await FilesLog.open(tmp_path)
        async with opened(tmp_path, is_observer=True) as observer:
            assert await read_until(observer, 0, 0, 1) == [(0, b"a")]
        assert await log.append(0, b"b", timeout_s=ANSWER_S) == 1
    async with opened(tmp_path):
        pass


async def test_open_when_the_disk_is_read_only_then_only_observers_read(tmp_path: Path) -> None:
    """One line names the folder, the reason and the remedy, and the remedy works."""
    async with opened(tmp_path, partition_count=1) as log:
        await log.append(0, b"a", timeout_s=ANSWER_S)
    before = written_at(tmp_path)
    with pytest.raises(ConfigError, match=r"Read-only file system; choose .* read-only$") as caught:
        await FilesLog.open(tmp_path, disk=ReadOnlyDisk())
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    observer = await FilesLog.open(tmp_path, is_observer=True, disk=ReadOnlyDisk())
    assert await read_until(observer, 0, 0, 1) == [(0, b"a")]
    await observer.close()
    assert written_at(tmp_path) == before


async def test_open_when_it_was_refused_then_the_folder_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused opening names its reason and frees the lock, and the next one goes on."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_log, "keep_identity", fail)
    with pytest.raises(LogUnavailable, match=r"no log of 3 partitions begun there: .*No space"):
        await FilesLog.open(tmp_path, partition_count=3)
    monkeypatch.undo()
    begun = (await asyncio.to_thread(look_at, tmp_path)).topic_id
    assert begun is not None
    async with opened(tmp_path, partition_count=3) as log:
        assert (await log.identity(timeout_s=ANSWER_S)).topic_id == begun


async def test_open_when_another_began_a_log_meanwhile_then_it_is_that_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second opener finds the log that another one made before it got the lock."""
    open_registry = LogRegistry.open
    begun = []

    async def late(*args: Any, **settings: Any) -> LogRegistry:
        monkeypatch.undo()
        async with opened(tmp_path, partition_count=2) as log:
            begun.append(await log.identity(timeout_s=ANSWER_S))
        return await open_registry(*args, **settings)

    monkeypatch.setattr(LogRegistry, "open", late)
    async with opened(tmp_path, partition_count=2) as log:
        assert [await log.identity(timeout_s=ANSWER_S)] == begun


async def test_observer_when_the_folder_is_a_copy_then_reads_what_is_there(tmp_path: Path) -> None:
    """An observer reads a part of a broker's folder and leaves it unchanged."""
    await write_broker_folder(tmp_path, 17, b"a", b"b")
    (tmp_path / "orders-0").mkdir()
    before = written_at(tmp_path)
    async with opened(tmp_path, partition_count=50, is_observer=True) as log:
        identity = await log.identity(timeout_s=ANSWER_S)
        assert (identity.cluster_id, identity.topic_id) == (CLUSTER_ID, TOPIC_ID)
        assert await read_until(log, 17, 0, 2) == [(0, b"a"), (1, b"b")]
    assert written_at(tmp_path) == before


async def test_f39_observer_when_a_partition_is_missing_then_is_unknown(tmp_path: Path) -> None:
    """Failure scenario F39: a partition missing in a copy is an error, not an empty log."""
    await write_broker_folder(tmp_path, 17, b"a")
    async with opened(tmp_path, partition_count=50, is_observer=True) as log:
        bounds = await log.bounds([16, 17], timeout_s=ANSWER_S)
        assert bounds[17] == LogBounds(0, 1)
        assert isinstance(bounds[16], LogUnavailable)
        with pytest.raises(LogUnavailable, match="partition 16 has no folder"):
            await log.read(16, 0, timeout_s=ANSWER_S)


@pytest.mark.parametrize("is_brokers", [False, True], ids=["ours", "a broker's"])
async def test_append_when_stored_then_has_the_clocks_time_and_the_folders_epoch(
    tmp_path: Path, is_brokers: bool
) -> None:
    """An event gets the time of the clock that was passed in; epochs of a broker never go back."""
    if is_brokers:
        await write_broker_folder(tmp_path, 0, b"a", epoch=5)
    async with opened(tmp_path, partition_count=1) as log:
        offset = await log.append(0, b"b", timeout_s=ANSWER_S)
        record_set = await read_on(log, 0, offset)
    (batch,) = walk(record_set.data)
    assert isinstance(batch, Batch)
    assert (offset, batch.leader_epoch) == ((1, 5) if is_brokers else (0, 0))
    assert batch.max_timestamp_ms == START_MS


async def test_append_when_the_segment_is_old_then_a_new_one_begins(tmp_path: Path) -> None:
    """Time as the log sees it is the clock that was passed in, for ages too."""
    clock = ManualClock()
    settings = LogSettings(segment_ms=1_000)
    log = await FilesLog.open(tmp_path, partition_count=1, settings=settings, clock=clock)
    try:
        for _ in range(3):
            await log.append(0, b"a", timeout_s=ANSWER_S)
            clock.advance(1)
        clock.advance(1)
        await log.append(0, b"b", timeout_s=ANSWER_S)
    finally:
        await log.close()
    names = sorted(path.name for path in (tmp_path / f"{TOPIC}-0").glob("*.log"))
    assert [int(name[:20]) for name in names] == [0, 2, 3]


async def test_append_when_no_segment_takes_it_then_is_refused(tmp_path: Path) -> None:
    """Too large for a segment is too large; a tombstone or a text never gets into the log."""
    settings = LogSettings(segment_bytes=1_000, sync=SyncPolicy.NEVER)
    async with opened(tmp_path, partition_count=1, settings=settings) as log:
        with pytest.raises(AppendRefused, match="makes a batch of 1070, allowed are 1000"):
            await log.append(0, bytes(1_000), timeout_s=ANSWER_S)
        for value in NO_BYTES:
            with pytest.raises(InvalidArgument, match="made of bytes"):
                await log.append(0, value, timeout_s=ANSWER_S)
        assert await log.append(0, bytes(900), timeout_s=ANSWER_S) == 0
        assert await log.append(0, bytes(900), timeout_s=ANSWER_S) == 1


async def test_append_when_each_group_is_synced_then_many_share_few_syncs(tmp_path: Path) -> None:
    """By default an acknowledged event is synced, and events that wait together share a sync."""
    async with opened(tmp_path, partition_count=1) as log:
        appends = [log.append(0, b"%d" % number, timeout_s=ANSWER_S) for number in range(50)]
        assert sorted(await asyncio.gather(*appends)) == list(range(50))
        partition = await log._registry.partition(TOPIC, 0)
        statistics = partition.statistics()
    assert (statistics.recovery_point, statistics.appends) == (50, 50)
    assert 1 <= statistics.syncs < 25


async def test_run_when_cancelled_then_ends(tmp_path: Path) -> None:
    """The periodic work ends with its task; a read without time has what the log has."""
    async with opened(tmp_path, partition_count=1) as log:
        running = asyncio.create_task(log.run())
        await settled()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await log.append(0, b"a", timeout_s=ANSWER_S) == 0
        assert await log.read(0, 0, timeout_s=0) is not None
        assert await log.read(0, 1, timeout_s=0) is None
        assert log.statistics().partitions == 1


async def test_close_when_two_close_then_both_free_the_folder(tmp_path: Path) -> None:
    """Two closes at once both return after the lock of the folder is free."""
    log = await FilesLog.open(tmp_path, partition_count=1)
    await log.append(0, b"a", timeout_s=ANSWER_S)
    first = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    await log.close()
    async with opened(tmp_path) as again:
        assert await read_until(again, 0, 0, 1) == [(0, b"a")]
    await first
