"""Several copies of a metadata partition, and copies that are not whole: which is read, and why."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogDamaged
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata.assignment import place_of
from rlmm.partition_log.registry import LogRegistry
from tests.support.builders import finished, segment_id, started
from tests.support.logs.copied_folders import (
    active_file,
    events_of,
    fingerprint,
    opened_folders,
    place_at,
    segment_counts,
    trim,
    user_partition,
    write_brokers,
)

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 3
NUMBERS = range(12)


async def test_replicas_when_several_were_copied_then_the_farthest_is_read(tmp_path: Path) -> None:
    """A follower that was copied earlier has less; that it has less is no difference."""
    one, other = tmp_path / "one", tmp_path / "other"
    await write_brokers(one, events_of(range(6)), COUNT)
    shutil.copytree(one, other)
    await write_brokers(other, events_of(range(6, 12)), COUNT)
    for folders in ((one, other), (other, one)):
        async with opened_folders(*folders, partition_count=COUNT) as source:
            assert len(await segment_counts(await source.now())) == 12
            standing = await source.standing()
            assert standing.notes == ()
            for place in range(COUNT):
                has_more = any(place_of(user_partition(n), COUNT) == place for n in range(6, 12))
                read = source.log.path_of(place)
                assert read in {root / f"{TOPIC}-{place}" for root in folders}
                assert not has_more or read == other / f"{TOPIC}-{place}"


async def test_replicas_when_each_has_other_partitions_then_together_they_are_the_topic(
    tmp_path: Path,
) -> None:
    """Replicas of different brokers together give all partitions."""
    await write_brokers(tmp_path / "one", events_of(NUMBERS), COUNT, places=[0, 1])
    await write_brokers(tmp_path / "other", events_of(NUMBERS), COUNT, places=[1, 2])
    async with opened_folders(tmp_path / "one", tmp_path / "other") as source:
        assert len(await segment_counts(await source.now())) == len(NUMBERS)
        (note,) = (await source.standing()).notes
    assert "taken to have" in note


async def test_replicas_when_their_contents_differ_then_a_note_says_where(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After an unclean election, for example: which one is read, and from where they differ."""
    partition = user_partition(0)
    place = place_of(partition, COUNT)
    same = [started(segment_id(n, partition), n * 10, n * 10 + 9) for n in range(5)]
    one, other = tmp_path / "one", tmp_path / "other"
    await write_brokers(one, same, COUNT, places=[place])
    shutil.copytree(one, other)
    await write_brokers(
        one, [finished(segment_id(n, partition)) for n in (0, 1)], COUNT, places=[place]
    )
    later = [finished(segment_id(n, partition)) for n in (0, 2, 3)]
    await write_brokers(other, later, COUNT, places=[place])
    async with opened_folders(one, other, partition_count=COUNT) as source:
        with caplog.at_level(logging.WARNING):
            moment = await source.now([place])
            await source.now([place])
        state = await moment.state(partition)
        assert state.position == 8
        notes = (await source.standing()).notes
    (note,) = [note for note in notes if "differ" in note]
    expected = (
        f"metadata partition {place}: {other / f'{TOPIC}-{place}'} and {one / f'{TOPIC}-{place}'} "
        "differ from offset 6 on, where both reach 7: the first is read, up to 8"
    )
    assert note == expected
    assert [record.message for record in caplog.records].count(note) == 1
    async with opened_folders(one, other, partition_count=COUNT) as source:
        assert note in (await source.standing()).notes


async def test_replicas_when_they_roll_and_were_trimmed_differently_then_nothing_differs(
    tmp_path: Path,
) -> None:
    """The same records in other files, some of them gone in one replica, are the same records."""
    events = events_of(range(200))
    one, other = tmp_path / "one", tmp_path / "other"
    await write_brokers(one, events, 1)
    await write_brokers(other, events[:150], 1)
    async with await LogRegistry.open(other) as registry:
        log = await registry.partition(TOPIC, 0)
        await log.roll()
    await write_brokers(other, events[150:], 1)
    await trim(other, 0, 31)
    async with opened_folders(one, other, partition_count=1) as source:
        assert len(await segment_counts(await source.now())) == 200
        standing = await source.standing()
    assert standing.notes == ()
    assert place_at(standing, 0).is_history_complete


async def test_copy_when_its_head_was_trimmed_then_the_history_is_not_complete(
    tmp_path: Path,
) -> None:
    """The standing says that records before the log start are missing."""
    await write_brokers(tmp_path, events_of(range(5)), 1)
    await trim(tmp_path, 0, 4)
    async with opened_folders(tmp_path, partition_count=1) as source:
        assert len(await segment_counts(await source.now())) == 3
        one = place_at(await source.standing(), 0)
    assert (one.log_start, one.position, one.is_history_complete) == (4, 10, False)


async def test_copy_when_its_tail_is_torn_then_ends_before_it_and_says_so(tmp_path: Path) -> None:
    """The copy ends before a torn batch, with a note."""
    await write_brokers(tmp_path, events_of(range(5)), 1)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    file = active_file(tmp_path, 0)
    whole = file.stat().st_size
    with file.open("r+b") as handle:
        handle.truncate(whole - 5)
    before = fingerprint(tmp_path)
    async with opened_folders(tmp_path, partition_count=1) as source:
        moment = await source.now()
        assert moment.positions == {0: 9}
        (note,) = (await source.standing()).notes
    assert "bytes behind offset 9" in note
    assert "no whole record batch and left out" in note
    assert fingerprint(tmp_path) == before


async def test_copy_when_it_is_damaged_then_is_named_and_another_replica_is_read(
    tmp_path: Path,
) -> None:
    """A copy that is no copy any more is never read in silence; a sound one takes its place."""
    one, other = tmp_path / "one", tmp_path / "other"
    await write_brokers(one, events_of(range(5)), 2)
    shutil.copytree(one, other)
    (one / ".kafka_cleanshutdown").unlink()
    file = active_file(one, 1)
    file.write_bytes(b"\xff" * file.stat().st_size)
    async with opened_folders(one, partition_count=2) as source:
        with pytest.raises(LogDamaged, match=f"{TOPIC}-1"):
            await source.now()
        assert await segment_counts(await source.now([0]))
        standing = await source.standing()
        assert (place_at(standing, 1).state, place_at(standing, 1).why) == ("closed", "damaged")
        assert f"{TOPIC}-1" in place_at(standing, 1).detail
    async with opened_folders(one, other, partition_count=2) as source:
        assert len(await segment_counts(await source.now())) == 5
        (note,) = (await source.standing()).notes
    assert note.startswith("metadata partition 1: a copy is not used: ")
