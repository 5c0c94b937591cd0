"""The same story with other forms of the objects in a tier: in a bucket, in chunks, encrypted."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from spark_tiering.layout.manifest import Manifest
from spark_tiering.layout.manifest_document import parse_manifest
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import consume, produce, until
from tests.kafka.core_story import CoreStory
from tests.kafka.ledger import LEVELS, read
from tests.kafka.plugin import our_bucket, our_storage
from tests.kafka.plugin_kafka import PATIENT_READS
from tests.kafka.tier_accounts import TierAccounts
from tests.support.stores.encrypted_segments import KeyFiles, seal_segment
from tests.support.stores.s3_servers import ACCESS, BUCKET, SECRET
from tests.support.stores.stores_under_test import server_bucket

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.stores.protocol import ObjectStore
    from tests.integration.plugin.conftest import NewKafka
    from tests.kafka.plugin_kafka import PluginKafka
    from tests.support.stores.s3_servers import Server

pytestmark = pytest.mark.long

PREFIX = "tier/"
CHUNK_BYTES = 4_096
SMALL_CHUNKS = {"rsm.config.chunk.size": str(CHUNK_BYTES), "rsm.config.compression.enabled": "true"}
RECORDS = [b"%04d" % number + b"x" * 496 for number in range(60)]
TAIL = [b"tail-%04d" % number + b"y" * 491 for number in range(30)]
KEY_RING = "rsm.config.encryption.key.ring.file"


def seal_all(kafka: PluginKafka, topic: str) -> None:
    with LocalStore(LocalSettings(kafka.store)) as store:
        for segment in TierAccounts(kafka).segments(topic).values():
            seal_segment(store, segment)


def manifests(store: ObjectStore) -> list[Manifest]:
    found = []
    for key in (one.key for one in store.list() if one.key.endswith(ObjectKind.MANIFEST)):
        written = store.get(key, 0, 1 << 20)
        assert isinstance(written, bytes)
        manifest = parse_manifest(written)
        assert isinstance(manifest, Manifest)
        found.append(manifest)
    return found


async def tiered_story(kafka: PluginKafka, topic: str = "orders") -> CoreStory:
    await kafka.create_topic(topic, partitions=2)
    story = CoreStory.of(kafka, topic)
    await story.produce()
    await story.wait_until_in_the_tier_alone()
    return story


async def test_records_when_a_bucket_has_small_zstd_chunks_are_read_as_they_were_produced(
    new_kafka: NewKafka, plugins: Path, s3: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker reads segments of several frames below a prefix; deletion empties the bucket."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    storage = our_bucket(plugins, s3.endpoint, BUCKET, prefix=PREFIX) | SMALL_CHUNKS
    for name in ("access.key.id", "secret.access.key"):
        del storage[f"rsm.config.storage.aws.{name}"]
    with server_bucket(s3).opened() as bucket:
        kafka = new_kafka(properties=PATIENT_READS, storage=storage)
        story = await tiered_story(kafka)
        made = manifests(bucket)
        assert len(made) == len(story.segments())
        assert all(one.is_compressed for one in made)
        assert max(one.chunks.count for one in made) > 3
        assert all(one.key.startswith(PREFIX) for one in bucket.list())
        await story.assert_read()
        # Before the deletion: a fetch ahead of the last consumer may still be under way then.
        assert kafka.tiering_errors() == []
        await kafka.delete_topic("orders")
        await kafka.wait_until_deleted("orders", len(made))
        assert list(bucket.list()) == []
        assert list(bucket.open_uploads()) == []


async def test_records_when_segments_were_encrypted_are_read_by_a_broker_that_has_the_keys(
    new_kafka: NewKafka, plugins: Path, tmp_path: Path
) -> None:
    """The broker reads encrypted chunks and indexes; later segments are plain."""
    keys = KeyFiles(tmp_path / "keys")
    storage = our_storage(plugins, tmp_path / "ours" / "tier")
    storage |= SMALL_CHUNKS | {KEY_RING: str(keys.ring)}
    kafka = new_kafka(properties=PATIENT_READS, storage=storage)
    story = await tiered_story(kafka)
    seal_all(kafka, "orders")
    with LocalStore(LocalSettings(kafka.store)) as store:
        assert all(one.encryption is not None for one in manifests(store))
    kafka.restart_broker()  # it may have kept what it knows of them
    await story.assert_read()
    await story.traffic().everything(4)
    await story.wait_until_in_the_tier_alone()
    await story.assert_read_by_aiokafka(LEVELS[1])
    assert kafka.tiering_errors() == []


async def test_consumer_when_keys_are_missing_waits(our_kafka: PluginKafka, tmp_path: Path) -> None:
    """Only readers without the key wait, the log stays brief, and they go on with the key."""
    keys = KeyFiles(tmp_path / "keys")
    sealed = await tiered_story(our_kafka, "sealed")
    await our_kafka.create_topic("open")
    await produce(our_kafka.login, "open", RECORDS)
    await our_kafka.wait_until_tiered("open", 3)
    await our_kafka.wait_until_trimmed("open")
    seal_all(our_kafka, "sealed")
    our_kafka.restart_broker()
    begun = our_kafka.node.log.position
    waiting = asyncio.create_task(read(our_kafka.login, "sealed", LEVELS[0]))
    await until(lambda: bool(our_kafka.tiering_errors(begun)), "the consumer met a sealed segment")
    text = "\n".join(our_kafka.node.log.since(begun))
    assert "SegmentEncryptedException" in text
    assert KEY_RING in text
    met_s, met = time.monotonic(), len(our_kafka.tiering_errors(begun))
    await until(lambda: len(our_kafka.tiering_errors(begun)) >= met + 10, "it asked again")
    assert 10 / (time.monotonic() - met_s) < 10

    found = await consume(our_kafka.login, "open", count=len(RECORDS))
    assert [record.value for record in found] == RECORDS
    ends = await sealed.ends()
    more = [await produce(our_kafka.login, "sealed", TAIL, partition=one) for one in ends]
    assert [min(offsets) for offsets in more] == list(ends.values())
    await sealed.wait_until_in_the_tier_alone()
    tail = await read(our_kafka.login, "sealed", LEVELS[0], first=ends[0])
    assert [one.value for one in tail] == TAIL
    assert not waiting.done()

    our_kafka.node.properties[KEY_RING] = str(keys.ring)
    our_kafka.restart_broker()
    assert await waiting == sealed.ledger.expected(LEVELS[0], 0)
