"""
The lines of JSON of a backup, both ways. Pure.

    {"format": "rlmm-metadata-backup", "version": 1, "cluster_id": ..., "extents": [...], ...}
    {"metadata_partition": 3, "offset": 17, "timestamp_ms": ..., "key": null, "value": "AQAA...",
     "event": {"kind": "segment", "state": "COPY_SEGMENT_STARTED", "topic": "orders", ...}}
    {"end": true, "records": 1234, "lost": 0, "sha256": "...", "lines_sha256": "..."}

Keys and values are base64. The event's fields are for people; a reader uses `value` alone. The last
line has digests of the records and of all lines before it, so that any change is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from rlmm.inspection.event_record import EventRecord
from rlmm.log.protocol import LogIdentity
from rlmm.metadata.decoding import decode
from rlmm.metadata.ids import Uuid
from rlmm.metadata.verdicts import APPLIED, Undecodable
from rlmm.views.event import event_view
from rlmm.views.values import plain
from spark_tiering.layout.strict_json import Count64, plain_values
from spark_tiering.maintenance.backup.rows import (
    FORMAT,
    VERSION,
    BackupExtent,
    BackupHeader,
    BackupRow,
    Footer,
    LostOffsets,
    Place,
)
from spark_tiering.maintenance.json_lines import (
    LineFault,
    PartitionCount,
    require_format,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOLD = (
    "kind", "state", "topic", "topic_id", "partition", "segment_id", "start_offset", "last_offset",
    "epochs", "size_bytes", "max_timestamp_ms", "txn_index_empty", "broker_id",
    "event_timestamp_ms", "custom_metadata",
)  # fmt: skip
"""The fields of an event for people, by their names in `rlmm events`."""
REASON_MAX: Final = 400
"""Characters of a reason why a metadata partition is missing; more are cut off."""


def event_of(row: BackupRow) -> dict[str, Any]:
    """Return the content of a record for people; of one that cannot be decoded, why."""
    decoded = decode(row.value)
    if isinstance(decoded, Undecodable):
        return {"undecodable": str(decoded.reason), "detail": decoded.detail}
    happened = EventRecord(
        row.place, row.offset, row.next_offset, row.timestamp_ms, decoded, APPLIED, row.value
    )
    view = plain(event_view(happened))
    return {name: view[name] for name in _TOLD if view[name] is not None}


class _HeaderLine(msgspec.Struct):
    format: str
    version: int
    cluster_id: str
    topic_id: Uuid
    partition_count: PartitionCount
    extents: list[tuple[Place, Count64, Count64]]
    missing: list[tuple[Place, Any]]


def header_fields(header: BackupHeader) -> dict[str, Any]:
    identity = header.identity
    line = _HeaderLine(
        FORMAT,
        VERSION,
        identity.cluster_id,
        identity.topic_id,
        identity.partition_count,
        [(n, one.first_offset, one.next_offset) for n, one in sorted(header.extents.items())],
        sorted(header.missing.items()),
    )
    fields: dict[str, Any] = plain_values(line)
    return fields


def footer_fields(footer: Footer, lines_sha256: str = "") -> dict[str, Any]:
    fields = {"end": True, **plain_values(footer)}
    return fields | ({"lines_sha256": lines_sha256} if lines_sha256 else {})


def row_fields(row: BackupRow | LostOffsets) -> dict[str, Any]:
    fields: dict[str, Any] = plain_values(row)
    return fields if isinstance(row, LostOffsets) else fields | {"event": event_of(row)}


def parse_header(found: Mapping[str, Any]) -> BackupHeader:
    """Raise `LineFault`."""
    require_format(found, FORMAT, VERSION, "backup of a metadata topic")
    line = typed(found, _HeaderLine)
    count = line.partition_count
    extents: dict[int, BackupExtent] = {}
    for place, first, behind in line.extents:
        if first > behind or place in extents or place >= count:
            raise LineFault("extents: each metadata partition once, its start before its end")
        extents[place] = BackupExtent(first, behind)
    missing = {place: str(why)[:REASON_MAX] for place, why in line.missing}
    if any(place >= count for place in missing):
        raise LineFault("missing: there is no such metadata partition")
    return BackupHeader(LogIdentity(line.cluster_id, line.topic_id, count), extents, missing)


def parse_footer(found: Mapping[str, Any]) -> tuple[Footer, str]:
    """Return the footer and the digest of the lines. Raise `LineFault`."""
    return typed(found, Footer), str(found.get("lines_sha256", ""))


def parse_row(found: Mapping[str, Any]) -> BackupRow | LostOffsets:
    """Raise `LineFault`."""
    row: BackupRow | LostOffsets
    if "lost" in found:
        row = typed(found, LostOffsets)
        texts = [row.why]
    else:
        row = typed(found, BackupRow)
        texts = [name for name, _ in row.headers]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        raise LineFault("a text that is not UTF-8") from error
    return row
