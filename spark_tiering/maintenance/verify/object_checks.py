"""Object checks by manifest and metadata: three requests for a segment without faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.findings import tier_findings as tier_kinds
from spark_tiering.layout.findings import LayoutFault
from spark_tiering.layout.manifest import SegmentDescription
from spark_tiering.layout.object_names import ObjectKind
from spark_tiering.layout.object_verification import verify_objects, verify_segment
from spark_tiering.maintenance.verify.values import SegmentFault, plain
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable, finding_kind
from spark_tiering.segment_reading.tiered import find_manifest
from spark_tiering.stores.results import ObjectArchived, ObjectFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.findings.finding import FindingKind
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.layout.findings import LayoutFinding
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.maintenance.verify.values import Offsets
    from spark_tiering.segment_reading.protocol import ObjectReader
    from spark_tiering.segment_reading.tiered import KeyPlaces, Keys

OBJECTS: Final = len(ObjectKind)
REQUESTS: Final = 3
"""Of a segment without faults: one read of its manifest, and two looks."""

_KINDS: Final[Mapping[LayoutFault, FindingKind]] = {
    LayoutFault.MISSING: tier_kinds.OBJECT_MISSING,
    LayoutFault.LENGTH: tier_kinds.OBJECT_LENGTH,
    LayoutFault.DAMAGED: tier_kinds.OBJECT_DAMAGED,
}


class ObjectChecks(NamedTuple):
    """Holds the faults, and the data that a reader of the segment needs."""

    faults: tuple[SegmentFault, ...]
    keys: Keys | None = None
    manifest: Manifest | None = None
    stored_bytes: Mapping[ObjectKind, int] = {}
    """The bytes that exist and can be read at once."""


def examine_objects(
    store: ObjectReader, segment: SegmentMetadata, places: KeyPlaces
) -> ObjectChecks:
    """Check a segment without reading its content. Raise the errors of the store."""
    whole = ((segment.start_offset, segment.last_offset),)
    try:
        keys, manifest = find_manifest(store, segment, places)
    except SegmentUnreadable as unreadable:
        return ObjectChecks(_without_manifest(store, segment, places, unreadable, whole))
    note = manifest.described
    is_sum_wanted = isinstance(note, SegmentDescription) and note.note is not None
    facts = {}
    for kind in (ObjectKind.LOG, ObjectKind.INDEXES):
        found = store.head(keys[kind], is_sum_wanted=is_sum_wanted)
        if isinstance(found, ObjectFacts):
            facts[kind] = found
    stored = {kind: one.stored for kind, one in facts.items()}
    faults = [_of_object(found, keys, whole) for found in verify_objects(manifest, stored)]
    faults += [
        _mismatch(found, keys, whole if _is_about_size(manifest, segment, found) else ())
        for found in verify_segment(manifest, segment)
    ]
    for kind, one in facts.items():
        if one.is_archived:
            detail = plain(str(ObjectArchived(keys[kind], one.storage_class)))
            code = tier_kinds.OBJECT_ARCHIVED.code
            faults.append(SegmentFault(code, kind, keys[kind], detail, whole))
    sizes = {kind: one.size_bytes for kind, one in facts.items() if not one.is_archived}
    return ObjectChecks(tuple(faults), keys, manifest, sizes)


def _without_manifest(
    store: ObjectReader,
    segment: SegmentMetadata,
    places: KeyPlaces,
    unreadable: SegmentUnreadable,
    whole: Offsets,
) -> tuple[SegmentFault, ...]:
    """Report the missing or unusable manifest, and the other missing objects."""
    faults = [of_unreadable(unreadable, ObjectKind.MANIFEST, whole)]
    if unreadable.fault is ReadFault.MISMATCH:  # no store can have such keys
        return tuple(faults)
    (keys, *_) = places.candidates(segment.id, segment.start_offset, segment.custom_metadata)
    for kind in (ObjectKind.LOG, ObjectKind.INDEXES):
        if not isinstance(store.head(keys[kind], is_sum_wanted=False), ObjectFacts):
            detail = f"{kind}: there is no such object"
            faults.append(
                SegmentFault(tier_kinds.OBJECT_MISSING.code, kind, keys[kind], detail, whole)
            )
    return tuple(faults)


def of_unreadable(unreadable: SegmentUnreadable, part: str, lost: Offsets) -> SegmentFault:
    kind = finding_kind(unreadable.fault)
    return SegmentFault(kind.code, part, plain(unreadable.where), plain(unreadable.detail), lost)


def _of_object(found: LayoutFinding, keys: Keys, whole: Offsets) -> SegmentFault:
    """Return a finding of `verify_objects`, which begins with the object's kind."""
    name = ObjectKind(found.detail.partition(":")[0])
    kind = _KINDS.get(found.kind)
    if kind is None:  # the manifest contradicts itself
        return _mismatch(found, keys, whole)
    return SegmentFault(kind.code, name, keys[name], plain(found.detail), whole)


def _mismatch(found: LayoutFinding, keys: Keys, lost: Offsets) -> SegmentFault:
    code, key = tier_kinds.MANIFEST_MISMATCH.code, keys[ObjectKind.MANIFEST]
    return SegmentFault(code, ObjectKind.MANIFEST, key, plain(found.detail), lost)


def _is_about_size(manifest: Manifest, segment: SegmentMetadata, found: LayoutFinding) -> bool:
    """Return whether readers would get other bytes: they go by both sizes."""
    is_other_size = manifest.chunks.original_bytes != segment.size_bytes
    return is_other_size and found.detail.startswith("a log of")
