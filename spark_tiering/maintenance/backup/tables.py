"""Backup tables in Parquet: columns for an event's fields; header and footer in the metadata."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from rlmm.errors import ConfigError
from spark_tiering.maintenance.backup.rows import (
    BackupRow,
    LostOffsets,
    event_of,
    footer_fields,
    header_fields,
    parse_footer,
    parse_header,
)
from spark_tiering.maintenance.json_lines import KeptOpen, LineFault, arrow_for, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.maintenance.backup.rows import BackupHeader, Footer

HEADER_KEY, FOOTER_KEY = b"rlmm.backup.header", b"rlmm.backup.footer"
ROWS_MAX: Final = 10_000
ROWS_BYTES_MAX: Final = 16 * 1024 * 1024
_STORED: Final = (
    "metadata_partition", "offset", "timestamp_ms", "key", "value", "headers", "next_offset",
    "lost",
)  # fmt: skip
_SHOWN: Final = ("kind", "state", "topic", "topic_id", "segment_id", "undecodable")
_NUMBERS: Final = ("start_offset", "last_offset", "max_timestamp_ms", "event_timestamp_ms")
_INTEGERS: Final = ("partition", "size_bytes", "broker_id")


def schema_of(arrow: Any) -> Any:
    header = arrow.struct([("name", arrow.string()), ("value", arrow.binary())])
    epoch = arrow.struct([("epoch", arrow.int32()), ("start_offset", arrow.int64())])
    return arrow.schema(
        [
            arrow.field("metadata_partition", arrow.int32(), nullable=False),
            arrow.field("offset", arrow.int64(), nullable=False),
            ("timestamp_ms", arrow.int64()),
            ("key", arrow.binary()),
            ("value", arrow.binary()),
            ("headers", arrow.list_(header)),
            ("next_offset", arrow.int64()),
            ("lost", arrow.string()),
            *((name, arrow.string()) for name in _SHOWN),
            *((name, arrow.int32()) for name in _INTEGERS),
            *((name, arrow.int64()) for name in _NUMBERS),
            ("epochs", arrow.list_(epoch)),
            ("txn_index_empty", arrow.bool_()),
            ("custom_metadata", arrow.binary()),
        ]
    )


class TableWriter:
    def __init__(self, path: Path, file: BinaryIO, header: BackupHeader) -> None:
        self._arrow = arrow_for(path)
        self._parquet = arrow_for(path, "pyarrow.parquet")
        schema = schema_of(self._arrow).with_metadata(
            {HEADER_KEY: json.dumps(header_fields(header)).encode()}
        )
        self._schema = schema
        self._writer = self._parquet.ParquetWriter(
            self._arrow.PythonFile(KeptOpen(file), "w"),
            schema,
            compression="zstd",
            write_page_checksum=True,
        )
        self._held: list[dict[str, Any]] = []
        self._held_bytes = 0

    def add(self, row: BackupRow | LostOffsets) -> None:
        self._held.append(_columns(row))
        self._held_bytes += row.size_bytes if isinstance(row, BackupRow) else 0
        if len(self._held) >= ROWS_MAX or self._held_bytes >= ROWS_BYTES_MAX:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(self._arrow.Table.from_pylist(self._held, self._schema))
        self._held, self._held_bytes = [], 0

    def give_up(self) -> None:
        """Close a table that stays incomplete; the caller removes the file."""
        with suppress(OSError, ValueError, self._arrow.ArrowException):
            self._writer.close()

    def close(self, footer: Footer) -> None:
        self._flush()
        self._writer.add_key_value_metadata({FOOTER_KEY: json.dumps(footer_fields(footer))})
        self._writer.close()


def _columns(row: BackupRow | LostOffsets) -> dict[str, Any]:
    if isinstance(row, LostOffsets):
        return {
            "metadata_partition": row.place,
            "offset": row.offset,
            "next_offset": row.next_offset,
            "lost": row.why,
        }
    event = event_of(row)
    custom = event.get("custom_metadata")
    return event | {
        "metadata_partition": row.place,
        "offset": row.offset,
        "timestamp_ms": row.timestamp_ms,
        "key": row.key,
        "value": row.value,
        "headers": [{"name": name, "value": value} for name, value in row.headers],
        "custom_metadata": None if custom is None else base64.b64decode(custom),
    }


class TableReader:
    """Raise `ConfigError` for a file that is not Parquet, and `LineFault` for no backup."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._arrow = arrow_for(path)
        try:
            self._file = arrow_for(path, "pyarrow.parquet").ParquetFile(
                path, page_checksum_verification=True
            )
        except OSError as error:
            raise ConfigError(f"{path}: {_first_line(error)}") from error
        except self._arrow.ArrowException as error:
            raise LineFault(f"no Parquet, or not a whole file: {_first_line(error)}") from error
        self._metadata: dict[bytes, bytes] = self._file.metadata.metadata or {}

    def header(self) -> BackupHeader:
        return parse_header(self._object(HEADER_KEY))

    def footer(self) -> Footer:
        return parse_footer(self._object(FOOTER_KEY))[0]

    def rows(self) -> Iterator[BackupRow | LostOffsets]:
        try:
            self._require_columns()
            for batch in self._file.iter_batches(batch_size=1_000, columns=_STORED):
                yield from map(_row, batch.to_pylist())
        except (self._arrow.ArrowException, OSError) as error:
            raise LineFault(f"it is cut, or damaged: {_first_line(error)}") from error

    def close(self) -> None:
        self._file.close()

    def _require_columns(self) -> None:
        expected = schema_of(self._arrow)
        found = self._file.schema_arrow
        for name in _STORED:
            if name not in found.names or found.field(name).type != expected.field(name).type:
                raise LineFault(f"its column {name} is not that of a backup")

    def _object(self, key: bytes) -> dict[str, Any]:
        if key not in self._metadata:
            raise LineFault("no backup of a metadata topic: a table of something else")
        return parse_line(self._metadata[key] + b"\n")


def _row(found: dict[str, Any]) -> BackupRow | LostOffsets:
    place, offset = found["metadata_partition"], found["offset"]
    if place is None or offset is None or place < 0 or offset < 0:
        raise LineFault("a record without its place")
    if found["lost"] is not None:
        next_offset = found["next_offset"]
        if next_offset is None:
            raise LineFault("records that were lost, without an end")
        return LostOffsets(place, offset, next_offset, found["lost"])
    if found["timestamp_ms"] is None:
        raise LineFault("a record without a time")
    headers = []
    for one in found["headers"] or ():
        if one is None or one["name"] is None:
            raise LineFault("a header without a name")
        headers.append((one["name"], one["value"]))
    return BackupRow(
        place, offset, found["timestamp_ms"], found["key"], found["value"], tuple(headers)
    )  # fmt: skip


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]
