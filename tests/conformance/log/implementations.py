"""The logs that the contract suite runs over, each made empty with `PARTITION_COUNT` partitions."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pytest

from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.partition_log.settings import LogSettings
from tests.conformance.log.memory_log import memory_log
from tests.conformance.log.under_test import ANSWER_S, PARTITION_COUNT
from tests.kafka.fixtures import TIMEOUT_S
from tests.support.kafka.kafka_logs import delete_records, own_topic, settings_for
from tests.support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from rlmm.kafka_client.settings import KafkaSettings
    from tests.conformance.log.under_test import LogUnderTest
    from tests.kafka.process import ProcessLog
    from tests.kafka.tiered import TieredKafka


BATCH_BYTES_MAX = 1_048_588
"""What a broker takes by default."""


class KafkaLogUnderTest:
    """A topic that the log has created itself."""

    has_own_timers = True
    # Header 61, length 3, attributes, time, offset and null key 1 each, length 3, no headers 1.
    value_bytes_max = BATCH_BYTES_MAX - 72

    def __init__(self, kafka: TieredKafka, settings: KafkaSettings, log: KafkaLog) -> None:
        self.kafka = kafka
        self.settings = settings
        self.log = log

    @property
    def logs(self) -> list[ProcessLog]:
        return self.kafka.logs

    async def reopen(self, *, is_observer: bool = False) -> KafkaLog:
        await self.log.close()
        topic = replace(self.settings.topic, is_created=False)
        settings = replace(self.settings, topic=topic, is_observer=is_observer)
        self.log = await KafkaLog.open(settings)
        return self.log

    async def delete_records(self, partition: int, before_offset: int) -> None:
        await delete_records(self.kafka.login, self.settings.topic.name, partition, before_offset)

    async def pass_time(self, seconds: float) -> None: ...

    def reads_waiting(self) -> int:
        return self.log.statistics().pending_reads


@asynccontextmanager
async def kafka_log(request: pytest.FixtureRequest) -> AsyncIterator[KafkaLogUnderTest]:
    kafka: TieredKafka = request.getfixturevalue("kafka_broker")
    settings = settings_for(
        kafka.login, own_topic("contract"), partitions=PARTITION_COUNT, is_created=True
    )
    log = await KafkaLog.open(settings)
    under_test = KafkaLogUnderTest(kafka, settings, log)
    try:
        await log.identity(timeout_s=ANSWER_S)
        yield under_test
    finally:
        await under_test.log.close()


class FilesLogUnderTest:
    has_own_timers = False
    # Header 61, length 3, attributes, time, offset and null key 1 each, length 3, no headers 1.
    value_bytes_max = LogSettings().batch_bytes_max - 72

    def __init__(self, folder: Path, log: FilesLog, clock: ManualClock) -> None:
        self.folder = folder
        self.log = log
        self.clock = clock

    async def reopen(self, *, is_observer: bool = False) -> FilesLog:
        await self.log.close()
        self.log = await FilesLog.open(self.folder, is_observer=is_observer, clock=self.clock)
        return self.log

    async def delete_records(self, partition: int, before_offset: int) -> None:
        log = await self.log._registry.partition(TOPIC, partition)
        await log.advance_log_start(before_offset)

    async def pass_time(self, seconds: float) -> None:
        await self.clock.until_waiting()
        self.clock.advance(seconds)

    def reads_waiting(self) -> int:
        return self.clock.deadlines


@asynccontextmanager
async def files_log(request: pytest.FixtureRequest) -> AsyncIterator[FilesLogUnderTest]:
    folder: Path = request.getfixturevalue("tmp_path") / "log"
    clock = ManualClock()
    log = await FilesLog.open(folder, partition_count=PARTITION_COUNT, clock=clock)
    under_test = FilesLogUnderTest(folder, log, clock)
    try:
        yield under_test
    finally:
        await under_test.log.close()


class MakeLog(Protocol):
    """A function that opens an empty log and takes its fixtures from the request."""

    def __call__(
        self, request: pytest.FixtureRequest
    ) -> AbstractAsyncContextManager[LogUnderTest]: ...


@dataclass(frozen=True, slots=True)
class Implementation:
    name: str
    make: MakeLog
    marks: tuple[pytest.MarkDecorator, ...] = ()


NEEDS_BROKER = (pytest.mark.kafka, pytest.mark.timeout(TIMEOUT_S))

IMPLEMENTATIONS = [
    Implementation("memory", memory_log),
    Implementation("files", files_log),
    Implementation("kafka", kafka_log, NEEDS_BROKER),
]


def params() -> list[object]:
    return [pytest.param(each.make, id=each.name, marks=each.marks) for each in IMPLEMENTATIONS]
