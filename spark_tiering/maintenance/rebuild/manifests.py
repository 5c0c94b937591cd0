"""Manifests: a unit of work on an executor reads them; a fault of a set is a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import RlmmError
from rlmm.findings import tier_findings as kinds
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest_document import MANIFEST_BYTES_MAX, parse_manifest
from spark_tiering.layout.metadata_recovery import CustomFields, recover_from
from spark_tiering.layout.object_names import ObjectKind, ObjectName, object_key
from spark_tiering.layout.object_verification import StoredObject, verify_objects
from spark_tiering.stores.opening import process_store
from spark_tiering.stores.results import ObjectArchived

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.findings.finding import FindingKind
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.stores.protocol import ObjectStore


class ListedSet(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    sizes: Mapping[ObjectKind, int]
    modified_ms: int = 0
    """When its manifest was written, or, without one, another object."""

    @property
    def name(self) -> ObjectName:
        return ObjectName(self.segment_id, self.start_offset, ObjectKind.MANIFEST)

    def key(self, prefix: str) -> str:
        return object_key(self.segment_id, self.start_offset, ObjectKind.MANIFEST, prefix)


class ReadSet(NamedTuple):
    segment_id: SegmentId
    start_offset: int
    modified_ms: int
    segment: SegmentMetadata | None
    """The segment by its manifest; None where that is of no use."""
    code: str = ""
    detail: str = ""


SETS_MAX: Final = 200

_KINDS: Final = {
    LayoutFault.MISSING: kinds.OBJECT_MISSING,
    LayoutFault.LENGTH: kinds.OBJECT_LENGTH,
    LayoutFault.DAMAGED: kinds.OBJECT_DAMAGED,
}


@dataclass(frozen=True, slots=True)
class ReadTask:
    store: StoreSettings
    prefix: str
    fields: CustomFields
    custom_bytes_max: int
    sets: tuple[ListedSet, ...]


def read_sets(task: ReadTask) -> list[ReadSet]:
    return [_read(task, one) for one in task.sets]


def _read(task: ReadTask, one: ListedSet) -> ReadSet:
    size_bytes = one.sizes.get(ObjectKind.MANIFEST)
    if size_bytes is None:
        there = ", ".join(kind for kind in ObjectKind if kind in one.sizes)
        return _broken(one, kinds.INCOMPLETE_SET, f"{there} without a manifest")
    if not 0 < size_bytes <= MANIFEST_BYTES_MAX:
        detail = f"a manifest of {size_bytes} bytes, 1 to {MANIFEST_BYTES_MAX} are read"
        return _broken(one, kinds.MANIFEST_MALFORMED, detail)
    try:
        content = _got(process_store(task.store), one.key(task.prefix), size_bytes)
    except RlmmError as error:
        return _broken(one, kinds.UNREADABLE, str(error))
    if isinstance(content, bytes):
        return _recovered(task, one, content)
    return _broken(one, *content)


def _got(store: ObjectStore, key: str, size_bytes: int) -> bytes | tuple[FindingKind, str]:
    found = store.get(key, 0, size_bytes - 1)
    if isinstance(found, ObjectArchived):
        return kinds.OBJECT_ARCHIVED, str(found)
    if not isinstance(found, bytes):
        return kinds.INCOMPLETE_SET, "its manifest was deleted meanwhile"
    return found


def _recovered(task: ReadTask, one: ListedSet, content: bytes) -> ReadSet:
    manifest = parse_manifest(content)
    if isinstance(manifest, LayoutFinding):
        return _broken(one, kinds.MANIFEST_MALFORMED, str(manifest))
    faults = _faults(one, manifest)
    if faults:
        worst = faults[0]
        kind = _KINDS.get(worst.kind, kinds.MANIFEST_MALFORMED)
        return _broken(one, kind, "; ".join(str(fault) for fault in faults))
    segment = recover_from(
        one.name,
        manifest,
        len(content),
        prefix=task.prefix,
        fields=task.fields,
        custom_bytes_max=task.custom_bytes_max,
    )
    if isinstance(segment, LayoutFinding):
        is_contradiction = segment.kind is LayoutFault.INCONSISTENT
        kind = kinds.MANIFEST_MISMATCH if is_contradiction else kinds.MANIFEST_MALFORMED
        return _broken(one, kind, str(segment))
    return ReadSet(one.segment_id, one.start_offset, one.modified_ms, segment)


def _faults(one: ListedSet, manifest: Manifest) -> tuple[LayoutFinding, ...]:
    """Return the faults of log and indexes, by their lengths."""
    stored = {kind: StoredObject(size_bytes) for kind, size_bytes in one.sizes.items()}
    return verify_objects(manifest, stored)


def _broken(one: ListedSet, kind: FindingKind, detail: str) -> ReadSet:
    return ReadSet(one.segment_id, one.start_offset, one.modified_ms, None, kind.code, detail[:600])
