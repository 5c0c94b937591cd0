"""The verification of stored objects, by length and CRC-64/NVME, with their metadata. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest import SegmentDescription, describe
from spark_tiering.layout.object_names import ObjectKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.digests import ContentDigest
    from spark_tiering.layout.manifest import Manifest


class StoredObject(NamedTuple):
    size_bytes: int
    crc64nvme: int | None = None


def verify_objects(
    manifest: Manifest, stored: Mapping[ObjectKind, StoredObject]
) -> tuple[LayoutFinding, ...]:
    note = manifest.described.note if isinstance(manifest.described, SegmentDescription) else None
    findings: list[LayoutFinding] = []
    for kind, size_bytes, digest in (
        (ObjectKind.LOG, manifest.chunks.stored_bytes, note.log_object if note else None),
        (ObjectKind.INDEXES, manifest.indexes.size_bytes, note.indexes_object if note else None),
    ):
        found = stored.get(kind)
        if found is None:
            findings.append(LayoutFinding(LayoutFault.MISSING, f"{kind}: there is no such object"))
            continue
        findings += _differences(kind, found, size_bytes, digest)
    if not manifest.indexes.is_gapless:
        detail = "indexes: parts overlap, or do not follow one another"
        findings.append(LayoutFinding(LayoutFault.INCONSISTENT, detail))
    return tuple(findings)


def _differences(
    kind: ObjectKind, found: StoredObject, size_bytes: int, digest: ContentDigest | None
) -> list[LayoutFinding]:
    findings = []
    if found.size_bytes != size_bytes:
        detail = f"{kind}: {found.size_bytes} bytes, its manifest says {size_bytes}"
        findings.append(LayoutFinding(LayoutFault.LENGTH, detail))
    if digest is not None and digest.size_bytes != size_bytes:
        detail = f"{kind}: digest of {digest.size_bytes} bytes, expected {size_bytes}"
        findings.append(LayoutFinding(LayoutFault.INCONSISTENT, detail))
    if digest is not None and found.crc64nvme not in (None, digest.crc64nvme):
        detail = f"{kind}: CRC-64/NVME {found.crc64nvme:016x}, expected {digest.crc64nvme:016x}"
        findings.append(LayoutFinding(LayoutFault.DAMAGED, detail))
    return findings


def verify_segment(manifest: Manifest, segment: SegmentMetadata) -> tuple[LayoutFinding, ...]:
    """
    Return where a manifest contradicts the metadata, but for broker and event time. A transaction
    index that only the metadata has is no contradiction: brokers before 4.0 leave it so.
    """
    findings: list[LayoutFinding] = []
    original_bytes = manifest.chunks.original_bytes
    if original_bytes != segment.size_bytes:
        detail = f"a log of {original_bytes} bytes, the metadata says {segment.size_bytes}"
        findings.append(LayoutFinding(LayoutFault.INCONSISTENT, detail))
    transaction = manifest.indexes.transaction
    txn_index_bytes = 0 if transaction is None else transaction.size_bytes
    if segment.txn_index_empty and txn_index_bytes:
        detail = f"a transaction index of {txn_index_bytes} bytes, the metadata says empty"
        findings.append(LayoutFinding(LayoutFault.INCONSISTENT, detail))
    described = manifest.described
    if isinstance(described, LayoutFinding):
        findings.append(described)
    elif described is not None:
        expected = describe(segment)
        for name in ("segment_id", "start_offset", "last_offset", "max_timestamp_ms", "epochs"):
            says, known = getattr(described, name), getattr(expected, name)
            if says != known:
                detail = f"{name} {says}, the metadata says {known}"
                findings.append(LayoutFinding(LayoutFault.INCONSISTENT, detail[:400]))
    return tuple(findings)
