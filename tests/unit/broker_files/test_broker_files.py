"""Broker files by HTTP: sealed files, byte ranges, settings, last stable offsets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rlmm.broker_files import last_stable_offsets
from rlmm.broker_files.byte_ranges import requested_range
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
    "", ".", "..", "../orders-4/00000000000000000000.log", "/etc/passwd",
    "00000000000000000000.log/", "./00000000000000000000.log", "00000000000000000000.log\0",
    "00000000000000000000.log\n", "0000000000000000000.log", "000000000000000000000.log",
    "+0000000000000000000.log", "\u0660" * 20 + ".log", "99999999999999999999.log",
    "00000000000000000000", "00000000000000000000.LOG", "00000000000000000000.log.deleted",
    "00000000000000000000.log.swap", "00000000000000000000.log.cleaned",
    "00000000000000000000.checkpoint", ".kafka_cleanshutdown", ".lock", "meta.properties",
    "recovery-point-offset-checkpoint", "remote_log_snapshot", "LEADER-EPOCH-CHECKPOINT",
)  # fmt: skip


def readable(stable: int | None) -> set[str]:
    sealed = SealedFiles(NAMES)
    return {name for name in NAMES if not why_not(sealed.needs(name), stable)}


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_name_when_it_is_no_name_of_a_segment_s_file_then_is_never_read(name: str) -> None:
    """Only a name that matches as a whole is read, whatever the folder holds."""
    assert not is_ever_read(name)
    needs = SealedFiles({*NAMES, name}).needs(name)
    assert needs == "files of this kind are not served"
    assert why_not(needs, 10_000)


@pytest.mark.parametrize(
    ("stable", "logs", "snapshots"),
    [
        (None, [], []), (0, [], []), (119, [], []), (120, [0], [120]), (250, [0], [120]),
        (251, [0, 120], [120, 251]), (10_000, [0, 120], [120, 251]),
    ],
)  # fmt: skip
def test_files_when_stable_up_to_an_offset_then_those_of_whole_segments_are_read(
    stable: int | None, logs: list[int], snapshots: list[int]
) -> None:
    """Segments that end at or below the offset are read; the active one and unknown ones never."""
    expected = {f"{offset:020d}.snapshot" for offset in snapshots}
    for base in logs:
        files = {name for name in NAMES if name.startswith(f"{base:020d}.")}
        expected |= files - {f"{base:020d}.snapshot"}
    if stable is not None:
        expected |= {"leader-epoch-checkpoint", "partition.metadata"}
    assert readable(stable) == expected


BEYOND, DELETED, LATE = f"{10**20 - 1}.log", f"{400:020d}.log.deleted", f"{300:020d}"


@pytest.mark.parametrize(
    ("beside", "name", "needs"),
    [
        pytest.param([f"{60:020d}.index"], f"{60:020d}.index", WITHOUT_LOG, id="index alone"),
        pytest.param([BEYOND], f"{251:020d}.log", ACTIVE, id="log beyond all offsets"),
        pytest.param([DELETED, f"{LATE}.index"], f"{251:020d}.log", ACTIVE, id="being deleted"),
        pytest.param([f"{LATE}.log"], f"{251:020d}.log", 300, id="next log"),
    ],
)
def test_file_when_others_are_beside_it_then_only_a_log_ends_its_segment(
    beside: list[str], name: str, needs: int | str
) -> None:
    """Names of other forms and impossible offsets are no part of a log, and end no segment."""
    assert SealedFiles({*NAMES, *beside}).needs(name) == needs


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
    asked = requested_range(header, SIZE)
    assert asked is not None
    assert asked == (start, end, True)
    assert asked.content_range(SIZE) == f"bytes {start}-{end - 1}/100"


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("bytes=100-", 100),
        ("bytes=100-200", 100),
        ("bytes=-0", 100),
        ("bytes=0-", 0),
        ("bytes=-5", 0),
    ],
)
def test_range_when_it_lies_outside_then_cannot_be_answered(header: str, size: int) -> None:
    """A range outside the file, as any of an empty one, cannot be answered."""
    assert requested_range(header, size) is None


@pytest.mark.parametrize("size", [0, SIZE])
@pytest.mark.parametrize(
    "header",
    [
        None, "", "bytes=", "bytes=-", "bytes=5-4", "bytes=1-2,4-5", "bytes=a-b", "bytes=-1-2",
        "bytes=1", "bytes=0x1-2", "lines=1-2", "bytes=1-99999999999999999999", "bytes=1-٢",
    ],
)  # fmt: skip
def test_range_when_it_is_not_understood_then_is_passed_over(header: str | None, size: int) -> None:
    """A range that HTTP does not define is ignored, and the whole file is the answer."""
    assert requested_range(header, size) == (0, size, False)


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
        ({"topics": ("a/b",)}, "topics"),
        ({"without_topics": ("",)}, "without_topics"),
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
    world.now_s += last_stable_offsets.REFUSING_AGE_S
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
    for number in range(last_stable_offsets._KEPT_MAX):
        await world.offsets.of(type(PARTITION)(TOPIC_ID, TOPIC, number))
    world.now_s += AGE_S
    await world.offsets.of(tp("one", 1))
    assert len(world.offsets._kept) == 1
