"""Object keys of a segment in the layout of the storage plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.object_names import ObjectKind, main_key

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata


def object_places(segment: SegmentMetadata, prefix: str = "") -> dict[str, str] | None:
    """
    Return the keys of a segment's objects: `log`, `indexes`, `manifest`. None for a topic name that
    no broker allows.

    *prefix* is the prefix that brokers are configured with. Custom metadata with another prefix or
    key overrides it for log and indexes; the manifest is always under *prefix*.
    """
    custom = stored_fields(segment) or CustomMetadata()
    try:
        main = main_key(segment.id, segment.start_offset)
    except InvalidArgument:
        return None
    named = (prefix if custom.prefix is None else custom.prefix) + (custom.main_key or main)
    return {
        "log": f"{named}.{ObjectKind.LOG}",
        "indexes": f"{named}.{ObjectKind.INDEXES}",
        "manifest": f"{prefix}{main}.{ObjectKind.MANIFEST}",
    }


def stored_fields(segment: SegmentMetadata) -> CustomMetadata | None:
    """Return the plugin's fields in custom metadata; None without any, or for another plugin."""
    if segment.custom_metadata is None:
        return None
    found = parse_custom_metadata(segment.custom_metadata)
    return found if isinstance(found, CustomMetadata) else None
