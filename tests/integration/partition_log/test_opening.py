"""Opening a folder: after a clean end, a crash or damage, without its indexes, and a broker's."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused, LogDamaged
from rlmm.partition_log.checkpoints import format_partition_metadata
from rlmm.partition_log.registry import LogRegistry
from rlmm.partition_log.settings import SyncPolicy
from tests.support.logs.failing_disks import FaultyDisk
from tests.support.logs.partition_logs import (
    FAST,
    FIRST_MS,
    TOPIC,
    TOPIC_ID,
    batch,
    copied,
    log_files,
    log_in,
    names_below,
    offset_at,
    open_log,
    partition_folder,
    picture,
    stored_log,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SMALL = replace(FAST, sync=SyncPolicy.EACH_GROUP, segment_bytes=1_000)
RECORDS = {n: b"%d" % n + bytes(50) for n in range(40)}
MARK = ".kafka_cleanshutdown"


async def made(root: Path) -> Path:
    async with log_in(root, SMALL) as log:
        for n, value in RECORDS.items():
            await log.append(batch(value, timestamp_ms=FIRST_MS + n), leader_epoch=n // 30)
    return root


async def made_and_crashed(root: Path, to: Path, *, noted: bool = True) -> Path:
    registry, log = await open_log(root, SMALL)
    async with registry:
        for n, value in RECORDS.items():
            await log.append(batch(value, timestamp_ms=FIRST_MS + n), leader_epoch=n // 30)
        if noted:
            await registry.checkpoint()
        return copied(root, to)


@pytest.fixture
async def crashed(tmp_path: Path) -> Path:
    return await made_and_crashed(tmp_path / "a", tmp_path / "b")


async def test_log_when_closed_cleanly_then_opens_without_a_scan(tmp_path: Path) -> None:
    """After a clean stop the log scans, cuts, rebuilds and changes nothing."""
    before = picture(partition_folder(await made(tmp_path)))
    async with stored_log(tmp_path, SMALL) as log:
        assert log.recovered.was_clean
        assert (log.recovered.scanned_bytes, log.recovered.rebuilt_files) == (0, ())
        assert await values_of(log) == RECORDS
        assert (log.leader_epochs, log.topic_id) == (((0, 0), (1, 30)), TOPIC_ID)
    assert picture(partition_folder(tmp_path)) == before
    async with stored_log(tmp_path, SMALL) as log:
        assert (await log.append(batch(b"x"), leader_epoch=1)).base_offset == 40


async def test_clean_end_when_not_all_is_recovered_or_closed_then_is_unmarked(
    crashed: Path,
) -> None:
    """The mark of a clean end is absent while the log is open and until all is recovered."""
    async with await LogRegistry.open(crashed, SMALL):
        pass
    assert not (crashed / MARK).exists()
    for was_clean in (False, True):
        async with await LogRegistry.open(crashed, SMALL) as registry:
            await registry.partition(TOPIC, 0)
            assert registry.was_clean == was_clean
            assert not (crashed / MARK).exists()
        assert (crashed / MARK).exists()


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not-noted"])
async def test_log_when_crashed_then_only_the_end_is_scanned(tmp_path: Path, noted: bool) -> None:
    """After a crash the scan begins where the recovery point was noted last, at least at a roll."""
    root = await made_and_crashed(tmp_path / "a", tmp_path / "b", noted=noted)
    async with stored_log(root, SMALL) as log:
        files = log_files(root)[-1:] if noted else log_files(root)[1:]
        assert log.recovered.scanned_bytes == sum(file.stat().st_size for file in files)
        assert (log.recovered.cut_bytes, log.recovered.was_clean) == (0, False)
        assert await values_of(log) == RECORDS
        assert log.leader_epochs == ((0, 0), (1, 30))


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\0" * 5_000, id="zeros"),
        pytest.param(b"\xff" * 100, id="garbage"),
        pytest.param(batch(b"torn")[:-1], id="cut-off"),
        pytest.param(b"\0", id="one-byte"),
    ],
)
async def test_tail_when_torn_then_is_cut_and_the_log_goes_on(crashed: Path, tail: bytes) -> None:
    """A torn batch at the end is removed from the file, and every synced batch is there."""
    size = log_files(crashed)[-1].stat().st_size
    with log_files(crashed)[-1].open("ab") as file:
        file.write(tail)
    async with stored_log(crashed, SMALL) as log:
        assert log.recovered.cut_bytes == len(tail)
        assert log_files(crashed)[-1].stat().st_size == size
        assert await values_of(log) == RECORDS
        assert (await log.append(batch(b"x"), leader_epoch=1)).base_offset == 40


async def test_segment_when_empty_at_the_end_then_is_the_active_one(crashed: Path) -> None:
    """After a crash behind a roll the log goes on in the empty segment."""
    (partition_folder(crashed) / f"{40:020d}.log").touch()
    async with stored_log(crashed, SMALL) as log:
        assert await values_of(log) == RECORDS
        await log.append(batch(b"x"), leader_epoch=1)
        assert log_files(crashed)[-1].stat().st_size > 0


async def test_segments_when_behind_a_torn_one_then_are_removed(crashed: Path) -> None:
    """The log ends at the first torn batch, and later segments are removed."""
    (crashed / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\nevents 0 8\n")
    second = log_files(crashed)[1]
    second.write_bytes(second.read_bytes()[:-1])
    last_whole = int(log_files(crashed)[2].stem) - 1
    async with stored_log(crashed, SMALL) as log:
        assert log.next_offset == last_whole
        assert log.recovered.removed_segments > 1
        assert await values_of(log) == {n: RECORDS[n] for n in range(last_whole)}
        assert [path.name for path in log_files(crashed)] == [f"{0:020d}.log", second.name]
        names = {path.stem for path in partition_folder(crashed).glob("*.index")}
        assert names == {path.stem for path in log_files(crashed)}


def without(path: Path) -> None:
    path.unlink()


def odd(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def shuffled(path: Path) -> None:
    path.write_bytes(path.read_bytes()[::-1])


@pytest.mark.parametrize("damage", [without, odd, shuffled])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
async def test_index_when_missing_or_wrong_after_a_crash_then_is_rebuilt_and_written_back(
    crashed: Path, damage: Callable[[Path], None], suffix: str
) -> None:
    """After a crash a missing or wrong index is rebuilt on disk, byte for byte."""
    path = log_files(crashed)[1].with_suffix(suffix)
    good = path.read_bytes()
    assert len(good) > 12
    damage(path)
    async with stored_log(crashed, SMALL) as log:
        assert path.read_bytes() == good
        assert log_files(crashed)[1].with_suffix(".index").name in log.recovered.rebuilt_files
        assert await values_of(log) == RECORDS


@pytest.mark.parametrize("damage", [without, odd])
async def test_index_when_missing_after_a_clean_end_then_is_rebuilt_and_written_back(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """After a clean stop missing indexes are rebuilt, and one without its log is removed."""
    await made(tmp_path)
    paths = [log_files(tmp_path)[n].with_suffix(".index") for n in (1, -1)]
    good = [path.read_bytes() for path in paths]
    for path in paths:
        damage(path)
    orphan = partition_folder(tmp_path) / f"{90:020d}.index"
    orphan.write_bytes(bytes(8))
    async with stored_log(tmp_path, SMALL) as log:
        assert await values_of(log) == RECORDS
        assert [path.read_bytes() for path in paths] == good
    assert not orphan.exists()


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean-end", "crash"])
@pytest.mark.parametrize("number", [1, -1], ids=["closed", "active"])
async def test_time_index_when_empty_then_hides_no_record_from_a_look_up_by_time(
    tmp_path: Path, number: int, is_clean: bool
) -> None:
    """An empty time index after a loss of power hides no record from a look-up by time."""
    root = tmp_path / "b"
    await (made(root) if is_clean else made_and_crashed(tmp_path / "a", root))
    path = log_files(root)[number].with_suffix(".timeindex")
    good = path.read_bytes() if path.exists() else b""
    path.write_bytes(b"")
    async with stored_log(root, SMALL) as log:
        for n in RECORDS:
            assert await offset_at(log, FIRST_MS + n) == n
        assert path.read_bytes().startswith(good)
        assert path.stat().st_size > 0


@pytest.mark.parametrize("damage", [without, odd, shuffled])
async def test_leader_epochs_when_their_file_is_lost_then_are_read_from_the_log(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """The check point of leader epochs is derived, too, and written back."""
    await made(tmp_path)
    path = partition_folder(tmp_path) / "leader-epoch-checkpoint"
    good = path.read_bytes()
    path.write_bytes(path.read_bytes().replace(b"1 30", b"1 3O"))
    damage(path)
    async with stored_log(tmp_path, SMALL) as log:
        assert log.leader_epochs == ((0, 0), (1, 30))
        assert path.read_bytes() == good


# a broker's folders


def brokers_folder(root: Path) -> dict[int, int]:
    """Return a folder in a broker's form, with a broker's record sets: partition to next offset."""
    recorded = json.loads((files("rlmm_demo") / "data" / "recorded_history.json").read_text())
    (root / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=1\n")
    points = {}
    for one in recorded["partitions"]:
        folder = root / f"{recorded['topic']}-{one['partition']}"
        folder.mkdir()
        content = base64.b64decode(one["record_set_base64"])
        (folder / f"{0:020d}.log").write_bytes(content)
        (folder / f"{0:020d}.index").write_bytes(b"")
        (folder / f"{0:020d}.timeindex").write_bytes(b"")
        (folder / "partition.metadata").write_bytes(format_partition_metadata(TOPIC_ID))
        (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n" if content else b"0\n0\n")
        points[one["partition"]] = len(content)
    return points


@pytest.mark.parametrize("preallocated", [False, True], ids=["trimmed", "preallocated"])
async def test_folder_when_a_brokers_then_is_unchanged(tmp_path: Path, preallocated: bool) -> None:
    """Real record sets are read as they are; no file, time or lock of the folder changes."""
    sizes = brokers_folder(tmp_path)
    if preallocated:
        for path in names_below(tmp_path, "*.index"):
            path.write_bytes(bytes(4_096))
    before, disk = picture(tmp_path), FaultyDisk()
    async with await LogRegistry.open(tmp_path, FAST, read_only=True, disk=disk) as registry:
        for name in await registry.topic_partitions():
            log = await registry.partition(*name)
            record_set = await log.read(0)
            assert (b"" if record_set is None else record_set.data) == (
                next((tmp_path / str(name)).glob("*.log")).read_bytes()
            )
            assert len(await values_of(log)) == log.next_offset
            await log.offset_for_time(0)
            with pytest.raises(AppendRefused, match="reading only"):
                await log.append(batch(b"x"))
        await registry.tick()
        await registry.checkpoint()
    assert sum(1 for size in sizes.values() if size) >= 3
    assert picture(tmp_path) == before
    assert set(disk.calls) == {"open", "read"}


async def test_folder_when_read_only_with_a_torn_tail_then_ends_before_it(crashed: Path) -> None:
    """A copy that was made while its owner wrote is read up to its last whole batch."""
    with log_files(crashed)[-1].open("ab") as file:
        file.write(batch(b"torn")[:-1])
    for path in partition_folder(crashed).glob("*index"):
        path.unlink()
    before = picture(crashed)
    async with stored_log(crashed, SMALL, read_only=True) as log:
        assert await values_of(log) == RECORDS
        assert [await log.read(n) is None for n in (39, 40)] == [False, True]
        assert await offset_at(log, FIRST_MS + 33) == 33
    assert picture(crashed) == before


async def test_folder_when_only_parts_were_copied_then_they_are_read(tmp_path: Path) -> None:
    """The folder of one partition alone is readable."""
    await made(tmp_path / "a")
    target = tmp_path / "b" / f"{TOPIC}-0"
    target.mkdir(parents=True)
    for path in log_files(tmp_path / "a"):
        (target / path.name).write_bytes(path.read_bytes())
    async with stored_log(tmp_path / "b", SMALL, read_only=True) as log:
        assert await values_of(log) == RECORDS
        assert log.topic_id is None
        assert log.leader_epochs == ((0, 0), (1, 30))


# damage that recovery must not cut


@pytest.mark.parametrize("number", [-1, 1], ids=["active-segment", "closed-segment"])
async def test_damage_when_below_the_recovery_point_then_offline_and_nothing_is_changed(
    crashed: Path, number: int
) -> None:
    """Damage below the recovery point takes the partition offline and cuts no byte."""
    path = log_files(crashed)[number]
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    path.with_suffix(".index").unlink(missing_ok=True)
    before = {name: kept for name, kept in picture(crashed).items() if name.endswith(".log")}
    async with await LogRegistry.open(crashed, SMALL) as registry:
        for _ in range(2):
            with pytest.raises(LogDamaged, match=rf"{path.name}.*crc-mismatch"):
                await registry.partition(TOPIC, 0)
        assert registry.statistics().opened == 1
        other = await registry.create(TOPIC, 1, TOPIC_ID)
        await other.append(batch(b"the others go on"))
    assert not (crashed / MARK).exists()
    assert {name: kept for name, kept in picture(crashed).items() if name in before} == before


async def test_log_when_its_synced_end_is_lost_then_is_offline_until_repaired(
    crashed: Path,
) -> None:
    """A log that ends below its synced end is offline; right bytes and reopening recover it."""
    path = log_files(crashed)[-1]
    good = path.read_bytes()
    path.write_bytes(b"")
    async with await LogRegistry.open(crashed, SMALL) as registry:
        with pytest.raises(LogDamaged, match="was synced up to 40"):
            await registry.partition(TOPIC, 0)
    path.write_bytes(bytes(len(good)))
    async with await LogRegistry.open(crashed, SMALL) as registry:
        with pytest.raises(LogDamaged):
            await registry.partition(TOPIC, 0)
        path.write_bytes(good)
        assert await values_of(await registry.reopen(TOPIC, 0)) == RECORDS
        assert registry.statistics().offline == 0


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]
)
async def test_check_point_when_unreadable_then_is_told_and_the_log_opens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The log opens without a damaged check point, and a warning names the file."""
    await made(tmp_path)
    (tmp_path / name).write_bytes(b"0\n1\nevents 0 forty\n")
    async with await LogRegistry.open(tmp_path, SMALL) as registry:
        assert await values_of(await registry.partition(TOPIC, 0)) == RECORDS
    assert f"{name}: taken as missing: no offset in events 0 forty" in caplog.text


async def test_compaction_when_unfinished_then_is_left_to_a_broker(tmp_path: Path) -> None:
    """A partition with a broker's unfinished compaction is refused and left unchanged."""
    await made(tmp_path)
    (partition_folder(tmp_path) / f"{0:020d}.log.swap").touch()
    async with await LogRegistry.open(tmp_path, SMALL) as registry:
        with pytest.raises(LogDamaged, match="compaction is unfinished"):
            await registry.partition(TOPIC, 0)
