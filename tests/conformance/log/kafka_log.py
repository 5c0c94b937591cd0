"""The `kafka` log under the contract suite, on topics of its own of a real broker."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.log.kafka.kafka_log import KafkaLog
from tests.conformance.log.under_test import ANSWER_S, PARTITION_COUNT
from tests.support.kafka.kafka_logs import delete_records, own_topic, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from rlmm.kafka_client.settings import KafkaSettings
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
