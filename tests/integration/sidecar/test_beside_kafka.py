"""The failure scenarios of a service beside a real Kafka, as clients of the socket meet them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from broker_adapter.address import UnixAddress
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import NotReady
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.kafka.kafka_log import KafkaLog
from tests.integration.engine.conftest import QUICK
from tests.kafka.secured import Way
from tests.support.builders import finished, segment_id, started, tp
from tests.support.kafka.kafka_logs import own_topic, settings_for
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.kafka_client.settings import KafkaSettings
    from tests.kafka.secured import SecuredKafka
    from tests.kafka.tiered import TieredKafka

TP = tp()
SERVICES = 3
PLACES = 2


@asynccontextmanager
async def client_of(
    settings: KafkaSettings, timeout_s: float = 20.0, *, is_observer: bool = False
) -> AsyncIterator[RemoteLogMetadataClient]:
    async with AsyncExitStack() as stack:
        log = await KafkaLog.open(settings)
        stack.push_async_callback(log.close)
        metadata = await stack.enter_async_context(
            open_metadata(log, settings=QUICK, is_observer=is_observer)
        )
        served = await stack.enter_async_context(listening(metadata._engine))
        patience = ClientSettings(timeout_s=timeout_s)
        client = RemoteLogMetadataClient(UnixAddress(served.path), settings=patience)
        stack.push_async_callback(client.close)
        yield client


async def written_and_read(client: RemoteLogMetadataClient, label: int) -> None:
    begun = started(segment_id(label), label * 100, label * 100 + 99)
    assert (await client.add_segment(begun)).verdict == "applied"
    assert (await client.update_segment(finished(begun.id))).verdict == "applied"
    found = await client.segment_for(TP, 0, label * 100)
    assert found is not None
    assert found.id == begun.id


async def test_f96_services_when_begun_at_once_then_share_topic(kafka_broker: TieredKafka) -> None:
    """Failure scenario F96: services that start later find the topic, and each sees all writes."""
    settings = settings_for(
        kafka_broker.login, own_topic("begun"), partitions=PLACES, is_created=True
    )
    everybody = asyncio.Barrier(SERVICES)

    async def service(number: int) -> list[int]:
        async with client_of(settings) as client:
            await written_and_read(client, number)
            await everybody.wait()
            listed = client.list_segments(TP, linearizable=True)
            starts = [found.start_offset async for found in listed]
            await everybody.wait()
            return starts

    told = await asyncio.gather(*map(service, range(SERVICES)))
    assert told == [[n * 100 for n in range(SERVICES)]] * SERVICES


async def test_f98_service_when_logged_in_by_tls_then_works(secured_kafka: SecuredKafka) -> None:
    """Failure scenario F98: clients need no credentials of Kafka."""
    login = secured_kafka.login(Way.SCRAM_512_OVER_TLS)
    settings = settings_for(login, own_topic("secured"), partitions=PLACES, is_created=True)
    async with client_of(settings) as client:
        await written_and_read(client, 0)


async def test_f99_client_when_kafka_refuses_then_told_right(secured_kafka: SecuredKafka) -> None:
    """F99: the client gets not ready with the missing right in Kafka's words and ours."""
    login = secured_kafka.powerless_login(Way.SCRAM_512)
    settings = settings_for(login, own_topic("refused"), partitions=PLACES, is_observer=True)
    async with client_of(settings, 1.0, is_observer=True) as client:
        with pytest.raises(NotReady, match="lacks the right to DESCRIBE the topic; grant it"):
            await client.remote_log_size(TP)
        status = await client.status()
        assert "TOPIC_AUTHORIZATION_FAILED" in str(status["last_trouble"])
