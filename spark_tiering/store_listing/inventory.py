"""
The manifest of a bucket's inventory: its files and its columns. Pure. S3 writes `manifest.json`,
with data files and their MD5, and `manifest.checksum`, the manifest's MD5. Files are CSV (gzip,
keys encoded as in URLs), Parquet or ORC. Of versioned buckets every version may have a row: an
object is the latest of its key, and no delete marker.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rlmm.errors import ConfigError

MANIFEST: Final = "manifest.json"
CHECKSUM: Final = "manifest.checksum"
MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
NEEDED: Final = ("key", "size", "lastmodifieddate")
"""Columns without which nothing can be judged, in the form of `column_name`."""
_MD5 = re.compile(r"[0-9a-f]{32}")


class InventoryFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"


@dataclass(frozen=True, slots=True)
class InventoryFile:
    key: str
    size_bytes: int
    md5: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """The manifest of an inventory; *columns* as `column_name` makes them, in order for CSV."""

    bucket: str
    created_ms: int
    """When that began: what was written later need not be in it."""
    format: InventoryFormat
    columns: tuple[str, ...]
    files: tuple[InventoryFile, ...]


def column_name(text: str) -> str:
    """Return one form for `LastModifiedDate` and `last_modified_date`."""
    return text.strip().replace("_", "").lower()


def check_sum(where: str, content: bytes, told: bytes) -> None:
    """Raise `ConfigError` where a manifest does not have the given MD5."""
    expected = told.decode(errors="replace").strip().strip('"').lower()
    found = md5_of(content)
    if found != expected:
        raise ConfigError(f"{where}: its MD5 is {found}, and {CHECKSUM} says {expected[:64]!r}")


def md5_of(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def parse_inventory(where: str, content: bytes) -> Inventory:
    """Raise `ConfigError` for a text that is no manifest of an inventory."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: this is no manifest of an inventory: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: this is no manifest of an inventory: no object of JSON")
    kind = _format(where, _text(where, found, "fileFormat"))
    schema = _text(where, found, "fileSchema")
    columns = _columns(kind, schema)
    lacking = [one for one in NEEDED if one not in columns]
    if lacking:
        msg = f"{where}: the inventory has no column {', '.join(lacking)}: add it to what S3 writes"
        raise ConfigError(msg)
    files = found.get("files")
    if not isinstance(files, list):
        raise ConfigError(f"{where}: the inventory names no files")
    created = str(found.get("creationTimestamp", ""))
    if not (created.isascii() and created.isdigit() and len(created) < 19):
        raise ConfigError(f"{where}: the inventory does not say when it was made: {created[:40]!r}")
    bucket = _text(where, found, "sourceBucket").removeprefix("arn:aws:s3:::")
    return Inventory(bucket, int(created), kind, columns, tuple(_file(where, one) for one in files))


def _format(where: str, text: str) -> InventoryFormat:
    try:
        return InventoryFormat(text.strip().lower())
    except ValueError as error:
        known = ", ".join(InventoryFormat)
        raise ConfigError(f"{where}: files of format {text[:40]!r}, known are {known}") from error


def _columns(kind: InventoryFormat, schema: str) -> tuple[str, ...]:
    if kind is InventoryFormat.CSV:
        return tuple(column_name(one) for one in schema.split(","))
    # "message s3.inventory { required binary key (UTF8); ...", "struct<key:string,...": the files
    # have their columns themselves.
    return tuple(dict.fromkeys(column_name(one) for one in re.findall(r"[A-Za-z_]+", schema)))


def _text(where: str, found: dict[str, Any], name: str) -> str:
    text = found.get(name)
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{where}: this is no manifest of an inventory: it has no {name}")
    return text


def _file(where: str, found: Any) -> InventoryFile:
    said = found if isinstance(found, dict) else {}
    key, size, md5 = said.get("key"), said.get("size"), said.get("MD5checksum")
    is_file = isinstance(key, str) and bool(key) and type(size) is int and size >= 0
    if not is_file or not isinstance(md5, str) or _MD5.fullmatch(md5.lower()) is None:
        msg = f"{where}: a file of the inventory has no key, size or MD5: {str(found)[:200]!r}"
        raise ConfigError(msg)
    assert isinstance(key, str)
    assert isinstance(size, int)
    return InventoryFile(key, size, md5.lower())
