"""Broker files by HTTP: sealed files, byte ranges, settings, last stable offsets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rlmm.broker_files import last_stable_offsets as stable
from rlmm.broker_files.byte_ranges import bytes_asked
from rlmm.broker_files.last_stable_offsets import CachedStableOffsets, KnownStableOffset
from rlmm.broker_files.sealed_files import WITHOUT_LOG, SealedFiles, is_ever_read, why_not
from rlmm.broker_files.statistics import BrokerFilesCounters
from rlmm.config.loading import load
from rlmm.errors import ConfigError, LogUnavailable
from rlmm.http.settings import BrokerLogSettings
from tests.support.builders import tp
from tests.support.engines import until
from tests.support.partitions.broker_folders import PARTITION, TOPIC, TOPIC_ID, StableOffsets
from tests.support.partitions.segments import example_partition

NAMES = frozenset({*example_partition().contents, "partition.metadata"})
"""Segments from 0, 120 and 251 on; the last is the active one."""
ACTIVE = "its segment is the active one"
ODD = (
    "",
    ".",
    "..",
    "../orders-4/00000000000000000000.log",
    "/etc/passwd",
    "00000000000000000000.log/",
    "./00000000000000000000.log",
    "00000000000000000000.log\0",
    "00000000000000000000.log\n",
    "0000000000000000000.log",
    "000000000000000000000.log",
    "+0000000000000000000.log",
    "\u0660" * 20 + ".log",
    "99999999999999999999.log",
    "00000000000000000000",
    "00000000000000000000.LOG",
    "00000000000000000000.log.deleted",
    "00000000000000000000.log.swap",
    "00000000000000000000.log.cleaned",
    "00000000000000000000.checkpoint",
    ".kafka_cleanshutdown",
    ".lock",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "remote_log_snapshot",
    "LEADER-EPOCH-CHECKPOINT",
)


def readable(stable: int | None, names: frozenset[str] = NAMES) -> set[str]:
    sealed = SealedFiles(names)
    return {name for name in names if not why_not(sealed.needs(name), stable)}


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_name_when_it_is_no_name_of_a_segment_s_file_then_is_never_read(name: str) -> None:
    """Only a name that matches as a whole is read, whatever the folder holds."""
    assert not is_ever_read(name)
    needs = SealedFiles({*NAMES, name}).needs(name)
    assert needs == "files of this kind are not served"
    assert why_not(needs, 10_000)


def test_files_when_all_is_stable_then_those_of_rolled_segments_are_read() -> None:
    """The active segment is never read; the snapshot at its beginning is that of the one before."""
    assert readable(10_000) == {
        name for name in NAMES if not name.startswith(f"{251:020d}.") or name.endswith(".snapshot")
    }


@pytest.mark.parametrize(
    ("stable", "expected"),
    [(None, set()), (0, set()), (119, set()), (120, {0}), (250, {0}), (251, {0, 120})],
)
def test_segment_when_it_ends_above_the_last_stable_offset_then_is_not_read(
    stable: int | None, expected: set[int]
) -> None:
    """A segment ends where the next one begins, and all of it has to be stable."""
    logs = {name for name in readable(stable) if name.endswith(".log")}
    assert logs == {f"{base:020d}.log" for base in expected}


@pytest.mark.parametrize(
    ("stable", "expected"), [(None, set()), (119, set()), (120, {120}), (251, {120, 251})]
)
def test_snapshot_when_it_is_at_or_below_the_last_stable_offset_then_is_read(
    stable: int | None, expected: set[int]
) -> None:
    """A producer snapshot is readable when its offset is at most the last stable offset."""
    snapshots = {name for name in readable(stable) if name.endswith(".snapshot")}
    assert snapshots == {f"{offset:020d}.snapshot" for offset in expected}


def test_small_files_when_the_last_stable_offset_is_not_known_then_are_not_read() -> None:
    """Small files are not readable while the last stable offset is unknown."""
    small = {"leader-epoch-checkpoint", "partition.metadata"}
    assert small <= readable(0)
    assert readable(None) == set()


def test_index_when_its_log_is_not_there_then_is_not_read() -> None:
    """An index without its log is not readable, because only the log shows the segment's end."""
    name = f"{60:020d}.index"
    assert SealedFiles({*NAMES, name}).needs(name) == WITHOUT_LOG


def test_segment_when_a_log_beyond_all_offsets_follows_then_is_still_the_active_one() -> None:
    """A file with an impossible offset does not seal the segment before it."""
    assert SealedFiles({*NAMES, f"{10**20 - 1}.log"}).needs(f"{251:020d}.log") == ACTIVE


def test_segments_when_others_are_being_deleted_then_end_where_the_next_log_begins() -> None:
    """Names of other forms are no part of a log, and end no segment."""
    names = frozenset({*NAMES, f"{400:020d}.log.deleted", f"{300:020d}.index"})
    assert f"{251:020d}.log" not in readable(10_000, names)
    assert SealedFiles({*NAMES, f"{300:020d}.log"}).needs(f"{251:020d}.log") == 300


SIZE = 100


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=0-100", 0, 100),
        ("bytes=10-19", 10, 20),
        ("bytes=99-", 99, 100),
        ("bytes=0-", 0, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-100", 0, 100),
        ("bytes=-9999999999999999999", 0, 100),
        (" bytes=5 - 6 ", 5, 7),
    ],
)
def test_range_when_in_the_file_then_is_that_part(header: str, start: int, end: int) -> None:
    """A range beyond the end of the file ends at its end."""
    asked = bytes_asked(header, SIZE)
    assert asked is not None
    assert asked == (start, end, True)
    assert asked.content_range(SIZE) == f"bytes {start}-{end - 1}/100"


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_range_when_it_lies_outside_then_cannot_be_answered(header: str) -> None:
    """A range outside the file cannot be answered."""
    assert bytes_asked(header, SIZE) is None


def test_range_when_the_file_is_empty_then_cannot_be_answered() -> None:
    """An empty file has no first byte; all of it is nothing."""
    assert bytes_asked("bytes=0-", 0) is None
    assert bytes_asked("bytes=-5", 0) is None
    assert bytes_asked(None, 0) == (0, 0, False)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "bytes=",
        "bytes=-",
        "bytes=5-4",
        "bytes=1-2,4-5",
        "bytes=a-b",
        "bytes=-1-2",
        "bytes=1",
        "bytes=0x1-2",
        "lines=1-2",
        "bytes=1-99999999999999999999",
        "bytes=1-٢",
    ],
)
def test_range_when_it_is_not_understood_then_is_passed_over(header: str | None) -> None:
    """A range that HTTP does not define is ignored, and the whole file is the answer."""
    assert bytes_asked(header, SIZE) == (0, SIZE, False)


FOLDER = {"broker_log_folders": "/var/kafka-logs"}
SERVERS = {"broker_log_bootstrap_servers": "broker:9092"}


@pytest.mark.parametrize(
    "name", ["stable_age_ms_max", "ask_timeout_ms", "reads_max", "read_timeout_ms"]
)
@pytest.mark.parametrize("value", [0, -1, 2**31, True])
def test_number_when_it_cannot_work_then_it_is_refused_by_name(name: str, value: int) -> None:
    """The settings refuse an impossible number by key."""
    with pytest.raises(ConfigError, match=rf"broker_log\.{name}"):
        BrokerLogSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"folders": ("kafka-logs",)}, "folders"),
        ({"folders": ("",)}, "folders"),
        ({"folders": ("/a\0b",)}, "folders"),
        ({"folders": ("/a", "/a")}, "folders"),
        ({"bootstrap_servers": ("broker",)}, "bootstrap_servers"),
        ({"command_config": "client.properties"}, "command_config"),
    ],
)
def test_setting_when_malformed_then_refused_by_name(wrong: dict[str, Any], key: str) -> None:
    """The settings refuse a relative folder and a repeated one by key."""
    with pytest.raises(ConfigError, match=rf"broker_log\.{key} must"):
        BrokerLogSettings(**wrong)


def test_folders_when_nothing_is_said_then_none_is_served() -> None:
    """By default the service serves no log folder."""
    assert load().config.broker_log.folders == ()


def test_folders_when_nobody_can_tell_what_is_stable_then_are_refused() -> None:
    """The settings refuse log folders without a cluster that knows last stable offsets."""
    with pytest.raises(ConfigError, match=r"--broker-log-folders .* broker_log\.bootstrap_servers"):
        load(FOLDER)
    assert load({**FOLDER, **SERVERS}).config.broker_log.bootstrap_servers == ("broker:9092",)
    of_log = load({**FOLDER, "kafka_bootstrap_servers": "broker:9092"}).config
    assert of_log.broker_log.bootstrap_servers == ()


def test_folders_when_there_is_no_http_then_are_refused() -> None:
    """The settings refuse log folders without HTTP."""
    with pytest.raises(ConfigError, match=r"http\.listen is none"):
        load({**FOLDER, **SERVERS, "http_listen": "none"})


AGE_S = 5.0


class World:
    """A clock, a cluster that answers, and the memory of its answers."""

    def __init__(self, told: int | LogUnavailable) -> None:
        self.now_s = 100.0
        self.figures = BrokerFilesCounters()
        self.teller = StableOffsets(told)
        self.offsets = CachedStableOffsets(self.teller, AGE_S, self.figures, lambda: self.now_s)


async def test_offset_when_it_was_told_then_is_not_asked_for_until_it_is_old() -> None:
    """One request serves all reads of a partition for that time."""
    world = World(50)
    for after_s in (0.0, 1.0, AGE_S - 1.1):
        world.now_s += after_s
        assert await world.offsets.of(PARTITION) == KnownStableOffset(50)
    assert world.teller.asked == [PARTITION]
    world.teller.told = 60
    world.now_s += 1.1
    assert await world.offsets.of(PARTITION) == KnownStableOffset(60)
    assert world.figures.questions == 2


async def test_offset_when_it_would_refuse_then_is_asked_for_anew() -> None:
    """A cached offset that would refuse is requested anew, because the offset only rises."""
    world = World(50)
    assert await world.offsets.of(PARTITION, 40) == KnownStableOffset(50)
    world.teller.told = 60
    world.now_s += stable.REFUSING_AGE_S
    assert await world.offsets.of(PARTITION, 50) == KnownStableOffset(50)
    assert await world.offsets.of(PARTITION, 51) == KnownStableOffset(60)
    # Who asks for what is far from stable asks the cluster no more often than that.
    assert [(await world.offsets.of(PARTITION, 99)).offset for _ in range(9)] == [60] * 9
    assert world.figures.questions == 2


async def test_offset_when_nobody_tells_then_is_not_known_and_not_asked_at_once() -> None:
    """Without an answer the old offset is dropped, and the reason is kept as long as an answer."""
    world = World(50)
    await world.offsets.of(PARTITION)
    world.now_s += AGE_S
    world.teller.told = trouble = LogUnavailable("no leader")
    for _ in range(3):
        assert await world.offsets.of(PARTITION, 10) == KnownStableOffset(None, trouble)
    assert (world.figures.questions, world.figures.questions_failed) == (2, 1)
    world.now_s += AGE_S
    world.teller.told = 70
    assert await world.offsets.of(PARTITION) == KnownStableOffset(70)


async def test_question_when_many_wait_for_it_then_is_asked_once() -> None:
    """Several waiters share one request, and a cancelled one does not end it for the others."""
    world = World(50)
    world.teller.answers.clear()
    waiting = [asyncio.create_task(world.offsets.of(PARTITION, 60)) for _ in range(5)]
    await until(lambda: len(world.teller.asked) == 1)
    other = asyncio.create_task(world.offsets.of(tp("others", 1)))
    await until(lambda: len(world.teller.asked) == 2)
    waiting[0].cancel()
    await until(lambda: len(world.teller.asked) == 3)
    world.teller.answers.set()
    assert await asyncio.gather(*waiting[1:], other) == [KnownStableOffset(50)] * 5
    assert len(world.teller.asked) == 3


async def test_partitions_when_very_many_then_old_ones_are_forgotten(monkeypatch: object) -> None:
    """Memory is bounded by those that are asked for now."""
    del monkeypatch
    world = World(1)
    for number in range(stable._KEPT_MAX):
        await world.offsets.of(type(PARTITION)(TOPIC_ID, TOPIC, number))
    world.now_s += AGE_S
    await world.offsets.of(tp("one", 1))
    assert len(world.offsets._kept) == 1
