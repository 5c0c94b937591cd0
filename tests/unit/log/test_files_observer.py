"""An observer of a `files` log beside the owner of the folder."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged, LogRecreated, LogTruncated
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.protocol import LogBounds
from rlmm.partition_log.observation import FolderWatch
from rlmm.partition_log.settings import LogSettings
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
from tests.conformance.log.under_test import ANSWER_S, read_until
from tests.support.manual_clock import START_MS
from tests.unit.log.test_files import opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from rlmm.log.files.files_log import FilesLog
    from rlmm.partition_log.observation import FolderNews


@asynccontextmanager
async def owner_and_observer(
    folder: Path, settings: LogSettings | None = None
) -> AsyncIterator[tuple[FilesLog, FilesLog]]:
    """Open the log of one partition in *folder*, and an observer that has read its first event."""
    async with opened(folder, partition_count=1, settings=settings or LogSettings()) as owner:
        await owner.append(0, b"first", timeout_s=ANSWER_S)
        async with opened(folder, is_observer=True) as observer:
            assert await read_until(observer, 0, 0, 1) == [(0, b"first")]
            yield owner, observer


def replace_behind_the_first(folder: Path, *values: bytes) -> None:
    """Cut the log of the one partition behind its first batch, and write *values* there."""
    (path,) = (folder / f"{TOPIC}-0").glob("*.log")
    (first,) = islice(walk(path.read_bytes()), 1)
    assert isinstance(first, Batch)
    with path.open("r+b") as file:
        file.truncate(first.stop)
        file.seek(first.stop)
        file.write(build_batch(records_of(values, 1, START_MS + 1), 1))


async def test_observer_when_the_owner_writes_on_then_has_its_bounds_at_once(
    tmp_path: Path,
) -> None:
    """An event that the owner acknowledged is within the bounds that the observer asks for next."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        for number in range(1, 20):
            assert await owner.append(0, b"event", timeout_s=ANSWER_S) == number
            bounds = await observer.bounds([0], timeout_s=ANSWER_S)
            assert bounds[0] == LogBounds(0, number + 1)
        assert [offset for offset, _ in await read_until(observer, 0, 0, 20)] == list(range(20))


async def test_observer_when_it_waits_then_gets_what_the_owner_writes(tmp_path: Path) -> None:
    """A read that waits at the end of the log returns the next event of the owner."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        waiting = asyncio.create_task(observer.read(0, 1, timeout_s=60))
        await asyncio.sleep(0)
        await owner.append(0, b"second", timeout_s=ANSWER_S)
        found = await waiting
        assert found is not None
        assert found.next_offset == 2


async def test_observer_when_the_owner_begins_segments_and_deletes_others_then_follows(
    tmp_path: Path,
) -> None:
    """The observer reads on in new segments, and its log start offset moves with the owner's."""
    settings = LogSettings(segment_bytes=100, retention_bytes=300)
    async with owner_and_observer(tmp_path, settings) as (owner, observer):
        for _ in range(10):
            await owner.append(0, b"event", timeout_s=ANSWER_S)
        bounds = await observer.bounds([0], timeout_s=ANSWER_S)
        assert bounds[0] == LogBounds(0, 11)
        assert [offset for offset, _ in await read_until(observer, 0, 1, 11)] == list(range(1, 11))
        await owner._registry.tick()
        ours = await owner.bounds([0], timeout_s=ANSWER_S)
        assert isinstance(ours[0], LogBounds)
        assert ours[0].log_start_offset > 5
        assert await observer.bounds([0], timeout_s=ANSWER_S) == ours
        with pytest.raises(LogTruncated):
            await observer.read(0, 1, timeout_s=ANSWER_S)


async def test_observer_when_the_log_is_cut_and_grows_back_then_reads_it_anew(
    tmp_path: Path,
) -> None:
    """The observer tells no old bytes where a log was cut and other events took their place."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        await owner.append(0, b"lost", timeout_s=ANSWER_S)
        assert await read_until(observer, 0, 1, 2) == [(1, b"lost")]
        replace_behind_the_first(tmp_path, b"else")
        assert (await observer.bounds([0], timeout_s=ANSWER_S))[0] == LogBounds(0, 2)
        assert await read_until(observer, 0, 1, 2) == [(1, b"else")]


async def test_observer_when_the_log_is_cut_between_two_looks_then_notices(tmp_path: Path) -> None:
    """The observer knows the last batch of a look by the next one, whatever grew in its place."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        (path,) = (tmp_path / f"{TOPIC}-0").glob("*.log")
        size = path.stat().st_size
        await owner.append(0, b"lost", timeout_s=ANSWER_S)
        assert (await observer.bounds([0], timeout_s=ANSWER_S))[0] == LogBounds(0, 2)
        with path.open("r+b") as file:
            file.truncate(size)
            file.seek(size)
            for offset, value in ((1, b"else"), (2, b"more")):
                file.write(build_batch(records_of([value], offset, START_MS + 1), offset))
        log = await observer._registry.look_again(TOPIC, 0)
        assert log.is_replaced


async def test_observer_when_a_read_finds_the_cut_then_reads_on_in_no_other_history(
    tmp_path: Path,
) -> None:
    """A read that goes on behind events that were cut tells that, and not what stands there now."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        await owner.append(0, b"lost", timeout_s=ANSWER_S)
        assert await read_until(observer, 0, 1, 2) == [(1, b"lost")]
        replace_behind_the_first(tmp_path, b"else", b"more")
        with pytest.raises(LogDamaged, match="its owner has cut the log"):
            await observer.read(0, 2, timeout_s=ANSWER_S)
        assert observer.replacements(0) == 1
        assert await read_until(observer, 0, 2, 3) == [(2, b"more")]


async def test_observer_when_a_caller_leaves_during_a_look_then_misses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bounds have what the owner wrote also where the question that found it was cancelled."""
    looking, goes_on, look = Event(), Event(), FolderWatch.blocking_look

    def slow(watch: FolderWatch, noted_log_start: Callable[[], int]) -> FolderNews:
        looking.set()
        assert goes_on.wait(ANSWER_S)
        return look(watch, noted_log_start)

    async with owner_and_observer(tmp_path) as (owner, observer):
        await owner.append(0, b"second", timeout_s=ANSWER_S)
        with monkeypatch.context() as patch:
            patch.setattr(FolderWatch, "blocking_look", slow)
            asking = asyncio.create_task(observer.bounds([0], timeout_s=ANSWER_S))
            assert await asyncio.to_thread(looking.wait, ANSWER_S)
            asking.cancel()
            await asyncio.sleep(0)
            goes_on.set()
            with pytest.raises(asyncio.CancelledError):
                await asking
        assert (await observer.bounds([0], timeout_s=ANSWER_S))[0] == LogBounds(0, 2)


async def test_observer_when_the_owner_makes_the_log_anew_then_says_that_it_is_another(
    tmp_path: Path,
) -> None:
    """F6: the observer refuses the records of another topic id until its identity is asked."""
    async with owner_and_observer(tmp_path / "log") as (owner, observer):
        before = await observer.identity(timeout_s=ANSWER_S)
        await owner.close()
        shutil.rmtree(tmp_path / "log")
        async with opened(tmp_path / "log", partition_count=1):
            bounds = await observer.bounds([0], timeout_s=ANSWER_S)
            assert isinstance(bounds[0], LogRecreated)
            assert (await observer.identity(timeout_s=ANSWER_S)).topic_id != before.topic_id
            bounds = await observer.bounds([0], timeout_s=ANSWER_S)
            assert bounds[0] == LogBounds(0, 0)


async def test_observer_when_a_new_batch_is_damaged_then_the_partition_is_offline(
    tmp_path: Path,
) -> None:
    """Bytes that are no batch below the size of the file are named, and are no end of the log."""
    async with owner_and_observer(tmp_path) as (owner, observer):
        await observer.bounds([0], timeout_s=ANSWER_S)
        (path,) = (tmp_path / f"{TOPIC}-0").glob("*.log")
        size = path.stat().st_size
        await owner.append(0, b"second", timeout_s=ANSWER_S)
        with path.open("r+b") as file:
            file.seek(size + 30)
            file.write(b"\xff")
        bounds = await observer.bounds([0], timeout_s=ANSWER_S)
        assert isinstance(bounds[0], LogDamaged)
        assert "crc-mismatch" in str(bounds[0])
