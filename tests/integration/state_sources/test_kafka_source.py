"""A real broker's topic, and copies of its folders, beside the broker's events."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.inspection.cluster_facts import PartitionOffsets
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import replay
from rlmm.kafka_client.settings import TOPIC
from rlmm.metadata.assignment import place_of
from rlmm.metadata.segment import SegmentMetadata
from rlmm.snapshot.folder_check import examine, stored_below
from rlmm.state_sources.opening import open_source
from rlmm.state_sources.settings import SourceSettings
from tests.kafka.clients import create_topic, produce, until
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.support.engine.chosen import ChosenShard
from tests.support.kafka.kafka_logs import own_topic
from tests.support.logs.copied_folders import fingerprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.inspection.moment import Moment
    from rlmm.state_sources.protocol import StateSource
    from tests.kafka.tiered import TieredKafka

ANSWER_S = 20.0
RECORDS = 60


@asynccontextmanager
async def opened(**said: Any) -> AsyncIterator[StateSource]:
    source = await open_source(SourceSettings(timeout_s=ANSWER_S, **said))
    try:
        yield source
    finally:
        await source.close()


async def tiered_topic(kafka: TieredKafka, partitions: int = 1) -> str:
    topic = own_topic("looked-at")
    await kafka.create_topic(topic, partitions=partitions)
    for partition in range(partitions):
        await produce(kafka.login, topic, [b"x" * 500] * RECORDS, partition=partition)

    def all_is_tiered() -> bool:
        ends = [0] * partitions
        for found in kafka.metadata_events(topic):
            if isinstance(found.event, SegmentMetadata):
                partition = found.event.id.partition.partition
                ends[partition] = max(ends[partition], found.event.last_offset + 1)
        return all(end == RECORDS for end in ends)

    await until(all_is_tiered, f"all of {topic} was tiered", deadline_s=60)
    for partition in range(partitions):
        await kafka.wait_until_trimmed(topic, partition)
    return topic


def events_below(kafka: TieredKafka, positions: dict[int, int]) -> dict[int, bytes]:
    """Return the state of the broker's own files below *positions*."""
    shards = {place: ChosenShard(place) for place in positions}
    for found in kafka.metadata_events():
        if found.offset < positions.get(found.metadata_partition, 0):
            shards[found.metadata_partition].apply_event(found.event, found.offset)
    return {place: shard.image() for place, shard in shards.items()}


def images_of(moment: Any) -> dict[int, bytes]:
    return {place: one.shard.image() for place, one in moment.replays.items()}


async def segments_of(moment: Moment, kafka: TieredKafka, topic: str) -> list[int]:
    pages = [page async for page in moment.segments(kafka.user_partition(topic))]
    return [segment.start_offset for page in pages for segment in page]


async def test_topic_of_kafka_when_read_then_is_what_its_files_say(
    kafka_broker: TieredKafka, tmp_path: Path
) -> None:
    """The state agrees with the broker's files, and with a cache only later records are read."""
    topic = await tiered_topic(kafka_broker)
    said = {"bootstrap_servers": kafka_broker.bootstrap, "snapshot_cache": tmp_path / "cache"}
    async with opened(**said) as source:
        moment = await source.now()
        assert len(await segments_of(moment, kafka_broker, topic)) >= 2
        positions = dict(moment.positions)
        assert set(positions) == set(range(METADATA_PARTITIONS))
        expected = await asyncio.to_thread(events_below, kafka_broker, positions)
        assert images_of(moment) == expected
        assert moment.identity.cluster_id == kafka_broker.node.cluster_id
        assert moment.identity.topic_id == kafka_broker.topic_id(TOPIC)
        standing = await source.standing()
        assert standing.is_caught_up
        assert standing.notes == ()
        place = next(at for at, end in positions.items() if end > 1)
        alone = await source.now([place])
        assert list(alone.positions) == [place]
        before = await replay(source.log, [place], ReplayEnd({place: 0}), timeout_s=ANSWER_S)
        assert before.positions == {place: 1}
    kept = await asyncio.to_thread(lambda: list(map(examine, stored_below(tmp_path / "cache"))))
    assert kept
    assert all(one.is_good for one in kept)
    async with opened(**said) as source:
        again = await source.now()
        positions = dict(again.positions)
        expected = await asyncio.to_thread(events_below, kafka_broker, positions)
        assert images_of(again) == expected
        (one, *_) = (await source.standing()).places
        assert one.is_history_complete


async def test_folders_of_kafka_when_copied_from_a_live_broker_then_answer_the_same(
    kafka_broker: TieredKafka, tmp_path: Path
) -> None:
    """Live copies are read to their last whole batch, and stay unchanged."""
    topic = await tiered_topic(kafka_broker, partitions=4)

    def copied() -> None:
        for place in range(METADATA_PARTITIONS):
            name = f"{TOPIC}-{place}"
            shutil.copytree(kafka_broker.node.data / name, tmp_path / "copy" / name)
        shutil.copy(kafka_broker.node.data / "meta.properties", tmp_path / "copy")

    await asyncio.to_thread(copied)
    before = await asyncio.to_thread(fingerprint, tmp_path / "copy")
    async with opened(log_dirs=(tmp_path / "copy",)) as source:
        moment = await source.now()
        expected = await asyncio.to_thread(events_below, kafka_broker, dict(moment.positions))
        assert images_of(moment) == expected
        assert len(await segments_of(moment, kafka_broker, topic)) >= 2
        assert moment.identity.cluster_id == kafka_broker.node.cluster_id
        assert moment.identity.topic_id == kafka_broker.topic_id(TOPIC)
        standing = await source.standing()
        assert standing.is_caught_up
        assert standing.identity is not None
        count = standing.identity.partition_count
        assert count == METADATA_PARTITIONS
        assert any(f"taken to have {count} partitions" in note for note in standing.notes)
    partition = kafka_broker.user_partition(topic)
    place = place_of(partition, METADATA_PARTITIONS)
    folder = tmp_path / "copy" / f"{TOPIC}-{place}"
    async with opened(log_dirs=(folder,), partition_count=METADATA_PARTITIONS) as source:
        moment = await source.now([place])
        assert partition in (await moment.state(partition)).partitions()
    assert await asyncio.to_thread(fingerprint, tmp_path / "copy") == before


async def test_cluster_of_kafka_when_asked_then_tells_topics_offsets_and_disks(
    kafka_broker: TieredKafka,
) -> None:
    """A broker of 4.3 returns topics, offsets and disks to the commands."""
    topic, plain = await tiered_topic(kafka_broker), own_topic("plain")
    waiting = own_topic("waiting")
    not_copied = {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}
    await create_topic(kafka_broker.login, waiting, settings=not_copied)
    await produce(kafka_broker.login, waiting, [b"value"] * 2)
    await create_topic(kafka_broker.login, plain, settings={"retention.ms": "3600000"})
    await produce(kafka_broker.login, plain, [b"value"] * 3)
    partition, other = kafka_broker.user_partition(topic), kafka_broker.user_partition(plain)
    async with opened(bootstrap_servers=kafka_broker.bootstrap) as source:
        cluster = source.cluster
        assert cluster is not None
        assert await cluster.cluster_id() == kafka_broker.node.cluster_id
        assert await cluster.brokers() == [1]
        topics = await cluster.topics([topic, plain, "nobody"])
        assert set(topics) == {topic, plain}
        assert (topics[topic].is_tiered, topics[plain].is_tiered) == (True, False)
        assert topics[topic].topic_id == partition.topic_id
        retention = (topics[plain].settings or {})["retention.ms"]
        assert (retention.value, retention.is_explicit) == ("3600000", True)
        assert not (topics[plain].settings or {})["min.insync.replicas"].is_explicit
        place = topics[topic].partitions[0]
        assert (place.leader, place.replicas, place.in_sync) == (1, (1,), (1,))
        assert TOPIC in await cluster.topics()

        held = kafka_broker.user_partition(waiting)
        told = await cluster.offsets([partition, other, held])
        assert (told[held].latest_tiered, told[held].earliest_pending_upload) == (-1, 0)
        assert told[other] == PartitionOffsets(
            earliest=0, earliest_local=0, latest=3, last_stable=3, latest_tiered=-1,
            earliest_pending_upload=None,
        )  # fmt: skip
        ends = told[partition]
        assert (ends.earliest, ends.latest) == (0, RECORDS)
        assert ends.latest_tiered == RECORDS - 1
        assert ends.earliest_local == RECORDS
        assert ends.earliest_pending_upload is None, "nothing waits for it"


async def test_broker_of_kafka_when_asked_then_tells_settings_disks_and_rights(
    kafka_broker: TieredKafka,
) -> None:
    """The broker returns settings, the disk of its logs, and an anonymous client's rights."""
    topic = own_topic("plain")
    await create_topic(kafka_broker.login, topic)
    await produce(kafka_broker.login, topic, [b"value"] * 3)
    async with opened(bootstrap_servers=kafka_broker.bootstrap) as source:
        cluster = source.cluster
        assert cluster is not None
        settings = await cluster.broker_settings(1)
        assert settings is not None
        assert settings["log.dirs"].value == str(kafka_broker.node.data)
        assert settings["remote.log.storage.system.enable"].is_explicit
        (log_dir,) = await cluster.log_dirs()
        assert (log_dir.broker, log_dir.path) == (1, str(kafka_broker.node.data))
        assert log_dir.total_bytes is not None
        assert log_dir.usable_bytes is not None
        assert 0 < log_dir.usable_bytes < log_dir.total_bytes
        assert log_dir.sizes[topic, 0] > 0
        rights = await cluster.rights([topic])
        assert rights.on_cluster is not None
        assert {"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER"} <= rights.on_cluster
        assert {"READ", "WRITE", "DESCRIBE_CONFIGS"} <= (rights.on_topic[topic] or set())
