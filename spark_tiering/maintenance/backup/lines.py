"""
A backup as lines of JSON, both ways. Pure.

    {"format": "rlmm-metadata-backup", "version": 1, "cluster_id": ..., "extents": [...], ...}
    {"metadata_partition": 3, "offset": 17, "timestamp_ms": ..., "key": null, "value": "AQAA...",
     "event": {"kind": "segment", "state": "COPY_SEGMENT_STARTED", "topic": "orders", ...}}
    ...
    {"end": true, "records": 1234, "lost": 0, "sha256": "...", "lines_sha256": "..."}

Keys and values are base64. What an event says stands there for people and for tools; who reads a
backup goes by `value` alone. The last line has a digest of the records, and one of all lines before
it: a file that was cut, or changed anywhere, is no backup any more.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from rlmm.errors import InvalidArgument
from rlmm.inspection.event_record import EventRecord
from rlmm.log.protocol import LogIdentity
from rlmm.log.request_checks import PARTITION_COUNT_MAX
from rlmm.metadata.decoding import decode
from rlmm.metadata.ids import INT64_MAX, INT64_MIN, Uuid
from rlmm.metadata.verdicts import APPLIED, Undecodable
from rlmm.views.event import event_view
from rlmm.views.values import plain
from spark_tiering.maintenance.backup.rows import (
    FORMAT,
    VERSION,
    BackupExtent,
    BackupHeader,
    BackupRow,
    Footer,
    LostOffsets,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LINE_BYTES_MAX = 64 * 1024 * 1024
"""Longer ones are not looked at: the largest batch that any log here takes is smaller."""

_TOLD = (
    "kind", "state", "topic", "topic_id", "partition", "segment_id", "start_offset", "last_offset",
    "epochs", "size_bytes", "max_timestamp_ms", "txn_index_empty", "broker_id",
    "event_timestamp_ms", "custom_metadata",
)  # fmt: skip
"""What is told of an event, by its names in `rlmm events`."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BackupLineFault(Exception):
    """Says in a line what is wrong with one; whoever reads the file says where."""


def event_of(row: BackupRow) -> dict[str, Any]:
    """What a record says, for people; where nobody understands it, why."""
    decoded = decode(row.value)
    if isinstance(decoded, Undecodable):
        return {"undecodable": str(decoded.reason), "detail": decoded.detail}
    happened = EventRecord(
        row.place, row.offset, row.next_offset, row.timestamp_ms, decoded, APPLIED, row.value
    )
    view = plain(event_view(happened))
    return {name: view[name] for name in _TOLD if view[name] is not None}


# ------------------------------------------------------------------------------------- writing


def header_fields(header: BackupHeader) -> dict[str, Any]:
    """The header, as an object of JSON."""
    identity = header.identity
    return {
        "format": FORMAT,
        "version": VERSION,
        "cluster_id": identity.cluster_id,
        "topic_id": str(identity.topic_id),
        "partition_count": identity.partition_count,
        "extents": [
            [place, extent.first_offset, extent.next_offset]
            for place, extent in sorted(header.extents.items())
        ],
        "missing": [[place, why] for place, why in sorted(header.missing.items())],
    }


def footer_fields(footer: Footer, lines_sha256: str = "") -> dict[str, Any]:
    """The footer, as an object of JSON."""
    fields: dict[str, Any] = {
        "end": True,
        "records": footer.records,
        "lost": footer.lost,
        "sha256": footer.sha256,
    }
    return fields | ({"lines_sha256": lines_sha256} if lines_sha256 else {})


def row_fields(row: BackupRow | LostOffsets) -> dict[str, Any]:
    """A record, as an object of JSON."""
    if isinstance(row, LostOffsets):
        return {
            "metadata_partition": row.place,
            "offset": row.offset,
            "next_offset": row.next_offset,
            "lost": row.why,
        }
    fields: dict[str, Any] = {
        "metadata_partition": row.place,
        "offset": row.offset,
        "timestamp_ms": row.timestamp_ms,
        "key": _text(row.key),
        "value": _text(row.value),
    }
    if row.headers:
        fields["headers"] = [[name, _text(value)] for name, value in row.headers]
    return fields | {"event": event_of(row)}


def line_of(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


# ------------------------------------------------------------------------------------- reading


def parse_line(line: bytes) -> dict[str, Any]:
    """The object that a line is; raises `BackupLineFault`."""
    if not line.endswith(b"\n"):
        raise BackupLineFault("the file ends in the middle of this line")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        msg = f"no JSON: {str(error)[:100]}"
        raise BackupLineFault(msg) from error
    if not isinstance(found, dict):
        raise BackupLineFault("no object of JSON")
    return found


def parse_header(found: Mapping[str, Any]) -> BackupHeader:
    """What stands before the records; raises `BackupLineFault`."""
    if found.get("format") != FORMAT:
        raise BackupLineFault("no backup of a metadata topic: its first line is another one's")
    if type(found.get("version")) is not int or found["version"] != VERSION:
        msg = f"version {str(found.get('version'))[:40]!r}, this build reads {VERSION}"
        raise BackupLineFault(msg)
    count = _number(found, "partition_count", 1, PARTITION_COUNT_MAX)
    try:
        identity = LogIdentity(
            _string(found, "cluster_id"), Uuid.parse(_string(found, "topic_id")), count
        )
    except InvalidArgument as error:
        raise BackupLineFault(str(error)[:200]) from error
    extents: dict[int, BackupExtent] = {}
    for one in _list(found, "extents"):
        if not isinstance(one, list) or len(one) != 3:
            raise BackupLineFault("extents: a list of three numbers each")
        place, first, behind = one
        if not (_is_number(place, 0, count - 1) and _is_number(first) and _is_number(behind)):
            raise BackupLineFault("extents: a metadata partition and two offsets each")
        if first > behind or place in extents:
            raise BackupLineFault("extents: each metadata partition once, its start before its end")
        extents[place] = BackupExtent(first, behind)
    missing: dict[int, str] = {}
    for one in _list(found, "missing"):
        if not isinstance(one, list) or len(one) != 2 or not _is_number(one[0], 0, count - 1):
            raise BackupLineFault("missing: a metadata partition and a reason each")
        missing[one[0]] = str(one[1])[:400]
    return BackupHeader(identity, extents, missing)


def parse_footer(found: Mapping[str, Any]) -> tuple[Footer, str]:
    """What stands behind them, and the digest of the lines; raises `BackupLineFault`."""
    sums = [_string(found, "sha256"), str(found.get("lines_sha256", ""))]
    if _SHA256.fullmatch(sums[0]) is None:
        raise BackupLineFault("sha256: 64 hexadecimal digits")
    footer = Footer(_number(found, "records"), _number(found, "lost"), sums[0])
    return footer, sums[1]


def parse_row(found: Mapping[str, Any]) -> BackupRow | LostOffsets:
    """A record; raises `BackupLineFault`."""
    place = _number(found, "metadata_partition", 0, PARTITION_COUNT_MAX)
    offset = _number(found, "offset")
    if "lost" in found:
        return LostOffsets(
            place, offset, _number(found, "next_offset"), _string(found, "lost")[:4_000]
        )
    headers = []
    for one in _list(found, "headers") if "headers" in found else ():
        if not isinstance(one, list) or len(one) != 2 or not isinstance(one[0], str):
            raise BackupLineFault("headers: a name and a value each")
        headers.append((_encodable(one[0]), _bytes(one[1], "headers")))
    return BackupRow(
        place,
        offset,
        _number(found, "timestamp_ms", INT64_MIN),
        _bytes(found.get("key", 0), "key"),
        _bytes(found.get("value", 0), "value"),
        tuple(headers),
    )


def _encodable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise BackupLineFault("headers: a name that is no UTF-8") from error
    return name


def _is_number(value: object, least: int = 0, most: int = INT64_MAX) -> bool:
    return type(value) is int and least <= value <= most


def _number(found: Mapping[str, Any], name: str, least: int = 0, most: int = INT64_MAX) -> int:
    value = found.get(name)
    if type(value) is not int or not least <= value <= most:
        msg = f"{name}: {str(value)[:40]!r}, expected a number from {least} to {most}"
        raise BackupLineFault(msg)
    return value


def _string(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        msg = f"{name}: a text is missing"
        raise BackupLineFault(msg)
    return value


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found.get(name)
    if not isinstance(value, list):
        msg = f"{name}: a list is missing"
        raise BackupLineFault(msg)
    return value


def _bytes(value: object, name: str) -> bytes | None:
    if value is None:
        return None
    msg = f"{name}: neither base64 nor null"
    if not isinstance(value, str):
        raise BackupLineFault(msg)
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:  # binascii's among them
        raise BackupLineFault(msg) from error
