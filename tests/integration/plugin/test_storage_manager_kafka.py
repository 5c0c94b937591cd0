"""Segments of our storage manager read by Python's reader, and Python's by our storage manager."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentMetadata
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata
from spark_tiering.layout.manifest import Manifest, describe
from spark_tiering.layout.manifest_document import format_manifest
from spark_tiering.layout.object_making import IndexesObject, LogObject
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segment_reading.tiered import open_tiered
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from tests.kafka.clients import consume, create_topic, produce, until
from tests.kafka.tiered import TIERED_TOPIC, TieredKafka, tiered_node
from tests.support.stores.encrypted_segments import KeyFiles, seal_segment
from tests.support.stores.recorded_manifests import SEGMENT_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.kafka.jars import Jars

pytestmark = pytest.mark.long

PROBE = Path(__file__).parent / "StorageProbe.java"
PREFIX = "pfx/"
CHUNK_BYTES = 65_536
JAVA_NAMES = {
    SegmentPart.OFFSET_INDEX: "OFFSET",
    SegmentPart.TIME_INDEX: "TIMESTAMP",
    SegmentPart.PRODUCER_SNAPSHOT: "PRODUCER_SNAPSHOT",
    SegmentPart.LEADER_EPOCHS: "LEADER_EPOCH",
    SegmentPart.TXN_INDEX: "TRANSACTION",
}
LOG = b"".join(random.Random(7).randbytes(24) + bytes(24) for _ in range(20_834))
PARTS = {
    SegmentPart.OFFSET_INDEX: bytes(range(240)) * 10,
    SegmentPart.TIME_INDEX: bytes(range(12)) * 301,
    SegmentPart.PRODUCER_SNAPSHOT: bytes.fromhex("000148674bc700000000"),
    SegmentPart.LEADER_EPOCHS: b"0\n1\n4 1500\n",
    SegmentPart.TXN_INDEX: bytes(range(34)),
}
SEGMENT = SegmentMetadata(
    SEGMENT_ID,
    1500,
    2999,
    broker_id=1,
    max_timestamp_ms=1_700_000_000_000,
    event_timestamp_ms=1_700_000_300_000,
    epochs=((4, 1500),),
    size_bytes=len(LOG),
)

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(60)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    (tmp_path / "tier").mkdir()
    with LocalStore(LocalSettings(tmp_path / "tier")) as opened:
        yield opened


class Probe:
    def __init__(self, jars: Jars, plugins: Path, folder: Path) -> None:
        self._jars = jars
        self._plugin = plugins / "storage-manager"
        self._folder = folder

    def __call__(self, verb: str, files: Path, settings: Mapping[str, str] | None = None) -> str:
        partition = SEGMENT.id.partition
        properties = {
            "storage.root": str(self._folder / "tier"),
            "key.prefix": PREFIX,
            "chunk.size": str(CHUNK_BYTES),
            "fetch.timeout.ms": "20000",
            "segment.topic.id": str(partition.topic_id),
            "segment.topic": partition.topic,
            "segment.partition": str(partition.partition),
            "segment.id": str(SEGMENT.id.uuid),
            "segment.start": str(SEGMENT.start_offset),
            "segment.last": str(SEGMENT.last_offset),
            "segment.max.timestamp": str(SEGMENT.max_timestamp_ms),
            "segment.event.timestamp": str(SEGMENT.event_timestamp_ms),
            "segment.broker": str(SEGMENT.broker_id),
            "segment.size": str(SEGMENT.size_bytes),
            "segment.epoch": "4",
            **(settings or {}),
        }
        named = self._folder / "probe.properties"
        named.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        done = subprocess.run(
            [
                self._jars.java, "-cp", f"{self._plugin}/*:{self._jars.class_path()}",
                str(PROBE), verb, str(named), str(files),
            ],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def probe(kafka_jars: Jars, plugins: Path, tmp_path: Path) -> Probe:
    return Probe(kafka_jars, plugins, tmp_path)


def write_by_python(store: LocalStore, *, is_compressed: bool) -> None:
    log = LogObject([LOG], len(LOG), is_compressed=is_compressed, chunk_bytes=CHUNK_BYTES)
    log_bytes = b"".join(bytes(piece) for piece in log)
    indexes = IndexesObject(
        {part: [content] for part, content in PARTS.items()},
        {part: len(content) for part, content in PARTS.items()},
    )
    indexes_bytes = b"".join(indexes)
    assert log.made is not None
    assert indexes.made is not None
    manifest = Manifest(log.made.chunks, indexes.made.places, is_compressed, describe(SEGMENT))
    contents = {
        ObjectKind.LOG: log_bytes,
        ObjectKind.INDEXES: indexes_bytes,
        ObjectKind.MANIFEST: format_manifest(manifest),
    }
    for kind, key in object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX).items():
        store.put(key, BytesContent(contents[kind]))


def assert_java_reads(probe: Probe, folder: Path, settings: Mapping[str, str]) -> None:
    folder.mkdir()
    assert probe("read", folder, settings) == ""
    assert (folder / "LOG").read_bytes() == LOG
    for part, name in JAVA_NAMES.items():
        assert (folder / name).read_bytes() == PARTS[part]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_segment_when_our_storage_manager_wrote_it_then_python_reads_it(
    probe: Probe, store: LocalStore, tmp_path: Path, *, is_compressed: bool
) -> None:
    """Python reads manifest, log, a range and every index of our storage manager's segment."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "LOG").write_bytes(LOG)
    for part, name in JAVA_NAMES.items():
        (files / name).write_bytes(PARTS[part])
    custom = probe("copy", files, {"compression.enabled": str(is_compressed).lower()})
    listed = {found.key: found.size_bytes for found in store.list()}
    assert list(listed) == sorted(object_keys(SEGMENT.id, SEGMENT.start_offset, PREFIX).values())
    expected = format_custom_metadata(CustomMetadata(sum(listed.values())))
    assert expected is not None
    assert custom == expected.hex()
    segment = open_tiered(store, SEGMENT, (PREFIX,))
    assert segment.manifest.is_compressed is is_compressed
    assert segment.manifest.described == describe(SEGMENT)
    assert b"".join(bytes(piece) for piece in segment.pieces()) == LOG
    middle = b"".join(bytes(piece) for piece in segment.pieces(65_530, 131_080))
    assert middle == LOG[65_530:131_081]
    assert {part: segment.index(part) for part in PARTS} == PARTS
    assert not list(store.open_uploads())


@pytest.mark.parametrize("is_compressed", [False, True])
def test_segment_when_python_wrote_it_then_our_storage_manager_reads_it(
    probe: Probe, store: LocalStore, tmp_path: Path, *, is_compressed: bool
) -> None:
    """The broker's storage manager serves segments that jobs copied."""
    write_by_python(store, is_compressed=is_compressed)
    assert_java_reads(probe, tmp_path / "read", {})


@pytest.mark.parametrize("is_compressed", [False, True])
def test_segment_when_it_is_encrypted_then_our_storage_manager_reads_it_by_the_key_ring(
    probe: Probe, store: LocalStore, tmp_path: Path, *, is_compressed: bool
) -> None:
    """The storage manager reads an encrypted segment by the key ring file that jobs use."""
    keys = KeyFiles(tmp_path / "keys")
    write_by_python(store, is_compressed=is_compressed)
    seal_segment(store, SEGMENT, PREFIX)
    settings = {"encryption.key.ring.file": str(keys.ring)}
    assert_java_reads(probe, tmp_path / "read", settings)


async def test_records_when_a_stock_broker_tiers_by_our_storage_manager_are_read_and_deleted(
    kafka_jars: Jars, plugins: Path, store: LocalStore, tmp_path: Path
) -> None:
    """The storage manager works by its class path alone, beside Kafka's own metadata manager."""
    properties = {
        "remote.log.storage.manager.class.name": "io.rlmm.kafka.storage.RlmmRemoteStorageManager",
        "remote.log.storage.manager.class.path": f"{plugins / 'storage-manager'}/*",
        "rsm.config.storage.root": str(tmp_path / "tier"),
        "rsm.config.key.prefix": PREFIX,
        "rsm.config.compression.enabled": "true",
    }

    def manifests() -> int:
        return sum(found.key.endswith("." + ObjectKind.MANIFEST) for found in store.list())

    with tiered_node(kafka_jars, tmp_path / "node", properties) as node:
        kafka = TieredKafka(node.start())
        await create_topic(kafka.login, "orders", settings=TIERED_TOPIC)
        await produce(kafka.login, "orders", RECORDS)
        await until(lambda: manifests() >= 3, "its segments are in the tier")
        await kafka.wait_until_trimmed("orders")
        records = await consume(kafka.login, "orders", count=len(RECORDS))
        assert [record.value for record in records] == RECORDS
        await kafka.delete_topic("orders")
        await until(lambda: not list(store.list()), "its objects are gone")
        assert kafka.tiering_errors() == []
