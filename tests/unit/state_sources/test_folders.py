"""Copied folders as a source: their answers, their gaps, and no change in them."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import ConfigError, InvalidArgument, NotReady, RlmmError
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.assignment import place_of
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.state_sources.folders_source import FoldersSource, fitting_count
from rlmm.state_sources.protocol import StateSourceKind
from tests.support.builders import finished
from tests.support.cli.shared_history import SharedHistory, write_folder
from tests.support.logs.copied_folders import (
    CLUSTER_ID,
    METADATA_TOPIC_ID,
    append_raw,
    copy_partition,
    events_of,
    fingerprint,
    opened_folders,
    place_at,
    segment_counts,
    user_partition,
    write_brokers,
    write_ours,
)

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 3
NUMBERS = range(12)


async def test_folder_of_ours_when_looked_at_then_answers_and_stands_open(tmp_path: Path) -> None:
    """Our own folder has its partition count, so there is no note."""
    await write_ours(tmp_path / "log", events_of(NUMBERS))
    async with opened_folders(tmp_path / "log") as source:
        moment = await source.now()
        assert await segment_counts(moment) == {f"orders-{number}": 1 for number in NUMBERS}
        standing = await source.standing()
    assert (source.kind, source.where) == (StateSourceKind.FOLDERS, str(tmp_path / "log"))
    assert standing.is_caught_up
    assert standing.notes == ()
    assert [one.metadata_partition for one in standing.places] == list(range(COUNT))
    for one in standing.places:
        held = [n for n in NUMBERS if place_of(user_partition(n), COUNT) == one.metadata_partition]
        assert (one.state, one.why, one.lag_records, one.lag_s) == ("open", None, 0, 0.0)
        assert one.log_start == 0
        assert one.position == one.target == one.log_end == 2 * len(held)
        assert one.user_partitions == len(held)
        assert one.segments == {
            "COPY_SEGMENT_STARTED": 0,
            "COPY_SEGMENT_FINISHED": len(held),
            "DELETE_SEGMENT_STARTED": 0,
        }
        assert one.size_bytes == 1024 * len(held)
        assert one.is_history_complete
        assert one.snapshot_age_s is None
    assert standing.identity is not None
    assert standing.identity.partition_count == COUNT


async def test_folder_of_a_broker_when_looked_at_then_its_count_is_found_out_and_noted(
    tmp_path: Path,
) -> None:
    """The count is computed, and a note has the number of user partitions used."""
    await write_brokers(tmp_path, events_of(NUMBERS), 7)
    async with opened_folders(tmp_path) as source:
        assert len(await segment_counts(await source.now())) == len(NUMBERS)
        standing = await source.standing()
    assert standing.identity == LogIdentity(CLUSTER_ID, METADATA_TOPIC_ID, 7)
    (note,) = standing.notes
    assert "taken to have 7 partitions, all 12 user partitions found" in note
    assert "--partition-count" in note


async def test_folders_when_nothing_says_the_count_then_it_is_kafkas_default(
    tmp_path: Path,
) -> None:
    """Without a record the source takes Kafka's default and notes it."""
    await write_brokers(tmp_path, [], places=[4])
    async with opened_folders(tmp_path) as source:
        standing = await source.standing()
    assert len(standing.places) == 50
    assert "taken to have 50 partitions, nothing was found that says it" in standing.notes[0]


async def test_count_when_it_is_said_then_folders_are_held_to_it(tmp_path: Path) -> None:
    """The source refuses a partition count that contradicts the folders."""
    await write_brokers(tmp_path / "broker", events_of(NUMBERS), 7)
    threads = set(threading.enumerate())
    async with opened_folders(tmp_path / "broker", partition_count=7) as source:
        assert (await source.standing()).notes == ()
        assert len(await segment_counts(await source.now())) == len(NUMBERS)
    with pytest.raises(ConfigError, match="partition 6, and --partition-count says 6 partitions"):
        async with opened_folders(tmp_path / "broker", partition_count=6):
            pass
    assert set(threading.enumerate()) <= threads, "what was opened is closed"
    await write_ours(tmp_path / "ours", [], 3)
    with pytest.raises(ConfigError, match="were made with 3 partitions, --partition-count says 4"):
        async with opened_folders(tmp_path / "ours", partition_count=4):
            pass
    with pytest.raises(ConfigError, match="1 to 100000 partitions, got 0"):
        async with opened_folders(tmp_path / "ours", partition_count=0):
            pass


async def test_f44_count_when_the_records_say_another_then_is_refused_with_the_right_one(
    tmp_path: Path,
) -> None:
    """The source refuses a count that the records contradict and names the right one."""
    await write_brokers(tmp_path, events_of(NUMBERS), 7)
    for question in ("now", "standing"):
        async with opened_folders(tmp_path, partition_count=9) as source:
            with pytest.raises(ConfigError, match=r"--partition-count 9 cannot be: .* by 7 all of"):
                await getattr(source, question)()


async def test_count_when_the_topic_was_enlarged_then_it_must_be_said_and_is_noted(
    tmp_path: Path,
) -> None:
    """If no count fits all records the source asks for it, and then notes the misplaced ones."""
    before, after = events_of(range(12)), events_of(range(12, 24))
    await write_brokers(tmp_path, before, 7)
    for place in range(7, 9):
        await write_brokers(tmp_path, [], places=[place])
    await write_brokers(tmp_path, after, 9)
    with pytest.raises(ConfigError, match=r"by no number of partitions .* all 24 user partitions"):
        async with opened_folders(tmp_path):
            pass
    async with opened_folders(tmp_path, partition_count=9) as source:
        standing = await source.standing()
        assert len(await segment_counts(await source.now())) == 24
    (note,) = standing.notes
    misplaced = [
        n for n in range(12) if place_of(user_partition(n), 9) != place_of(user_partition(n), 7)
    ]
    assert f"{len(misplaced)} user partitions have events where brokers do not look" in note
    assert "was the number of partitions changed?" in note


async def test_f39_partitions_when_some_were_not_copied_then_the_others_are_answered(
    tmp_path: Path,
) -> None:
    """One user partition needs one folder; a question about all names the missing ones."""
    await write_brokers(tmp_path / "broker", events_of(NUMBERS))
    here, there = (place_of(user_partition(number), 50) for number in (0, 1))
    folder = copy_partition(tmp_path / "broker", here, tmp_path / "copy")
    async with opened_folders(folder, partition_count=50) as source:
        moment = await source.now([here])
        assert user_partition(0) in (await moment.state(user_partition(0))).partitions()
        with pytest.raises(NotReady, match="was not read"):
            await moment.state(user_partition(1))
        with pytest.raises(
            NotReady, match=f"1 of 50 metadata partitions .* copied: {there};"
        ) as one:
            await source.now([here, there], wait_s=60)
        assert (one.value.reason, one.value.metadata_partition) == ("absent", there)
        with pytest.raises(NotReady, match=r"49 of 50 .* and 39 more;") as every:
            await source.now()
        assert every.value.exit_code == 4
        with pytest.raises(InvalidArgument, match="metadata partition must be 0 to 49, got 50"):
            await source.now([50])
        standing = await source.standing()
    assert not standing.is_caught_up
    assert place_at(standing, here).state == "open"
    missing = place_at(standing, there)
    assert (missing.state, missing.why, missing.position) == ("absent", "absent", None)
    assert missing.user_partitions is None
    assert any("49 of 50 metadata partitions were not copied" in note for note in standing.notes)
    assert any("do not say which cluster" in note for note in standing.notes)
    assert standing.identity is not None
    assert standing.identity.cluster_id == UNKNOWN_CLUSTER_ID


async def test_poison_when_in_a_copy_then_is_counted_and_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A note counts the undecodable records once."""
    await write_brokers(tmp_path, [*events_of(range(2)), finished("nobody")], 1)
    await append_raw(tmp_path, 0, b"\x01\xff", b"poison")
    async with opened_folders(tmp_path, partition_count=1) as source:
        standing = await source.standing()
    one = place_at(standing, 0)
    assert one.rejected == {"unknown-segment": 1}
    assert sum(one.undecodable.values()) == 2
    (note,) = standing.notes
    assert note.startswith("metadata partition 0: 2 of 7 records could not be understood")
    assert note not in caplog.messages
    async with opened_folders(tmp_path, partition_count=1) as source:
        await source.now()
        await source.now()
    assert caplog.messages.count(note) == 1


async def test_count_when_it_stands_on_little_then_answers_say_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A count from few user partitions has a note in answers, else in the status only."""
    for numbers, expected in ((range(1), 1), (NUMBERS, 0)):
        folder = tmp_path / str(len(numbers))
        await write_brokers(folder, events_of(numbers), 50)
        caplog.clear()
        async with opened_folders(folder) as source:
            await source.now()
        assert sum("taken to have 50" in one for one in caplog.messages) == expected
    await write_brokers(tmp_path / "few", [], places=[0, 1, 2])
    one = next(n for n in range(999) if len({place_of(user_partition(n), c) for c in (3, 50)}) == 1)
    await write_brokers(tmp_path / "few", events_of([one]), 3)
    async with opened_folders(tmp_path / "few") as source:
        with pytest.raises(NotReady, match=r"have 50 partitions, .* by that, and by 3 as well"):
            await source.now()


async def test_source_when_folders_have_to_be_read_then_progress_is_told(tmp_path: Path) -> None:
    """Beginning with how much there is in all, ending with all of it."""
    await write_brokers(tmp_path, events_of(NUMBERS), COUNT)
    told: list[tuple[int, int, int]] = []
    progress = lambda *how_far: told.append(how_far)  # noqa: E731
    async with opened_folders(tmp_path, progress=progress) as source:
        assert [place for place, position, _ in told[:COUNT] if position == 0] == [0, 1, 2]
        assert all(told[-1 - n][1] == told[-1 - n][2] for n in range(COUNT))
        read = len(told)
        await source.now(progress=progress)
    assert len(told) == read, "what was read to find out the count is not read again"


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.utime",
    "os.link", "os.symlink", "fcntl.flock", "fcntl.fcntl", "fcntl.lockf",
}  # fmt: skip


class Watched:
    """The file operations of this process below a folder, from the interpreter's audit events."""

    def __init__(self, folder: Path) -> None:
        self.below = str(folder)
        self.changes: list[str] = []
        self.is_on = False
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "open":
            path, _, flags = arguments
            if str(path).startswith(self.below) and isinstance(flags, int) and flags & WRITES:
                self.changes.append(f"open {path} {flags:o}")
        elif event in CHANGES:
            self.changes.append(f"{event} {arguments}")


@pytest.mark.timeout(120)
async def test_folders_when_any_file_is_a_pipe_or_a_device_then_nobody_waits_for_it(
    tmp_path: Path,
) -> None:
    """Of a copied folder only regular files are opened: a pipe would keep its reader for ever."""
    folder = tmp_path / "copy"
    await write_brokers(folder, events_of(NUMBERS), COUNT)
    names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert {"meta.properties", "partition.metadata"} <= {name.name for name in names}
    for number, name in enumerate(sorted(names)):
        for kind in ("pipe", "device"):
            copy = tmp_path / f"{kind}-{number}"
            shutil.copytree(folder, copy)
            (copy / name).unlink()
            if kind == "pipe":
                os.mkfifo(copy / name)
            else:
                (copy / name).symlink_to("/dev/zero")
            refusal = str(copy)
            try:
                async with opened_folders(copy) as source:
                    await source.now()
            except RlmmError as error:
                refusal = str(error)
            assert str(copy) in refusal, (kind, name)


async def test_folders_when_they_may_only_be_read_then_nothing_is_written_made_or_locked(
    tmp_path: Path,
) -> None:
    """A folder that was copied is evidence: not a byte, a time or a lock in it changes."""
    folder = tmp_path / "copy"
    await write_brokers(folder, events_of(NUMBERS), COUNT)
    (folder / ".kafka_cleanshutdown").unlink()  # else little has to be found out
    for file in folder.rglob("*.index"):
        file.unlink()
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    before = fingerprint(folder)
    watched = Watched(folder)
    watched.is_on = True
    try:
        async with opened_folders(folder) as source:
            await source.now()
            await source.standing()
    finally:
        watched.is_on = False
    assert watched.changes == []
    assert fingerprint(folder) == before


async def test_folder_when_a_service_writes_it_then_is_read_beside_it(tmp_path: Path) -> None:
    """The source reads a service's folder up to its end at the opening."""
    log = await FilesLog.open(tmp_path, partition_count=1)
    try:
        first, second = events_of([0])
        await log.append(0, encode(first), timeout_s=5)
        async with opened_folders(tmp_path) as source:
            await log.append(0, encode(second), timeout_s=5)
            assert (await source.now()).positions == {0: 1}
    finally:
        await log.close()


def test_count_when_kafkas_default_fits_then_it_is_taken_before_smaller_ones() -> None:
    """Of several fitting counts the source takes 50, Kafka's default, first."""
    every = map(user_partition, range(40))
    one = next(one for one in every if place_of(one, 50) == place_of(one, 25))
    found = [(one, place_of(one, 50))]
    assert fitting_count(found, 1) == 50
    assert fitting_count(found, 51) not in {None, 50}
    assert fitting_count([], 1) == 50
    assert fitting_count([], 51) == 51


@given(
    ids=st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=12, unique=True),
    count=st.integers(1, 120),
)
def test_count_when_it_is_found_then_everything_fits_and_none_smaller_does(
    ids: list[bytes], count: int
) -> None:
    """Held against the definition: the smallest number that does not contradict any record."""
    partitions = [TopicIdPartition(Uuid(one), "t", number) for number, one in enumerate(ids)]
    found = [(one, place_of(one, count)) for one in partitions]
    least = max(place for _, place in found) + 1

    def fits(number: int) -> bool:
        return all(place_of(one, number) == place for one, place in found)

    told = fitting_count(found, least)
    assert told is not None
    assert fits(told)
    if told != 50:
        assert told == next(number for number in range(least, count + 1) if fits(number))


async def test_standing_when_all_was_read_then_counts_of_the_history_are_those_by_reason(
    tmp_path: Path,
) -> None:
    """Tombstones are counted apart from undecodable records."""
    await write_folder(tmp_path, SharedHistory())
    source = await FoldersSource.open([tmp_path], timeout_s=5.0)
    try:
        standing = await source.standing()
    finally:
        await source.close()
    for place in standing.places:
        apart = place.undecodable.get("tombstone", 0)
        assert place.lost_records == sum(place.undecodable.values()) - apart
        assert place.without_base == place.rejected.get("unknown-segment", 0)
    assert [place.lost_records for place in standing.places] == [4, 0, 0]
    assert [place.without_base for place in standing.places] == [2, 2, 0]
