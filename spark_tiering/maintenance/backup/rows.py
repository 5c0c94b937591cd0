"""The rows of a backup; their digest does not depend on the form of the file. Pure."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from rlmm.log.request_checks import PARTITION_COUNT_MAX
from rlmm.metadata.ids import INT64_MAX
from rlmm.records.records import Record
from spark_tiering.layout.strict_json import Count64, Int64
from spark_tiering.maintenance.json_lines import Sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.log.protocol import LogIdentity

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
