"""
The rows of a backup, and their lines of JSON, both ways. Pure.

    {"format": "rlmm-metadata-backup", "version": 1, "cluster_id": ..., "extents": [...], ...}
    {"metadata_partition": 3, "offset": 17, "timestamp_ms": ..., "key": null, "value": "AQAA...",
     "event": {"kind": "segment", "state": "COPY_SEGMENT_STARTED", "topic": "orders", ...}}
    {"end": true, "records": 1234, "lost": 0, "sha256": "...", "lines_sha256": "..."}

Keys and values are base64. The event's fields are for people; a reader uses `value` alone. The last
line has digests: of the records, which no form of the file changes, and of all lines before it.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from rlmm.inspection.event_record import EventRecord
from rlmm.log.protocol import LogIdentity
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from rlmm.metadata.decoding import decode
from rlmm.metadata.ids import INT64_MAX, Uuid
from rlmm.metadata.verdicts import APPLIED, Undecodable
from rlmm.records.records import Record
from rlmm.views.event import event_view
from rlmm.views.values import plain
from spark_tiering.layout.strict_json import Count64, Int64, plain_values
from spark_tiering.maintenance.json_lines import (
    LineFault,
    PartitionCount,
    Sha256,
    require_format,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "rlmm-metadata-backup"
VERSION: Final = 1

Place = Annotated[int, msgspec.Meta(ge=0, le=PARTITION_COUNT_MAX)]
_HEAD = struct.Struct(">cIqq")
_SIZE = struct.Struct(">i")
_NONE = _SIZE.pack(-1)


class BackupRow(msgspec.Struct, frozen=True, omit_defaults=True):
    place: Place = msgspec.field(name="metadata_partition")
    offset: Count64
    timestamp_ms: Int64
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def next_offset(self) -> int:
        return self.offset + 1

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
        """Return the parts that do not depend on where and when the record was stored."""
        return self.key, self.value, self.headers

    @property
    def record(self) -> Record:
        return Record(self.offset, self.timestamp_ms, self.key, self.value, self.headers)

    @property
    def size_bytes(self) -> int:
        return (
            len(self.key or b"")
            + len(self.value or b"")
            + sum(len(name) + len(value or b"") for name, value in self.headers)
        )


class LostOffsets(msgspec.Struct, frozen=True):
    """Offsets [offset, next_offset) that existed and could not be read."""

    place: Place = msgspec.field(name="metadata_partition")
    offset: Count64
    next_offset: Count64
    why: str = msgspec.field(name="lost")


@dataclass(frozen=True, slots=True)
class BackupExtent:
    """The extent of a metadata partition when its backup began."""

    first_offset: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class BackupHeader:
    identity: LogIdentity
    extents: Mapping[int, BackupExtent]
    missing: Mapping[int, str] = field(default_factory=dict)
    """Metadata partitions that could not be read at all, and why."""


class Footer(msgspec.Struct, frozen=True):
    records: Count64
    lost: Count64
    sha256: Sha256
    """Of the records; see `BackupDigest`."""


class BackupDigest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.records = 0
        self.lost = 0

    def add(self, row: BackupRow | LostOffsets) -> None:
        if isinstance(row, LostOffsets):
            self.lost += row.next_offset - row.offset
            head = _HEAD.pack(b"L", row.place, row.offset, row.next_offset)
            self._hash.update(head + _part(row.why.encode()))
            return
        self.records += 1
        parts = [_HEAD.pack(b"R", row.place, row.offset, row.timestamp_ms)]
        parts += (_part(row.key), _part(row.value), _SIZE.pack(len(row.headers)))
        for name, value in row.headers:
            parts += (_part(name.encode()), _part(value))
        self._hash.update(b"".join(parts))

    @property
    def footer(self) -> Footer:
        return Footer(self.records, self.lost, self._hash.hexdigest())


def _part(content: bytes | None) -> bytes:
    return _NONE if content is None else _SIZE.pack(len(content)) + content


class BackupOrder:
    """The order of rows in a backup: by metadata partition, by offset, within its extent."""

    def __init__(self, header: BackupHeader) -> None:
        self._header = header
        self._place = -1
        self._next_offset = 0

    def wrong(self, row: BackupRow | LostOffsets) -> str:
        """Return the fault of *row* behind the earlier rows; empty where there is none."""
        extent = self._header.extents.get(row.place)
        if extent is None:
            return f"metadata partition {row.place} is not one of the header's"
        if row.place < self._place:
            return f"metadata partition {row.place} behind {self._place}"
        if row.place > self._place:
            self._place, self._next_offset = row.place, extent.first_offset
        if row.offset < self._next_offset:
            return f"offset {row.offset} of metadata partition {row.place} comes too late"
        if not row.offset < row.next_offset <= extent.next_offset:
            return f"offset {row.offset} of metadata partition {row.place} is beyond the header's"
        if isinstance(row, BackupRow) and not -1 <= row.timestamp_ms <= INT64_MAX:
            return f"offset {row.offset} of metadata partition {row.place} has no possible time"
        self._next_offset = row.next_offset
        return ""


_TOLD = (
    "kind", "state", "topic", "topic_id", "partition", "segment_id", "start_offset", "last_offset",
    "epochs", "size_bytes", "max_timestamp_ms", "txn_index_empty", "broker_id",
    "event_timestamp_ms", "custom_metadata",
)  # fmt: skip
"""The fields of an event for people, by their names in `rlmm events`."""


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
    require_format(found, FORMAT, VERSION, "backup of a metadata topic")
    line = typed(found, _HeaderLine)
    count = line.partition_count
    extents: dict[int, BackupExtent] = {}
    for place, first, behind in line.extents:
        if first > behind or place in extents or place >= count:
            raise LineFault("extents: each metadata partition once, its start before its end")
        extents[place] = BackupExtent(first, behind)
    missing = {place: str(why)[:400] for place, why in line.missing}
    if any(place >= count for place in missing):
        raise LineFault("missing: there is no such metadata partition")
    return BackupHeader(LogIdentity(line.cluster_id, line.topic_id, count), extents, missing)


def parse_footer(found: Mapping[str, Any]) -> tuple[Footer, str]:
    """Return the footer and the digest of the lines. Raise `LineFault`."""
    return typed(found, Footer), str(found.get("lines_sha256", ""))


def parse_row(found: Mapping[str, Any]) -> BackupRow | LostOffsets:
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
