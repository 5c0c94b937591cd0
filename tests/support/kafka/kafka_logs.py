"""The `kafka` log as tests open it: settings for a broker of theirs, and topics of their own."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition
from aiokafka.admin import RecordsToDelete

from rlmm.base.secret import Secret
from rlmm.kafka_client.settings import (
    KafkaSettings,
    SaslMechanism,
    SecurityProtocol,
    SecuritySettings,
    TopicSettings,
)
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import ANSWER_S, read_on
from tests.kafka.clients import admin
from tests.kafka.login import FixedToken

if TYPE_CHECKING:
    from rlmm.log.protocol import MetadataLog
    from rlmm.records.record_set import RecordSet
    from tests.kafka.login import Login

_numbers = itertools.count()


def own_topic(prefix: str = "metadata") -> str:
    return f"{prefix}-{next(_numbers)}"


def security_of(login: Login) -> SecuritySettings:
    return SecuritySettings(
        security_protocol=SecurityProtocol(login.protocol),
        sasl_mechanism=None if login.mechanism is None else SaslMechanism(login.mechanism),
        sasl_username=login.username,
        sasl_password=None if login.password is None else Secret(login.password),
        token_provider=None if login.token is None else FixedToken(login.token),
        ssl_truststore_location=None if login.ca_file is None else str(login.ca_file),
        ssl_keystore_location=(
            None if login.certificate_file is None else str(login.certificate_file)
        ),
    )


def settings_for(
    login: Login,
    topic: str,
    *,
    partitions: int | None = None,
    is_created: bool = False,
    replicas: int = 1,
    min_isr: int | None = None,
    **changed: Any,
) -> KafkaSettings:
    settings: dict[str, Any] = {
        "bootstrap_servers": tuple(login.bootstrap.split(",")),
        "security": security_of(login),
        "topic": TopicSettings(
            name=topic,
            num_partitions=partitions,
            is_created=is_created,
            replication_factor=replicas,
            min_isr=min(2, replicas) if min_isr is None else min_isr,
        ),
        "node_id": "test",
        "is_observer": False,
        "max_request_size": 4 * 1024 * 1024,  # the broker decides what is too large
    }
    return KafkaSettings(**{**settings, **changed})


async def read_all(log: MetadataLog, partition: int) -> list[RecordSet]:
    bounds = (await log.bounds([partition], timeout_s=ANSWER_S))[partition]
    assert isinstance(bounds, LogBounds), bounds
    position, found = bounds.log_start_offset, []
    while position < bounds.high_watermark:
        found.append(await read_on(log, partition, position))
        position = found[-1].next_offset or 0
    return found


def attempts_within(seconds: float) -> int:
    """Return how many attempts a well-behaved client makes in that time."""
    count, next_s, pause_s = 1, 0.25, 0.25
    while next_s <= seconds:
        pause_s = min(2 * pause_s, 10.0)
        count, next_s = count + 1, next_s + pause_s
    return count


async def delete_records(login: Login, topic: str, partition: int, before_offset: int) -> None:
    wanted = {TopicPartition(topic, partition): RecordsToDelete(before_offset)}
    async with admin(login) as client:
        await client.delete_records(wanted)
