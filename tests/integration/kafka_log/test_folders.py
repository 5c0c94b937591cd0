"""Folders of partitions of us and of Kafka: each reads the other's files unchanged."""

from __future__ import annotations

import asyncio
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.metadata.encoding import encode
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.partition_log.settings import LogSettings
from tests.conformance.log.under_test import ANSWER_S, values_of
from tests.kafka.clients import consume, produce
from tests.kafka.node import CLEAN_STATUS
from tests.kafka.process import ProcessOutput, run_java
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import DUMP_LOG
from tests.support.builders import delete_finished, delete_started, finished, segment_id, started
from tests.support.engine.chosen import ChosenShard
from tests.support.kafka.kafka_logs import read_all
from tests.support.logs.copied_folders import fingerprint
from tests.support.records.console_text import as_kafka_prints

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.log.protocol import LogIdentity, MetadataLog
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata
    from rlmm.records.record_set import RecordSet
    from tests.integration.kafka_log.conftest import OpenLog
    from tests.kafka.fixtures import FreshKafka
    from tests.kafka.jars import Jars

SMALL = LogSettings(segment_bytes=8_192, index_interval_bytes=500)
"""Several segments, and several entries in the index of each."""
COPIES = 60
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
PAYLOAD = re.compile(r"\| offset: (?P<offset>\d+) .*? payload: (?P<text>.*)")
ABOUT_LOGS = re.compile(rf"{TOPIC}|\.log\.|\.storage\.|LogManager|LogLoader|UnifiedLog|LogDir")
"""Lines of a broker's log about folders, or about ours."""
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(60)]
SEGMENTS = 3
"""Two full ones of 28 records, and one that is rolled because it is old."""


def history(partition: int) -> list[SegmentMetadata | SegmentUpdate]:
    user = TopicIdPartition(Uuid.of(7, 7), "ours", partition)
    events: list[SegmentMetadata | SegmentUpdate] = []
    for number in range(COPIES):
        segment, start = segment_id(number + 1, user), number * 100
        at_ms = 1_795_000_000_000 + number
        events.append(
            started(segment, start, start + 99, {0: start, 3: start + 50}, event_timestamp_ms=at_ms)
        )
        events.append(finished(segment, event_timestamp_ms=at_ms))
    return [*events, delete_started(segment_id(1, user)), delete_finished(segment_id(1, user))]


async def write_folder(folder: Path) -> dict[int, list[SegmentMetadata | SegmentUpdate]]:
    histories = {partition: history(partition) for partition in range(METADATA_PARTITIONS)}
    log = await FilesLog.open(folder, partition_count=METADATA_PARTITIONS, settings=SMALL)

    async def write(partition: int) -> None:
        for event in histories[partition]:
            await log.append(partition, encode(event), timeout_s=ANSWER_S)

    try:
        await asyncio.gather(*map(write, histories))
    finally:
        await log.close()
    return histories


async def read_partitions(log: MetadataLog) -> dict[int, list[RecordSet]]:
    return {partition: await read_all(log, partition) for partition in range(METADATA_PARTITIONS)}


def joined(record_sets: dict[int, list[RecordSet]]) -> dict[int, bytes]:
    return {at: b"".join(one.data for one in sets) for at, sets in record_sets.items()}


def partition_files(folder: Path, partition: int, pattern: str = "*") -> list[Path]:
    return sorted((folder / f"{TOPIC}-{partition}").glob(pattern))


def printed_by_kafka(dump: str) -> list[tuple[int, str]]:
    return [(int(found["offset"]), found["text"]) for found in PAYLOAD.finditer(dump)]


def expected_words(logs: list[Path]) -> list[str]:
    """Return the tool's output for sound segments, for which it looks up offset -1."""
    return [
        f"Non-consecutive offsets in {log}\n  -1 is followed by {int(log.stem)}\n"
        for log in logs
        if int(log.stem) > 0
    ]


async def test_folder_of_ours_when_kafkas_tool_dumps_it_then_finds_no_fault(
    kafka_jars: Jars, tmp_path: Path
) -> None:
    """Kafka's tool finds no fault in our segments and indexes, and decodes all events."""
    histories = await write_folder(tmp_path / "log")
    logs, indexes = (
        [file for at in histories for file in partition_files(tmp_path / "log", at, pattern)]
        for pattern in ("*.log", "*index")
    )
    assert len(logs) >= 3 * METADATA_PARTITIONS
    assert len(indexes) == 2 * len(logs)

    def dumped(how: str, files: list[Path]) -> ProcessOutput:
        names = ",".join(map(str, files))
        return run_java(kafka_jars, DUMP_LOG, "--deep-iteration", how, "--files", names)

    dump = await asyncio.to_thread(dumped, "--remote-log-metadata-decoder", logs)
    assert printed_by_kafka(dump.out) == [
        (offset, as_kafka_prints(event))
        for events in histories.values()
        for offset, event in enumerate(events)
    ]
    said_of_logs = re.findall(r"\S.*\n(?:  .*\n)*", dump.err)
    assert sorted(said_of_logs) == sorted(expected_words(logs))
    assert "".join(said_of_logs) == dump.err
    assert "isvalid: false" not in dump.out
    compared = await asyncio.to_thread(dumped, "--verify-index-only", indexes)
    assert compared == ProcessOutput("".join(f"Dumping {file}\n" for file in indexes), "")
    sane = await asyncio.to_thread(dumped, "--index-sanity-check", indexes)
    said = "".join(f"Dumping {file}\n{file} passed sanity check.\n" for file in indexes)
    assert sane == ProcessOutput(said, "")


def put_into_broker(ours: Path, data: Path) -> None:
    """Put our files in the place of a stopped broker's, which keep their topic id."""
    for partition in range(METADATA_PARTITIONS):
        for file in partition_files(data, partition):
            if file.name != PARTITION_METADATA:
                file.unlink()
        for file in partition_files(ours, partition):
            if file.name != PARTITION_METADATA:
                shutil.copy2(file, data / f"{TOPIC}-{partition}")


@pytest.mark.parametrize("is_clean", [True, False], ids=["as it is", "recovered"])
async def test_folder_of_ours_when_a_broker_starts_on_it_then_serves_every_record(
    fresh_kafka: FreshKafka, tmp_path: Path, *, is_clean: bool
) -> None:
    """A broker serves and extends our folder without an error, and we read it again."""
    histories = await write_folder(tmp_path / "log")
    node = fresh_kafka.tiered().node
    assert await asyncio.to_thread(node.stop) == CLEAN_STATUS
    await asyncio.to_thread(put_into_broker, tmp_path / "log", node.data)
    assert (node.data / CLEAN_SHUTDOWN).exists()
    if not is_clean:
        (node.data / CLEAN_SHUTDOWN).unlink()
    started_at = node.log.position
    await asyncio.to_thread(node.start)

    for partition, events in histories.items():
        offsets = await produce(node.login, TOPIC, [b"by the broker"], partition=partition)
        assert offsets == [len(events)]
        count = len(events) + 1
        records = await consume(node.login, TOPIC, count=count, partition=partition)
        values = [encode(event) for event in events]
        assert [record.offset for record in records] == list(range(count))
        assert [record.value for record in records] == [*values, b"by the broker"]
    # On a busy machine a broker that starts complains of much else, its own controller above all.
    errors = [line for line in node.log.errors(started_at) if ABOUT_LOGS.search(line)]
    assert errors == []
    warnings = [line for line in node.log.since(started_at) if " WARN " in line]
    assert [line for line in warnings if f"{TOPIC}-" in line] == []

    assert await asyncio.to_thread(node.stop) == CLEAN_STATUS
    back = await FilesLog.open(node.data, partition_count=METADATA_PARTITIONS, is_observer=True)
    try:
        record_sets = await read_partitions(back)
    finally:
        await back.close()
    for partition, events in histories.items():
        found = [each for one in record_sets[partition] for each in values_of(one)]
        values = [*(encode(event) for event in events), b"by the broker"]
        assert found == list(enumerate(values))


def assert_is_what_a_shard_takes(record_sets: dict[int, list[RecordSet]]) -> set[int]:
    for partition, sets in record_sets.items():
        shard = ChosenShard(partition)
        for record_set in sets:
            report = shard.apply(record_set)
            assert (report.complete, report.damage) == (True, None)
            assert (report.tally.undecodable, report.tally.rejected) == (0, 0)
    return {partition for partition, sets in record_sets.items() if sets}


async def test_folder_of_a_broker_when_observed_then_is_what_the_broker_serves(
    fresh_kafka: FreshKafka, open_log: OpenLog
) -> None:
    """A running or stopped broker's folder opens unchanged, with the data that it serves."""
    kafka = fresh_kafka.tiered()
    for topic in ("one", "two"):
        await kafka.create_topic(topic, partitions=2)
        for partition in (0, 1):
            await produce(kafka.login, topic, RECORDS, partition=partition)
    for topic in ("one", "two"):
        await kafka.wait_until_tiered(topic, 2 * SEGMENTS)

    async def observed() -> tuple[LogIdentity, dict[int, list[RecordSet]]]:
        log = await FilesLog.open(
            kafka.node.data, partition_count=METADATA_PARTITIONS, is_observer=True
        )
        try:
            return await log.identity(timeout_s=ANSWER_S), await read_partitions(log)
        finally:
            await log.close()

    identity, live = await observed()
    served_log = await open_log(
        kafka.login, TOPIC, partitions=METADATA_PARTITIONS, is_observer=True
    )
    assert identity == await served_log.identity(timeout_s=ANSWER_S)
    served = await read_partitions(served_log)
    assert joined(live) == joined(served)
    assert len(assert_is_what_a_shard_takes(live)) > 1

    await served_log.close()
    assert await asyncio.to_thread(kafka.node.stop) == CLEAN_STATUS
    before = await asyncio.to_thread(fingerprint, kafka.node.data)
    identity_after, after = await observed()
    assert (identity_after, joined(after)) == (identity, joined(served))
    assert_is_what_a_shard_takes(after)
    assert await asyncio.to_thread(fingerprint, kafka.node.data) == before
