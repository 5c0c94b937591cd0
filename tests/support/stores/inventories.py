"""Inventories of a bucket, as S3 writes them: into a folder, in each format."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pyarrow as pa
from pyarrow import orc, parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

BUCKET = "tier-bucket"
COLUMNS = (
    "Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "LastModifiedDate",
    "ETag", "StorageClass",
)  # fmt: skip
SNAKE = {
    "Bucket": "bucket", "Key": "key", "VersionId": "version_id", "IsLatest": "is_latest",
    "IsDeleteMarker": "is_delete_marker", "Size": "size",
    "LastModifiedDate": "last_modified_date", "ETag": "e_tag", "StorageClass": "storage_class",
}  # fmt: skip
SCHEMAS = {
    "CSV": ", ".join(COLUMNS),
    "Parquet": "message s3.inventory { required binary bucket (UTF8); required binary key (UTF8); "
    "optional binary version_id (UTF8); optional boolean is_latest; optional boolean "
    "is_delete_marker; optional int64 size; optional int64 last_modified_date "
    "(TIMESTAMP_MILLIS); optional binary e_tag (UTF8); optional binary storage_class (UTF8); }",
    "ORC": "struct<bucket:string,key:string,version_id:string,is_latest:boolean,"
    "is_delete_marker:boolean,size:bigint,last_modified_date:timestamp,e_tag:string,"
    "storage_class:string>",
}


@dataclass(frozen=True)
class Row:
    key: str
    size: int = 10
    modified_ms: int = 1_700_000_000_000
    storage_class: str = "STANDARD"
    is_latest: bool = True
    is_marker: bool = False
    bucket: str = BUCKET

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(self.modified_ms / 1_000, UTC)


def csv_bytes(rows: Iterable[Row], columns: Sequence[str] = COLUMNS) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    for row in rows:
        said = {
            "Bucket": row.bucket,
            "Key": quote_plus(row.key, safe="/"),
            "VersionId": "v1",
            "IsLatest": str(row.is_latest).lower(),
            "IsDeleteMarker": str(row.is_marker).lower(),
            "Size": "" if row.is_marker else str(row.size),
            "LastModifiedDate": f"{row.modified:%Y-%m-%dT%H:%M:%S}.000Z",
            "ETag": "e",
            "StorageClass": row.storage_class,
        }
        writer.writerow([said[column] for column in columns])
    return gzip.compress(text.getvalue().encode(), 1)


def table_of(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> pa.Table:
    held: dict[str, Any] = {
        "bucket": [row.bucket for row in rows],
        "key": [row.key for row in rows],
        "version_id": ["v1" for _ in rows],
        "is_latest": [row.is_latest for row in rows],
        "is_delete_marker": [row.is_marker for row in rows],
        "size": pa.array([None if row.is_marker else row.size for row in rows], pa.int64()),
        "last_modified_date": pa.array([row.modified for row in rows], pa.timestamp("ms", "UTC")),
        "e_tag": ["e" for _ in rows],
        "storage_class": [row.storage_class for row in rows],
    }
    return pa.table({SNAKE[column]: held[SNAKE[column]] for column in columns})


def file_bytes(kind: str, rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> bytes:
    if kind == "CSV":
        return csv_bytes(rows, columns)
    table, out = table_of(rows, columns), io.BytesIO()
    if kind == "Parquet":
        parquet.write_table(table, out)
    else:
        orc.write_table(table, out)
    return out.getvalue()


def write_inventory(
    folder: Path,
    contents: Sequence[bytes],
    kind: str = "CSV",
    created_ms: int = 1_700_500_000_000,
    **changes: Any,
) -> Path:
    data = folder / "data"
    data.mkdir(parents=True)
    named = []
    ending = {"CSV": "csv.gz", "Parquet": "parquet", "ORC": "orc"}[kind]
    for number, content in enumerate(contents):
        path = data / f"part-{number}.{ending}"
        path.write_bytes(content)
        named.append(
            {
                "key": f"lists/{BUCKET}/all/data/{path.name}",
                "size": len(content),
                "MD5checksum": hashlib.md5(content).hexdigest(),
            }
        )
    manifest = {
        "sourceBucket": BUCKET,
        "destinationBucket": "arn:aws:s3:::lists",
        "version": "2016-11-30",
        "creationTimestamp": str(created_ms),
        "fileFormat": kind,
        "fileSchema": SCHEMAS[kind],
        "files": named,
        **changes,
    }
    content = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(content)
    (folder / "manifest.checksum").write_text(hashlib.md5(content).hexdigest())
    return folder
