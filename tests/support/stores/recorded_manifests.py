"""A segment in the tier as tests use it: the one that the recorded manifests are of."""

from __future__ import annotations

from pathlib import Path

from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from spark_tiering.layout.chunk_index import VariableChunks, plain_chunks
from spark_tiering.layout.digests import ContentDigest
from spark_tiering.layout.manifest import CopyNote, Manifest, SegmentDescription, SegmentEncryption
from spark_tiering.layout.segment_indexes import SegmentIndexes, lay_out_indexes
from spark_tiering.segments.findings import SegmentPart

MANIFESTS = Path(__file__).parents[2] / "data/manifests"
ORDERS = TopicIdPartition(Uuid(bytes(range(16))), "orders", 3)
SEGMENT_ID = SegmentId(ORDERS, Uuid(bytes(range(16, 32))))
LOG_BYTES = 12_584_960
CHUNK_BYTES = 4 * 1024 * 1024
STORED_SIZES = (1_000_000, 1_000_010, 1_000_020, 777)
PART_SIZES = {
    SegmentPart.OFFSET_INDEX: 2400,
    SegmentPart.TIME_INDEX: 3612,
    SegmentPart.PRODUCER_SNAPSHOT: 10,
    SegmentPart.LEADER_EPOCHS: 12,
}
DESCRIBED = SegmentDescription(
    segment_id=SEGMENT_ID,
    start_offset=1500,
    last_offset=2999,
    max_timestamp_ms=1_700_000_000_000,
    broker_id=1,
    event_timestamp_ms=1_700_000_300_000,
    epochs=((4, 1500),),
)
NOTE = CopyNote(
    writer="rlmm 0.1.0",
    job_id="job-20231114",
    source_log=ContentDigest(LOG_BYTES, bytes(range(32)), 0xAE8B14860A799888),
    log_object=ContentDigest(sum(STORED_SIZES), bytes(range(1, 33)), 1),
    indexes_object=ContentDigest(6034, bytes(range(2, 34)), 2**64 - 1),
)
ENCRYPTION = SegmentEncryption("key-1", bytes(range(256)), bytes(range(32)))


def recorded(name: str) -> bytes:
    return (MANIFESTS / f"{name}.rsm-manifest").read_bytes()


def indexes(*, has_aborted: bool = False) -> SegmentIndexes:
    return lay_out_indexes(PART_SIZES | ({SegmentPart.TXN_INDEX: 34} if has_aborted else {}))


def plain_manifest(*, has_aborted: bool = False) -> Manifest:
    chunks = plain_chunks(LOG_BYTES, CHUNK_BYTES)
    return Manifest(chunks, indexes(has_aborted=has_aborted), False, DESCRIBED)


def zstd_manifest(*, has_aborted: bool = False) -> Manifest:
    chunks = VariableChunks(CHUNK_BYTES, LOG_BYTES, STORED_SIZES)
    return Manifest(chunks, indexes(has_aborted=has_aborted), True, DESCRIBED)
