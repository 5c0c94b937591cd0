"""The bytes of an extent's segment, in any process; each fault becomes one error."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import DataLost, TierUnreadable
from rlmm.findings import tier_findings as tier_kinds
from spark_tiering.data_source.extents import ExtentObjects, LogFolderSegment
from spark_tiering.layout.manifest import SegmentDescription
from spark_tiering.layout.object_names import ObjectKind, find_object_name
from spark_tiering.segment_reading.key_files import KeyRingSettings, process_key_ring
from spark_tiering.segment_reading.log_files import FolderSegment
from spark_tiering.segment_reading.protocol import ReadFault, SegmentUnreadable, finding_kind
from spark_tiering.segment_reading.tiered import TieredSegment, first_manifest
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_listing import ListedSegment
from spark_tiering.stores.opening import process_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark_tiering.data_source.extents import ReadExtent
    from spark_tiering.layout.manifest import Manifest
    from spark_tiering.segment_reading.protocol import SegmentBytes
    from spark_tiering.stores.opening import StoreSettings


@dataclass(frozen=True, slots=True)
class SegmentStorage:
    """Names the location of bytes, as it travels to workers: no client and no key."""

    store: StoreSettings | None = None
    key_ring: str = ""


def open_extent(extent: ReadExtent, storage: SegmentStorage) -> SegmentBytes:
    """Return an extent's segment; raises `SegmentUnreadable`, and the errors of the store."""
    place = extent.place
    if isinstance(place, LogFolderSegment):
        listed = ListedSegment(place.base_offset, place.next_offset)
        return FolderSegment(PartitionFolder(place.folder), listed)
    assert storage.store is not None, "objects without a store are refused with the options"
    ring = process_key_ring(KeyRingSettings(storage.key_ring)) if storage.key_ring else None
    store = process_store(storage.store)
    stem = place.log.removesuffix(f".{ObjectKind.LOG}")
    candidates = dict.fromkeys((place.manifest, f"{stem}.{ObjectKind.MANIFEST}"))
    key, manifest = first_manifest(store, candidates)
    _require_match(extent, place, key, manifest)
    keys = {ObjectKind.LOG: place.log, ObjectKind.INDEXES: place.indexes, ObjectKind.MANIFEST: key}
    return TieredSegment(store, keys, manifest, ring)


def _require_match(extent: ReadExtent, place: ExtentObjects, key: str, manifest: Manifest) -> None:
    told = ""
    if manifest.chunks.original_bytes != extent.log_bytes:
        told = f"a log of {manifest.chunks.original_bytes} bytes, expected {extent.log_bytes}"
    described = manifest.described
    if isinstance(described, SegmentDescription):
        offsets = (described.start_offset, described.last_offset)
        named = find_object_name(place.manifest)
        if offsets != (extent.segment_first, extent.segment_last):
            told = f"offsets {offsets[0]} to {offsets[1]}, expected {extent.segment_first} to "
            told += str(extent.segment_last)
        elif named is not None and described.segment_id != named[1].segment_id:
            told = f"it is that of {described.segment_id}"
    if told:
        raise SegmentUnreadable(ReadFault.MISMATCH, key, told)


@contextmanager
def told_of(extent: ReadExtent) -> Iterator[None]:
    try:
        yield
    except SegmentUnreadable as error:
        if error.fault in (ReadFault.MISSING, ReadFault.CHANGED):
            found = f"{finding_kind(error.fault).code}: {error}"
            raise DataLost(f"{extent}: {found}; it was there when this was planned") from error
        raise TierUnreadable(f"{extent}: {finding_kind(error.fault).code}: {error}") from error


def wrong_index(extent: ReadExtent, where: str, detail: str) -> TierUnreadable:
    return TierUnreadable(f"{extent}: {tier_kinds.INDEX_WRONG.code}: {where}: {detail}")


def damaged(extent: ReadExtent, where: str, detail: str) -> TierUnreadable:
    return TierUnreadable(f"{extent}: {tier_kinds.BATCH_DAMAGED.code}: {where}: {detail}")
