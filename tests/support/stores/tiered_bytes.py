"""A tiered segment in memory, in each stored form: plain, zstd, encrypted, both."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.layout.encryption import PrivateKey
from spark_tiering.layout.key_ring import KeyRing
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.segment_reading.tiered import open_tiered
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.storage import CopiedSegment, TierStorage
from tests.support.partitions.segments import content_of, example_partition
from tests.support.stores.encrypted_segments import IDS, pem, seal_segment
from tests.support.stores.memory_store import MemoryStore
from tests.support.stores.recorded_manifests import SEGMENT_ID
from tests.support.tier.copy_tasks import FIRST, SECOND, report_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segment_reading.tiered import TieredSegment
    from spark_tiering.segments.segment_listing import ListedSegment

FORMS = ("plain", "zstd", "sealed", "sealed-zstd")
CHUNK = 4096
PREFIX = "tier/"


@cache
def key_ring(*ids: str) -> KeyRing:
    return KeyRing({one: PrivateKey(pem(one), one) for one in ids or IDS})


@dataclass
class TieredBytes:
    form: str
    segment: SegmentMetadata
    parts: Mapping[SegmentPart, bytes]
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        options = CopyOptions("zstd" in self.form, CHUNK)
        storage = TierStorage(self.store, PREFIX, options=options)
        copied = storage.copy(self.segment, self.parts)
        assert isinstance(copied, CopiedSegment), copied
        if "sealed" in self.form:
            seal_segment(self.store, self.segment, PREFIX)
        self.store.calls.clear()

    @property
    def log(self) -> bytes:
        return self.parts[SegmentPart.LOG]

    @property
    def keys(self) -> dict[ObjectKind, str]:
        return object_keys(self.segment.id, self.segment.start_offset, PREFIX)

    def open(self) -> TieredSegment:
        return open_tiered(self.store, self.segment, (PREFIX,), key_ring())

    def change(self, kind: ObjectKind, at: int, content: bytes | None = None) -> None:
        body = bytearray(self.store.objects[self.keys[kind]])
        new = bytes([body[at] ^ 1]) if content is None else content
        place = at % len(body)
        body[place : place + len(new)] = new
        self.store.objects[self.keys[kind]] = bytes(body)


def example(form: str, listed: ListedSegment = SECOND) -> TieredBytes:
    files = example_partition()
    report = report_on(files, listed)
    parts = {}
    for part, content in report.parts.items():
        found = (
            files.contents[listed.file(".log")]
            if part is SegmentPart.LOG
            else content_of(files, part, content)
        )
        assert not isinstance(found, SegmentFinding)
        parts[part] = found
    assert listed.next_offset is not None
    segment = SegmentMetadata(
        SEGMENT_ID,
        listed.base_offset,
        listed.next_offset - 1,
        1,
        report.max_timestamp_ms,
        1_700_000_300_000,
        report.epochs,
        report.size_bytes,
        state=SegmentState.COPY_SEGMENT_FINISHED,
        txn_index_empty=report.txn_index_empty,
    )
    return TieredBytes(form, segment, parts)


def random_log(form: str, size: int = 40_001) -> TieredBytes:
    made = example(form, FIRST)
    parts = {**made.parts, SegmentPart.LOG: random.Random(size).randbytes(size)}
    segment = SegmentMetadata(SEGMENT_ID, 0, 119, 1, 1, 1, ((4, 0),), size, txn_index_empty=True)
    return TieredBytes(form, segment, parts)
