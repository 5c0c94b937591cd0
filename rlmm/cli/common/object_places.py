"""Where the objects of a segment are, in the layout of the storage plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from spark_tiering.layout.custom_metadata import CustomMetadata, parse_custom_metadata
from spark_tiering.layout.object_names import ObjectKind, main_key

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata


def object_places(segment: SegmentMetadata, prefix: str = "") -> dict[str, str] | None:
    """
    The keys of a segment's objects: `log`, `indexes`, `manifest`. None where no broker can have
    made any, for a topic with such a name.

    *prefix* is what brokers are configured with. Custom metadata that names another prefix, or
    another key, speaks for log and indexes; the manifest is always under *prefix*.
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
    """What the plugin left in custom metadata; None where there is none, or another plugin's."""
    if segment.custom_metadata is None:
        return None
    found = parse_custom_metadata(segment.custom_metadata)
    return found if isinstance(found, CustomMetadata) else None
