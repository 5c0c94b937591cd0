"""The topic of a fake cluster as a source of the tiered state."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from rlmm.kafka_messages.fetch import FetchRequest
from rlmm.metadata.encoding import encode
from rlmm.records.record_set import RecordSet
from rlmm.state_sources.kafka_source import KafkaSource
from tests.support.engine.chosen import ChosenShard
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_kafka import FakeKafka
from tests.support.logs.copied_folders import place_of_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from rlmm.inspection.replay import ShardsMoment
    from rlmm.kafka_client.connections.connection import Dialer
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metadata.events import Event

COUNT = 3
NUMBERS = range(12)
"""User partitions; some of them lie in each metadata partition."""


def cluster_of(events: Iterable[Event]) -> FakeKafka:
    kafka = FakeKafka(COUNT)
    store(kafka, events)
    return kafka


def store(kafka: FakeKafka, events: Iterable[Event]) -> None:
    for event in events:
        kafka.partitions[place_of_event(event, COUNT)].store(encode(event))


@asynccontextmanager
async def opened_source(kafka: FakeKafka, **said: Any) -> AsyncIterator[KafkaSource]:
    async def prepare(_: KafkaSettings) -> Dialer:
        return cast("Dialer", FakeDialer(kafka))

    settings = kafka.log_settings(is_observer=True)
    source = await KafkaSource.open(settings, prepare=prepare, **{"timeout_s": 30.0, **said})
    try:
        yield source
    finally:
        await source.close()


def fetched(kafka: FakeKafka) -> dict[int, int]:
    """Return the lowest position that was fetched, by metadata partition."""
    found: dict[int, int] = {}
    for request in kafka.requests(FetchRequest):
        for one in request.wanted:
            found[one.partition] = min(one.position, found.get(one.partition, one.position))
    return found


def images_of(kafka: FakeKafka) -> dict[int, bytes]:
    found = {}
    for place, held in kafka.partitions.items():
        shard = ChosenShard(place)
        for _, _, data in held.batches:
            shard.apply(RecordSet(place, data))
        found[place] = shard.image()
    return found


def images_in(moment: ShardsMoment) -> dict[int, bytes]:
    return {place: one.shard.image() for place, one in moment.replays.items()}
