"""Object keys of a segment in the layout of the storage plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rlmm.errors import InvalidArgument
from rlmm.views.values import Count, TimeText, ViewObject, choice
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.object_names import ObjectKind, main_key

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata


class ObjectKeys(ViewObject):
    log: str
    indexes: str
    manifest: str


class StoredObjectView(ViewObject):
    size_bytes: Count
    crc64nvme: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")] | None
    modified_ms: int
    modified: TimeText | None
    storage_class: str
    is_archived: bool


class StoredObjectsView(ViewObject):
    log: StoredObjectView | None
    indexes: StoredObjectView | None
    manifest: StoredObjectView | None


class ObjectCheckView(ViewObject):
    found: Annotated[str, choice(["none", "partial", "whole", "damaged", "unknown"])]
    objects: StoredObjectsView
    findings: list[str]


def object_places(segment: SegmentMetadata, prefix: str = "") -> ObjectKeys | None:
    """
    Return the keys of a segment's objects; None for a topic name that no broker can have. *prefix*
    is that of the brokers. Custom metadata overrides it for log and indexes, while the manifest is
    always under *prefix*.
    """
    custom = stored_fields(segment) or CustomMetadata()
    try:
        main = main_key(segment.id, segment.start_offset)
    except InvalidArgument:
        return None
    named = (prefix if custom.prefix is None else custom.prefix) + (custom.main_key or main)
    return ObjectKeys(
        log=f"{named}.{ObjectKind.LOG}",
        indexes=f"{named}.{ObjectKind.INDEXES}",
        manifest=f"{prefix}{main}.{ObjectKind.MANIFEST}",
    )


def stored_fields(segment: SegmentMetadata) -> CustomMetadata | None:
    """Return the plugin's fields in custom metadata; None without any, or for another plugin."""
    if segment.custom_metadata is None:
        return None
    found = parse_custom_metadata(segment.custom_metadata)
    return found if isinstance(found, CustomMetadata) else None
