"""Objects of segments in a store, with their manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentState
from spark_tiering.layout.chunk_index import plain_chunks
from spark_tiering.layout.manifest import Manifest, describe
from spark_tiering.layout.manifest_document import format_manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.segment_indexes import lay_out_indexes
from spark_tiering.maintenance.rebuild.manifests import ListedSet
from spark_tiering.segments.findings import SegmentPart
from tests.support.builders import segment_id, started, tp

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from typing import Any

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

ALL = tuple(ObjectKind)
_PARTS = {
    SegmentPart.OFFSET_INDEX: 8,
    SegmentPart.TIME_INDEX: 12,
    SegmentPart.PRODUCER_SNAPSHOT: 10,
    SegmentPart.LEADER_EPOCHS: 12,
}


def whole_segment(
    label: int | str,
    start: int = 0,
    last: int = 99,
    *,
    partition: TopicIdPartition | None = None,
    **said: Any,
) -> SegmentMetadata:
    said = {"size_bytes": 40, "txn_index_empty": True, "event_timestamp_ms": start} | said
    name = segment_id(label, partition or tp())
    return started(name, start, last, state=SegmentState.COPY_SEGMENT_FINISHED, **said)


def manifest_of(segment: SegmentMetadata) -> Manifest:
    parts = _PARTS | ({} if segment.txn_index_empty else {SegmentPart.TXN_INDEX: 34})
    chunks = plain_chunks(segment.size_bytes, 1024)
    return Manifest(chunks, lay_out_indexes(parts), False, describe(segment))


def contents(segment: SegmentMetadata) -> Mapping[ObjectKind, bytes]:
    manifest = manifest_of(segment)
    return {
        ObjectKind.LOG: bytes(manifest.chunks.stored_bytes),
        ObjectKind.INDEXES: bytes(manifest.indexes.size_bytes),
        ObjectKind.MANIFEST: format_manifest(manifest),
    }


def listed(segment: SegmentMetadata, modified_ms: int = 0) -> ListedSet:
    sizes = {kind: len(content) for kind, content in contents(segment).items()}
    return ListedSet(segment.id, segment.start_offset, sizes, modified_ms)


def put_set(
    folder: Path, segment: SegmentMetadata, *, prefix: str = "", kinds: Collection[ObjectKind] = ALL
) -> dict[ObjectKind, Path]:
    folder.mkdir(exist_ok=True)
    keys = object_keys(segment.id, segment.start_offset, prefix)
    paths = {kind: folder / keys[kind] for kind in kinds}
    for kind, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents(segment)[kind])
    return paths
