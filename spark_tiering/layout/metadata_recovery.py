"""
The recovery of a segment's metadata from its manifest, where the metadata itself is lost. Pure.
Size and state are inferred: the manifest is written last. Broker and time are those of the start,
and an empty transaction index is always said, which brokers before 4.0 did not. A manifest that
contradicts its key or itself is refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import InvalidArgument
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.layout.custom_metadata import (
    CUSTOM_METADATA_BYTES_MAX,
    CustomMetadata,
    format_custom_metadata,
)
from spark_tiering.layout.encryption import SEALED_BYTES
from spark_tiering.layout.findings import LayoutFault, LayoutFinding
from spark_tiering.layout.manifest_document import parse_manifest
from spark_tiering.layout.object_names import ObjectKind, main_key

if TYPE_CHECKING:
    from spark_tiering.layout.manifest import Manifest, SegmentDescription
    from spark_tiering.layout.object_names import ObjectName


class CustomFields(StrEnum):
    """Lists the values of the plugin's `custom.metadata.fields.include`. The list is closed."""

    NONE = "none"
    """Its default: records have no custom metadata at all."""
    REMOTE_SIZE = "remote-size"
    """The fields that copies of rlmm have."""
    ALL = "all"


class RecoveredSegment(NamedTuple):
    segment: SegmentMetadata
    manifest: Manifest


def recover_segment(
    name: ObjectName,
    content: bytes,
    *,
    prefix: str = "",
    fields: CustomFields = CustomFields.NONE,
    custom_bytes_max: int = CUSTOM_METADATA_BYTES_MAX,
) -> RecoveredSegment | LayoutFinding:
    """Return the metadata of a manifest's finished segment, below *prefix*; or why not."""
    manifest = parse_manifest(content)
    if isinstance(manifest, LayoutFinding):
        return manifest
    segment = recover_from(
        name,
        manifest,
        len(content),
        prefix=prefix,
        fields=fields,
        custom_bytes_max=custom_bytes_max,
    )
    return segment if isinstance(segment, LayoutFinding) else RecoveredSegment(segment, manifest)


def recover_from(
    name: ObjectName,
    manifest: Manifest,
    manifest_bytes: int,
    *,
    prefix: str = "",
    fields: CustomFields = CustomFields.NONE,
    custom_bytes_max: int = CUSTOM_METADATA_BYTES_MAX,
) -> SegmentMetadata | LayoutFinding:
    """Recover from a manifest of *manifest_bytes* bytes that was read before."""
    described = manifest.described
    if described is None:
        detail = "remoteLogSegmentMetadata: nothing else tells offsets and leader epochs"
        return LayoutFinding(LayoutFault.FIELD_MISSING, detail)
    if isinstance(described, LayoutFinding):
        return described
    contradiction = _contradiction(name, described)
    if contradiction is not None:
        return LayoutFinding(LayoutFault.INCONSISTENT, contradiction)
    try:
        custom = custom_metadata_of(
            name, manifest, manifest_bytes, prefix, fields, custom_bytes_max
        )
        return SegmentMetadata(
            described.segment_id,
            described.start_offset,
            described.last_offset,
            described.broker_id,
            described.max_timestamp_ms,
            described.event_timestamp_ms,
            described.epochs,
            manifest.chunks.original_bytes,
            custom,
            SegmentState.COPY_SEGMENT_FINISHED,
            txn_index_empty=not has_transactions(manifest),
        )
    except InvalidArgument as error:
        return LayoutFinding(LayoutFault.INCONSISTENT, str(error)[:400])


def custom_metadata_of(
    name: ObjectName,
    manifest: Manifest,
    manifest_bytes: int,
    prefix: str,
    fields: CustomFields,
    bytes_max: int = CUSTOM_METADATA_BYTES_MAX,
) -> bytes | None:
    """Format it as the plugin does. Raise `InvalidArgument` where it is too long."""
    if fields is CustomFields.NONE:
        return None
    size_bytes = manifest.chunks.stored_bytes + manifest.indexes.size_bytes + manifest_bytes
    custom = CustomMetadata(remote_size_bytes=size_bytes)
    if fields is CustomFields.ALL:
        custom = CustomMetadata(size_bytes, prefix, main_key(name.segment_id, name.start_offset))
    return format_custom_metadata(custom, bytes_max)


def has_transactions(manifest: Manifest) -> bool:
    place = manifest.indexes.transaction
    # Each part is sealed by itself, a vector before it and a tag behind it.
    empty_bytes = SEALED_BYTES if manifest.is_encrypted else 0
    return place is not None and place.size_bytes > empty_bytes


def _contradiction(name: ObjectName, described: SegmentDescription) -> str | None:
    if name.kind is not ObjectKind.MANIFEST:
        return f"the key is that of a segment's {name.kind}, and no manifest's"
    for what, says, key_says in (
        ("segment", described.segment_id, name.segment_id),
        ("start offset", described.start_offset, name.start_offset),
    ):
        if says != key_says:
            return f"{what} {says}, its key says {key_says}"
    # One list of epochs for one range: brokers cut it to the segment at both of its ends.
    for epoch, first in (described.epochs[0], described.epochs[-1]):
        if not described.start_offset <= first <= described.last_offset:
            return (
                f"leader epoch {epoch} begins at {first}, outside of the offsets "
                f"{described.start_offset} to {described.last_offset}"
            )
    return None
