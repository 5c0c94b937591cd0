"""The rows of one file of an inventory, a batch at a time: CSV, Parquet or ORC."""

from __future__ import annotations

import csv
import gzip
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO
from urllib.parse import unquote_plus

from rlmm.errors import ConfigError
from spark_tiering.store_listing.inventory import NEEDED, InventoryFormat, column_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_GIVEN = (*NEEDED, "storageclass", "islatest", "isdeletemarker", "bucket")
_SIZE_MAX: Final = 2**63 - 1
ROW_CHARS_MAX: Final = 1 << 20
"""Of a row of CSV: a key has 1,024 bytes, which are three times as many when they are quoted."""
csv.field_size_limit(ROW_CHARS_MAX)


class InventoryRow(NamedTuple):
    key: str
    size_bytes: int
    modified_ms: int
    storage_class: str
    is_current: bool
    """False for a version that another has followed."""
    is_marker: bool
    """It stands for the object's absence."""
    bucket: str


def read_rows(
    file: Path, kind: InventoryFormat, columns: Sequence[str], name: str
) -> Iterator[InventoryRow]:
    """Yield the rows of *file*, called *name*, with the CSV *columns*. Raise `ConfigError`."""
    # pyarrow has errors of its own; each is a ValueError, an OSError or one of these.
    try:
        if kind is InventoryFormat.CSV:
            yield from _csv(file, columns, name)
        elif kind is InventoryFormat.PARQUET:
            yield from _batches(_parquet(file))
        else:
            yield from _batches(_orc(file))
    except (EOFError, OSError, zlib.error, csv.Error, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"inventory file {name}: {' '.join(str(error).split())[:300]}") from error
    except ImportError as error:
        msg = f"inventory file {name}: reading it needs pyarrow: pip install 'rlmm[spark]'"
        raise ConfigError(msg) from error


def _csv(file: Path, columns: Sequence[str], name: str) -> Iterator[InventoryRow]:
    at = {column: number for number, column in enumerate(columns)}
    key_at, size_at, modified_at = (at[column] for column in NEEDED)
    class_at, latest_at, marker_at, bucket_at = (at.get(column) for column in _GIVEN[3:])
    with file.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not is_packed and name.endswith(".gz"):
            raise ValueError("it is not compressed with gzip")
    opened = gzip.open if is_packed else open
    with opened(file, "rt", encoding="utf-8", newline="") as text:
        lines = _Lines(text)
        for number, row in enumerate(csv.reader(lines), 1):
            lines.begin_row()
            if not row:
                continue
            if len(row) != len(columns):
                raise ValueError(f"row {number} has {len(row)} columns, not {len(columns)}")
            is_marker = marker_at is not None and row[marker_at].lower() == "true"
            yield InventoryRow(
                unquote_plus(row[key_at], errors="surrogateescape"),
                _size(row[size_at], number, is_absent=is_marker),
                int(datetime.fromisoformat(row[modified_at]).timestamp() * 1_000),
                "" if class_at is None else row[class_at],
                latest_at is None or row[latest_at].lower() == "true",
                is_marker,
                "" if bucket_at is None else row[bucket_at],
            )


class _Lines:
    """Lines of a text that ends nowhere, or of one row that does: no more than a row is read."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self.begin_row()

    def begin_row(self) -> None:
        self._left = ROW_CHARS_MAX

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self._left + 1)
        if not line:
            raise StopIteration
        self._left -= len(line)
        if self._left < 0:
            raise ValueError(f"a row has more than {ROW_CHARS_MAX} characters")
        return line


def _size(text: str, number: int, *, is_absent: bool) -> int:
    if not text and is_absent:
        return 0
    if not (text.isascii() and text.isdigit() and int(text) <= _SIZE_MAX):
        raise ValueError(f"row {number} has the size {text[:40]!r}")
    return int(text)


def _parquet(file: Path) -> Iterator[Any]:
    from pyarrow import parquet  # noqa: PLC0415 - large, and for these files alone

    with parquet.ParquetFile(file) as opened:
        wanted = _wanted(opened.schema_arrow.names)
        yield from opened.iter_batches(65_536, columns=wanted)


def _orc(file: Path) -> Iterator[Any]:
    from pyarrow import orc  # noqa: PLC0415 - as above

    opened = orc.ORCFile(file)
    wanted = _wanted(opened.schema.names)
    for stripe in range(opened.nstripes):
        yield opened.read_stripe(stripe, wanted)


def _wanted(names: Iterable[str]) -> list[str]:
    found = {column_name(one): one for one in names}
    lacking = [one for one in NEEDED if one not in found]
    if lacking:
        raise ValueError(f"there is no column {', '.join(lacking)}")
    return [found[one] for one in _GIVEN if one in found]


def _batches(batches: Iterator[Any]) -> Iterator[InventoryRow]:
    for batch in batches:
        held = {
            column_name(field): batch.column(number).to_pylist()
            for number, field in enumerate(batch.schema.names)
        }
        rows = batch.num_rows
        empty, true, false = [""] * rows, [True] * rows, [False] * rows
        for key, size, modified, storage_class, latest, marker, bucket in zip(
            held["key"],
            held["size"],
            held["lastmodifieddate"],
            held.get("storageclass", empty),
            held.get("islatest", true),
            held.get("isdeletemarker", false),
            held.get("bucket", empty),
            strict=True,
        ):
            yield InventoryRow(
                _key(key),
                0 if size is None and marker else int(size),
                _milliseconds(modified),
                storage_class or "",
                latest is None or bool(latest),
                bool(marker),
                bucket or "",
            )


def _key(key: Any) -> str:
    return key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key)


def _milliseconds(modified: Any) -> int:
    if isinstance(modified, datetime):
        # Without a zone it is in UTC: so they are written.
        at = modified if modified.tzinfo is not None else modified.replace(tzinfo=UTC)
        return int(at.timestamp() * 1_000)
    return int(modified)
