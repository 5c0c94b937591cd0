"""A reader of snapshot files, written from `docs/snapshot-format.md` alone."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any

import cramjam

HEADER = struct.Struct(">8sHHiiqqqqqqqqqqiIqi16sH")
NAMES = (
    "magic", "version", "image_version", "partition", "partition_count", "position", "written_ms",
    "first_offset", "records", "undecodable", "counted_apart", "without_base", "trimmed_before",
    "batch_base_offset", "batch_last_offset", "batch_leader_epoch", "batch_checksum",
    "accepted", "user_partitions", "topic_id",
)  # fmt: skip
BLOCK = struct.Struct(">BII")
TRAILER = struct.Struct(">BIQ")
ROW = struct.Struct(">bbqiqqqq")
ROW_NAMES = (
    "state", "txn_index_empty", "finish_offset", "broker_id", "event_timestamp_ms", "start", "end",
    "max_timestamp_ms",
)  # fmt: skip
STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED")
DELETES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
CASTAGNOLI = 0x82F63B78


@dataclass
class Segment:
    id: bytes
    state: str
    fields: dict[str, int]
    epochs: list[tuple[int, int]]
    size: int
    custom_metadata: bytes | None

    def covers(self, epoch: int) -> tuple[int, int] | None:
        ends = [first - 1 for _, first in self.epochs[1:]] + [self.fields["end"]]
        ranges = {
            named: (first, end) for (named, first), end in zip(self.epochs, ends, strict=True)
        }
        return ranges.get(epoch)

    def holds(self, epoch: int, offset: int) -> bool:
        first, last = self.covers(epoch) or (0, -1)
        return first <= offset <= last


@dataclass
class Epoch:
    watermark: int | None
    slots: list[tuple[int, int]]
    strays: list[int]


@dataclass
class UserPartition:
    topic: str
    topic_id: bytes
    partition: int
    delete: tuple[str, int, int] | None = None
    segments: list[Segment] = field(default_factory=list)
    epochs: dict[int, Epoch] = field(default_factory=dict)

    def belonging(self, epoch: int) -> list[Segment]:
        strays = self.epochs[epoch].strays if epoch in self.epochs else []
        found = enumerate(self.segments)
        return [one for ordinal, one in found if one.covers(epoch) or ordinal in strays]

    def segment_for(self, epoch: int, offset: int) -> Segment | None:
        entry = self.epochs.get(epoch)
        if entry is None or entry.watermark is None or entry.watermark < offset:
            return None
        below = [ordinal for first, ordinal in entry.slots if first <= offset]
        if below and self.segments[below[-1]].holds(epoch, offset):
            return self.segments[below[-1]]
        finished = [one for one in self.segments if one.state == "COPY_SEGMENT_FINISHED"]
        others = [one for one in finished if one.holds(epoch, offset)]
        return max(others, key=lambda one: one.fields["finish_offset"], default=None)


class Bytes:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def require_end(self) -> None:
        if self.at != len(self.content):
            raise ValueError("something behind the end")

    def take(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.content):
            raise ValueError("too short")
        return self.content[self.at - size : self.at]

    def unpack(self, form: struct.Struct | str) -> tuple[Any, ...]:
        found = form if isinstance(form, struct.Struct) else struct.Struct(form)
        return found.unpack(self.take(found.size))

    def varint(self) -> int:
        number = shift = 0
        while (byte := self.take(1)[0]) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift


def crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def read_snapshot(content: bytes) -> tuple[dict[str, Any], list[UserPartition]]:
    """Return header and user partitions of a file; ValueError where it breaks the page's rules."""
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise ValueError("digest")
    file = Bytes(content[:-32])
    *values, size = file.unpack(HEADER)
    header: dict[str, Any] = dict(zip(NAMES, values, strict=True))
    header["cluster_id"] = file.take(size).decode()
    checked = file.content[: file.at]
    if file.unpack(">I") != (crc32c(checked),):
        raise ValueError("header")
    if (header["magic"], header["version"], header["image_version"]) != (b"RLMMSNAP", 2, 1):
        raise ValueError("version")
    inflated = Bytes(_inflated(file))
    found = [_user_partition(inflated) for _ in range(header["user_partitions"])]
    for read in (file, inflated):
        read.require_end()
    return header, found


def _inflated(file: Bytes) -> bytes:
    pieces = []
    while file.content[file.at] != 0:
        kind, inflated, size = file.unpack(BLOCK)
        data = file.take(size)
        pieces.append(data if kind == 1 else bytes(cramjam.zstd.decompress(data)))
        if kind not in {1, 2} or len(pieces[-1]) != inflated:
            raise ValueError("block")
    if file.unpack(TRAILER) != (0, len(pieces), sum(map(len, pieces))):
        raise ValueError("trailer")
    return b"".join(pieces)


def _user_partition(inflated: Bytes) -> UserPartition:
    image = Bytes(inflated.take(inflated.unpack(">I")[0]))
    key = Bytes(image.take(image.varint()))
    topic = key.take(key.varint() - 1).decode()
    found = UserPartition(topic, *key.unpack(">16si"))
    (delete,) = image.unpack(">b")
    if delete != -1:
        found.delete = (DELETES[delete], *image.unpack(">iq"))
    for _ in range(image.varint()):
        uuid = image.take(16)
        found.segments.append(_segment(uuid, Bytes(image.take(image.varint()))))
    for _ in range(image.varint()):
        epoch, has_watermark = image.unpack(">ib")
        watermark = image.unpack(">q")[0] if has_watermark else None
        slots = [(image.unpack(">q")[0], image.varint()) for _ in range(image.varint())]
        strays = [image.varint() for _ in range(image.varint())]
        found.epochs[epoch] = Epoch(watermark, slots, strays)
    image.require_end()
    key.require_end()
    return found


def _segment(uuid: bytes, row: Bytes) -> Segment:
    fields = dict(zip(ROW_NAMES, row.unpack(ROW), strict=True))
    epochs = [(epoch, first) for epoch, first in map(row.unpack, [">iqx"] * (row.varint() - 1))]
    size, custom = row.unpack(">i")[0], row.varint()
    custom_metadata = row.take(custom - 1) if custom else None
    row.require_end()
    return Segment(uuid, STATES[fields["state"]], fields, epochs, size, custom_metadata)
