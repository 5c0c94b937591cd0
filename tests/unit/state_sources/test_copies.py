"""Copied folders: whose they are, which of several is read, and copies that are not whole."""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogDamaged
from rlmm.log.files.log_folder import TOPIC, UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID, keep_identity
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.assignment import place_of
from rlmm.metadata.ids import Uuid
from rlmm.partition_log.registry import LogRegistry
from rlmm.state_sources.copied_folders import find_copies
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
    from collections.abc import Callable
    from pathlib import Path

TOPIC_ID, OTHER_ID = Uuid.of(1, 1), Uuid.of(2, 2)


def make(root: Path, *places: int, topic_id: Uuid | None = TOPIC_ID) -> Path:
    for place in places:
        folder = root / f"{TOPIC}-{place}"
        folder.mkdir(parents=True)
        (folder / "00000000000000000000.log").touch()
        if topic_id is not None:
            (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return root


def of_cluster(root: Path, cluster_id: str) -> Path:
    (root / "meta.properties").write_text(f"version=1\ncluster.id={cluster_id}\nnode.id=1\n")
    return root


def test_copies_when_a_log_folder_is_named_then_all_its_metadata_partitions_are_found(
    tmp_path: Path,
) -> None:
    """Other topics, folders that are being deleted and files are stepped over."""
    root = of_cluster(make(tmp_path, 0, 7), "a-cluster")
    (root / "orders-3").mkdir()
    (root / f"{TOPIC}-9.0123456789abcdef0123456789abcdef-delete").mkdir()
    (root / f"{TOPIC}-8").touch()
    found = find_copies([root])
    assert found.folders == {0: (root / f"{TOPIC}-0",), 7: (root / f"{TOPIC}-7",)}
    assert (found.cluster_id, found.topic_id) == ("a-cluster", TOPIC_ID)
    assert (found.partition_count, found.highest) == (None, 7)


def test_copies_when_folders_of_partitions_are_named_then_only_they_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source finds only the named partitions, and reads the small file above them."""
    root = of_cluster(make(tmp_path, 0, 1, 2), "a-cluster")
    monkeypatch.chdir(root / f"{TOPIC}-2")
    found = find_copies([root / f"{TOPIC}-0", type(root)(f"../{TOPIC}-2")])
    assert sorted(found.folders) == [0, 2]
    assert found.cluster_id == "a-cluster"
    assert sorted(find_copies([type(root)(os.curdir)]).folders) == [2]


def test_copies_when_a_folder_is_named_twice_then_it_is_one(tmp_path: Path) -> None:
    """A folder named twice, directly, by its parent or by a link, is read once."""
    root = make(tmp_path / "data", 0)
    (tmp_path / "link").symlink_to(root)
    found = find_copies([root, root / f"{TOPIC}-0", tmp_path / "link"])
    assert found.folders == {0: (root / f"{TOPIC}-0",)}


def test_copies_when_of_several_brokers_then_each_replica_is_there(tmp_path: Path) -> None:
    """The copies of several brokers together give every replica."""
    one = of_cluster(make(tmp_path / "one", 0, 1), "a-cluster")
    other = make(tmp_path / "other", 1, 2, topic_id=None)
    found = find_copies([one, other])
    assert found.folders[1] == (one / f"{TOPIC}-1", other / f"{TOPIC}-1")
    assert sorted(found.folders) == [0, 1, 2]
    assert (found.cluster_id, found.topic_id) == ("a-cluster", TOPIC_ID)


def test_copies_when_nothing_says_whose_they_are_then_that_is_unknown(tmp_path: Path) -> None:
    """Folders alone are enough to be read."""
    found = find_copies([make(tmp_path, 3, topic_id=None)])
    assert (found.cluster_id, found.topic_id) == (UNKNOWN_CLUSTER_ID, UNKNOWN_TOPIC_ID)


def test_copies_when_the_folder_is_ours_then_it_says_the_partition_count(tmp_path: Path) -> None:
    """Which no broker writes down."""
    keep_identity(make(tmp_path, 0), LogIdentity("a-cluster", TOPIC_ID, 12))
    assert find_copies([tmp_path]).partition_count == 12


def differ_by_cluster(tmp_path: Path) -> list[Path]:
    one, other = make(tmp_path / "one", 0), make(tmp_path / "other", 1)
    return [of_cluster(one, "a-cluster"), of_cluster(other, "b-cluster")]


def differ_by_topic(tmp_path: Path) -> list[Path]:
    return [make(tmp_path / "one", 0), make(tmp_path / "other", 1, topic_id=OTHER_ID)]


def differ_by_count(tmp_path: Path) -> list[Path]:
    folders = []
    for name, count in (("one", 3), ("other", 5)):
        folders.append(make(tmp_path / name, 0))
        keep_identity(folders[-1], LogIdentity("a-cluster", TOPIC_ID, count))
    return folders


DIFFERENT: dict[str, tuple[Callable[[Path], list[Path]], str]] = {
    "cluster": (differ_by_cluster, r"other is of cluster id b-cluster, .*one of a-cluster"),
    "topic": (differ_by_topic, rf"other/.*-1 is of topic id {OTHER_ID}, .*one/.*-0 of {TOPIC_ID}"),
    "count": (differ_by_count, r"other is of partition count 5, .*one of 3"),
}


@pytest.mark.parametrize(("make_them", "expected"), DIFFERENT.values(), ids=DIFFERENT)
def test_copies_when_they_are_not_of_one_topic_then_are_refused(
    tmp_path: Path, make_them: Callable[[Path], list[Path]], expected: str
) -> None:
    """The refusal names both folders and their topics."""
    with pytest.raises(ConfigError, match=expected) as caught:
        find_copies(make_them(tmp_path))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


REFUSED: dict[str, tuple[str, str, str]] = {
    "absent": ("", "nobody", "nobody does not exist$"),
    "file": ("dump.txt", "dump.txt", r"dump\.txt is no folder: name a folder that holds .*-N"),
    "empty": ("empty/", "empty", f"holds no folder {TOPIC}-N: nothing to read, it is empty$"),
    "something else": ("photos/holiday.jpg", "photos", r"among its 1 entries, e\.g\. holiday"),
    "other topics": ("data/orders-0/", "data", r"among its 1 entries, e\.g\. orders-0"),
    "renamed": ("partition3/0.log", "partition3", "of one partition, which its name has to say"),
    "our data folder": (f"d/log/{TOPIC}-0/0.log", "d", "nothing to read; name .*d/log$"),
}


@pytest.mark.parametrize(("made", "named", "expected"), REFUSED.values(), ids=REFUSED)
def test_copies_when_it_is_no_folder_of_the_topic_then_one_line_says_what_it_is(
    tmp_path: Path, made: str, named: str, expected: str
) -> None:
    """One line names the kind of the wrong folder and, if known, the folder to use."""
    file = tmp_path / made
    if made.endswith("/"):
        file.mkdir(parents=True)
    elif made:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(file.name.replace("0.log", f"{0:020d}.log")).touch()
    with pytest.raises(ConfigError, match=expected) as caught:
        find_copies([tmp_path / named])
    assert str(tmp_path / named) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_copies_when_a_folder_cannot_be_read_then_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights that are missing are named by the system's own words."""

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    make(tmp_path, 0)
    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    with pytest.raises(ConfigError, match="cannot be read: Permission denied"):
        find_copies([tmp_path])


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
