"""
Tiers for the data source: the rolled segments of a broker, and a large tier that takes little room,
where all partitions share one log by hard links.
"""

from __future__ import annotations

import os
import struct
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final

import google_crc32c

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.partition_log.names import LOG, segment_file
from rlmm.records.header import CRC_FROM, HEADER, HEADER_BYTES
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from spark_tiering.layout.manifest import Manifest, SegmentDescription
from spark_tiering.layout.manifest_document import format_manifest, parse_manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_inspection import NOTHING_BEFORE, inspect_segment
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.segments.segment_parts import RebuiltPart
from spark_tiering.storage import CopiedSegment, TierStorage
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.segments.segment_parts import SegmentReport
    from spark_tiering.stores.protocol import ObjectStore

TOPIC: Final = "measured"
TOPIC_ID: Final = Uuid(bytes(range(2, 18)))
BEGIN_MS: Final = 1_700_000_000_000
BATCH_RECORDS: Final = 130
VALUE_BYTES: Final = 100
_CRC_AT: Final = CRC_FROM - 4


@dataclass(frozen=True, slots=True)
class LargeTier:
    partitions: int
    segments: int
    segment_bytes: int
    batch_ms: int
    """How far the times of two batches lie apart."""

    @property
    def spanned_ms(self) -> int:
        return self.segments * self.segment_bytes // len(_batch()) * self.batch_ms


def write_large_tier(folder: Path, large: LargeTier) -> int:
    batch = _batch()
    per_segment = max(large.segment_bytes // len(batch), 1)
    logs = folder / "logs" / f"{TOPIC}-0"
    logs.mkdir(parents=True)
    number = 0
    for _ in range(large.segments):
        name = segment_file(number * BATCH_RECORDS, LOG)
        with (logs / name).open("wb") as file:
            for _ in range(per_segment):
                file.write(_placed(batch, number, BEGIN_MS + number * large.batch_ms))
                number += 1
    (logs / segment_file(number * BATCH_RECORDS, LOG)).write_bytes(b"")
    (logs / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    store = LocalStore(LocalSettings(folder / "tier", is_synced=False))
    segments = tier_of(logs, TopicIdPartition(TOPIC_ID, TOPIC, 0), store)
    for partition in range(1, large.partitions):
        for segment in segments:
            _link(folder / "tier", segment, partition)
    return sum(one.size_bytes for one in segments) * large.partitions


def tier_of(folder: Path, partition: TopicIdPartition, store: ObjectStore) -> list[SegmentMetadata]:
    files, storage, before = PartitionFolder(str(folder)), TierStorage(store), NOTHING_BEFORE
    segments = []
    for listed in list_segments(files.facts()):
        if not listed.is_rolled:
            continue
        report = inspect_segment(files, listed, before)
        before = report.after
        if report.blockers:
            raise ValueError(report.blockers)
        segments.append(_metadata(report, partition))
        parts = {
            part: found.content if isinstance(found, RebuiltPart) else folder / found.name
            for part, found in report.parts.items()
        }
        copied = storage.copy(segments[-1], parts)
        if not isinstance(copied, CopiedSegment):
            raise TypeError(copied)
    return segments


def _metadata(report: SegmentReport, partition: TopicIdPartition) -> SegmentMetadata:
    base, behind = report.segment.base_offset, report.segment.next_offset
    assert behind is not None, "only rolled ones are copied"
    return SegmentMetadata(
        SegmentId(partition, Uuid(b"segment." + base.to_bytes(8))),
        base,
        behind - 1,
        1,
        report.max_timestamp_ms,
        report.max_timestamp_ms,
        report.epochs,
        report.size_bytes,
        None,
        SegmentState.COPY_SEGMENT_FINISHED,
        report.txn_index_empty,
    )


def _link(tier: Path, segment: SegmentMetadata, partition: int) -> None:
    other = replace(segment.id, partition=replace(segment.id.partition, partition=partition))
    ours = object_keys(segment.id, segment.start_offset)
    theirs = object_keys(other, segment.start_offset)
    (tier / theirs[ObjectKind.LOG]).parent.mkdir(parents=True, exist_ok=True)
    for kind in (ObjectKind.LOG, ObjectKind.INDEXES):
        os.link(tier / ours[kind], tier / theirs[kind])
    manifest = parse_manifest((tier / ours[ObjectKind.MANIFEST]).read_bytes())
    assert isinstance(manifest, Manifest), manifest
    assert isinstance(manifest.described, SegmentDescription), manifest
    described = replace(manifest.described, segment_id=other)
    content = format_manifest(replace(manifest, described=described))
    (tier / theirs[ObjectKind.MANIFEST]).write_bytes(content)


def _batch() -> bytes:
    random = Random(7)
    records = [
        Record(number, 0, b"%05d" % number, random.randbytes(VALUE_BYTES))
        for number in range(BATCH_RECORDS)
    ]
    return build_batch(records, 0, leader_epoch=0)


def _placed(batch: bytes, number: int, at_ms: int) -> bytes:
    fields = list(HEADER.unpack_from(batch))
    fields[0] = number * BATCH_RECORDS
    fields[7] = fields[8] = at_ms
    head = bytearray(HEADER.pack(*fields))
    crc = google_crc32c.extend(google_crc32c.value(bytes(head[CRC_FROM:])), batch[HEADER_BYTES:])
    struct.pack_into(">I", head, _CRC_AT, crc)
    return bytes(head) + batch[HEADER_BYTES:]


@dataclass
class Counted:
    requests: int = 0
    bytes_read: int = 0


@contextmanager
def counted_reads() -> Iterator[Counted]:
    counted, get = Counted(), LocalStore.get

    def counting(self: LocalStore, key: str, first_byte: int, last_byte: int) -> object:
        got = get(self, key, first_byte, last_byte)
        counted.requests += 1
        counted.bytes_read += len(got) if isinstance(got, bytes) else 0
        return got

    LocalStore.get = counting  # type: ignore[method-assign, assignment]  # put back below
    try:
        yield counted
    finally:
        LocalStore.get = get  # type: ignore[method-assign]  # what it was
