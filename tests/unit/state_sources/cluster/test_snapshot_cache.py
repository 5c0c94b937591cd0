"""States kept from one command to the next: used where they fit, left alone where not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.base.folder_lock import snapshots_lock
from rlmm.errors import ConfigError
from rlmm.metadata.assignment import place_of
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.folder_check import examine, stored_below
from tests.support.builders import finished, segment_id, started
from tests.support.kafka.kafka_sources import (
    COUNT,
    NUMBERS,
    cluster_of,
    fetched,
    images_in,
    images_of,
    opened_source,
    store,
)
from tests.support.logs.copied_folders import events_of, user_partition

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.snapshot.format import SnapshotHeader


def listing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def newest_in(folder: Path) -> dict[int, SnapshotHeader]:
    found: dict[int, SnapshotHeader] = {}
    for one in stored_below(folder):
        header = examine(one).header
        assert header is not None, one
        found.setdefault(one.partition, header)
    return found


async def kept_in(folder: Path) -> dict[int, int]:
    newest = await asyncio.to_thread(newest_in, folder)
    return {place: header.position for place, header in newest.items()}


async def test_cache_when_there_is_none_then_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cache the command writes no file."""
    monkeypatch.chdir(tmp_path)
    async with opened_source(cluster_of(events_of(NUMBERS))) as source:
        await source.now()
    assert await kept_in(tmp_path) == {}
    assert await asyncio.to_thread(listing, tmp_path) == []


async def test_cache_when_there_is_one_then_the_next_command_reads_what_came_since(
    tmp_path: Path,
) -> None:
    """With a cache the next command reads only later records and has the same state and history."""
    kafka = cluster_of(events_of(NUMBERS))
    ends = {place: held.next_offset for place, held in kafka.partitions.items()}
    assert all(ends.values())
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        await source.now()
        assert await kept_in(tmp_path) == {}, "the answer comes first"
    assert await kept_in(tmp_path) == ends
    store(kafka, [*events_of(range(12, 30)), finished("nobody")])
    kafka.asked.clear()
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        moment = await source.now()
        assert images_in(moment) == images_of(kafka)
        standing = await source.standing()
    assert fetched(kafka) == ends
    for one in standing.places:
        assert one.snapshot_age_s is not None
        assert one.is_history_complete
    assert await kept_in(tmp_path) == {
        place: held.next_offset for place, held in kafka.partitions.items()
    }
    newest = await asyncio.to_thread(newest_in, tmp_path)
    histories = [header.history for header in newest.values()]
    assert all(one.is_complete for one in histories)
    records = sum(held.next_offset for held in kafka.partitions.values())
    assert sum(one.records for one in histories) == records
    assert sum(one.without_base for one in histories) == 1


async def test_cache_when_hardly_anything_came_then_is_left_as_it_is(tmp_path: Path) -> None:
    """A large state is not written anew for each record; an empty partition is not at all."""
    kafka = cluster_of(events_of([0]))
    place = place_of(user_partition(0), COUNT)
    partition = user_partition(0)
    store(kafka, [started(segment_id(n, partition), n * 10, n * 10 + 9) for n in range(2, 60)])
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        await source.now()
    before = await kept_in(tmp_path)
    assert before == {place: 60}
    for came, expected in ((4, 60), (2, 66)):
        store(kafka, [finished(segment_id(n, partition)) for n in range(2, 2 + came)])
        async with opened_source(kafka, snapshot_cache=tmp_path) as source:
            await source.now()
        assert await kept_in(tmp_path) == {place: expected}


def damage_one(folder: Path) -> int:
    stored = next(iter(stored_below(folder)))
    content = stored.path.read_bytes()
    stored.path.write_bytes(content[:-40] + bytes(40))
    return stored.partition


async def test_f6_cache_when_it_is_foreign_stale_or_damaged_then_is_not_used(
    tmp_path: Path,
) -> None:
    """A cache of another topic, beyond the log, or damaged is not used."""
    kafka = cluster_of(events_of(NUMBERS))
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        await source.now()
    ends = await kept_in(tmp_path)

    async def all_is_read() -> None:
        kafka.asked.clear()
        async with opened_source(kafka, snapshot_cache=tmp_path) as source:
            moment = await source.now()
            assert images_in(moment) == images_of(kafka)

    damaged = await asyncio.to_thread(damage_one, tmp_path)
    await all_is_read()
    assert fetched(kafka)[damaged] == 0, "the damaged one is passed over"

    kafka.recreate()
    store(kafka, events_of(range(4)))
    await all_is_read()
    assert set(fetched(kafka).values()) == {0}, "another topic"

    held = kafka.partitions[0]
    held.batches, held.next_offset = held.batches[:1], 1
    assert ends[0] > 1
    await all_is_read()
    assert fetched(kafka)[0] == 0, "beyond the end"


async def test_cache_when_the_log_has_lost_what_follows_then_is_not_used(tmp_path: Path) -> None:
    """Records between the snapshot and the log's start would be missing in silence."""
    kafka = cluster_of(events_of(NUMBERS))
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        await source.now()
    place = place_of(user_partition(0), COUNT)
    end = (await kept_in(tmp_path))[place]
    partition = user_partition(0)
    store(kafka, [started(segment_id(n, partition), n * 10, n * 10 + 9) for n in range(2, 9)])
    held = kafka.partitions[place]
    held.log_start = end + 3
    held.batches = [one for one in held.batches if one[0] >= end + 3]
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        standing = await source.standing()
        one = standing.places[place]
        assert (one.log_start, one.is_history_complete) == (end + 3, False)


async def test_cache_when_another_process_has_it_then_is_left_alone(tmp_path: Path) -> None:
    """The service's own folder, for example: its snapshots are neither removed nor set aside."""
    kafka = cluster_of(events_of(NUMBERS))
    lock = snapshots_lock(tmp_path)
    await asyncio.to_thread(lock.__enter__)
    try:
        async with opened_source(kafka, snapshot_cache=tmp_path) as source:
            assert len(await (await source.now()).user_partitions()) == 12
            (note,) = (await source.standing()).notes
    finally:
        await asyncio.to_thread(lock.__exit__, None, None, None)
    assert "the snapshot cache is not used" in note
    assert "in use by process" in note
    assert await kept_in(tmp_path) == {}


async def test_cache_when_it_is_a_folder_of_something_else_then_is_refused(tmp_path: Path) -> None:
    """A file, or a folder of logs, which nothing else may lie in."""
    await asyncio.to_thread((tmp_path / "file").touch)
    with pytest.raises(ConfigError, match="file cannot be used as the folder of snapshots"):
        async with opened_source(cluster_of([]), snapshot_cache=tmp_path / "file"):
            pass
    await asyncio.to_thread((tmp_path / "data").mkdir)
    await asyncio.to_thread((tmp_path / "data" / "meta.properties").touch)
    with pytest.raises(ConfigError, match="holds a log: name a folder of its own"):
        async with opened_source(cluster_of([]), snapshot_cache=tmp_path / "data"):
            pass
    assert await asyncio.to_thread(listing, tmp_path / "data") == [
        tmp_path / "data" / "meta.properties"
    ]


async def test_cache_when_it_cannot_be_written_then_the_answer_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the command answers and notes that the cache was not written."""
    monkeypatch.setattr(SnapshotDisk, "free_bytes", lambda *_: 0)
    kafka = cluster_of(events_of(NUMBERS))
    async with opened_source(kafka, snapshot_cache=tmp_path) as source:
        assert len(await (await source.now()).user_partitions()) == 12
    assert await kept_in(tmp_path) == {}
    assert "must stay free: make room" in caplog.text


async def test_cache_when_the_command_is_broken_off_then_nothing_more_is_written(
    tmp_path: Path,
) -> None:
    """An interrupted command writes no further snapshot."""
    kafka = cluster_of(events_of(NUMBERS))

    async def command() -> None:
        async with opened_source(kafka, snapshot_cache=tmp_path) as source:
            await source.now()
            asyncio.get_running_loop().call_soon(task.cancel)
            await asyncio.Event().wait()

    task = asyncio.ensure_future(command())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await kept_in(tmp_path) == {}
