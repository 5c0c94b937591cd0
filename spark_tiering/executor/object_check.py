"""The check of a segment's objects by manifest and metadata. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import StoreError
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.layout.findings import LayoutFinding
from spark_tiering.layout.manifest import SegmentDescription
from spark_tiering.layout.manifest_document import MANIFEST_BYTES_MAX, parse_manifest
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.layout.object_verification import verify_objects, verify_segment
from spark_tiering.stores.content import sum_of
from spark_tiering.stores.object_reading import read_whole
from spark_tiering.stores.results import ObjectAbsent, ObjectArchived, ObjectFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.layout.object_verification import StoredObject
    from spark_tiering.stores.protocol import ObjectStore


class StoredSegmentState(NamedTuple):
    """Describes the stored objects of a segment; *findings* hold faults and remarks."""

    objects: StoredObjects
    facts: Mapping[ObjectKind, ObjectFacts]
    manifest: Manifest | None = None
    findings: tuple[str, ...] = ()

    @property
    def stored_bytes(self) -> int:
        return sum(facts.size_bytes for facts in self.facts.values())


def look(store: ObjectStore, segment: SegmentMetadata, prefix: str = "") -> StoredObjects:
    """Look at an open copy by at most four requests; without a manifest it is at most `PARTIAL`."""
    try:
        return examine(store, segment, prefix).objects
    except StoreError:
        return StoredObjects.UNKNOWN


def examine(
    store: ObjectStore, segment: SegmentMetadata, prefix: str = "", *, is_sure: bool = False
) -> StoredSegmentState:
    """Return the state in detail; raises the store's errors. *is_sure* reads for lacking sums."""
    keys = object_keys(segment.id, segment.start_offset, prefix)
    found = {kind: store.head(key) for kind, key in keys.items()}
    facts = {kind: one for kind, one in found.items() if isinstance(one, ObjectFacts)}
    if ObjectKind.MANIFEST not in facts:
        lacking = tuple(f"{kind}: there is no such object" for kind in found if kind not in facts)
        return StoredSegmentState(
            StoredObjects.PARTIAL if facts else StoredObjects.NONE, facts, None, lacking
        )
    manifest = read_manifest(store, keys[ObjectKind.MANIFEST])
    if isinstance(manifest, ObjectArchived):
        return StoredSegmentState(StoredObjects.UNKNOWN, facts, None, (str(manifest),))
    if isinstance(manifest, ObjectAbsent):
        # It went away after it was asked for: somebody ends this copy.
        return StoredSegmentState(
            StoredObjects.UNKNOWN, facts, None, (f"{manifest.key}: it went away",)
        )
    if isinstance(manifest, LayoutFinding):
        return StoredSegmentState(StoredObjects.DAMAGED, facts, None, (f"manifest: {manifest}",))
    stored: dict[ObjectKind, StoredObject] = {
        kind: one.stored for kind, one in facts.items() if kind is not ObjectKind.MANIFEST
    }
    archived = tuple(
        str(ObjectArchived(keys[kind], one.storage_class))
        for kind, one in facts.items()
        if one.is_archived
    )
    if is_sure:
        unread = _read_sums(store, keys, facts, manifest, stored)
        if unread:
            return StoredSegmentState(StoredObjects.UNKNOWN, facts, manifest, (*unread, *archived))
    wrong = (*verify_objects(manifest, stored), *verify_segment(manifest, segment))
    objects = StoredObjects.DAMAGED if wrong else StoredObjects.WHOLE
    return StoredSegmentState(objects, facts, manifest, (*map(str, wrong), *archived))


def read_manifest(
    store: ObjectStore, key: str
) -> Manifest | LayoutFinding | ObjectAbsent | ObjectArchived:
    got = store.get(key, 0, MANIFEST_BYTES_MAX)
    if isinstance(got, ObjectAbsent | ObjectArchived):
        return got
    return parse_manifest(got if isinstance(got, bytes) else b"")


def _read_sums(
    store: ObjectStore,
    keys: Mapping[ObjectKind, str],
    facts: Mapping[ObjectKind, ObjectFacts],
    manifest: Manifest,
    stored: dict[ObjectKind, StoredObject],
) -> list[str]:
    """Read sums that the store does not tell into *stored*; return the unreadable objects."""
    described = manifest.described
    if not isinstance(described, SegmentDescription) or described.note is None:
        return []
    unread = []
    for kind, one in list(stored.items()):
        if one.crc64nvme is None and facts[kind].is_archived:
            unread.append(f"{kind}: it cannot be read, and its checksum is not told")
        elif one.crc64nvme is None:
            try:
                whole = sum_of(read_whole(store, keys[kind], one.size_bytes))
            except OSError as error:
                unread.append(str(error))
            else:
                stored[kind] = one._replace(crc64nvme=whole.crc64nvme)
    return unread
