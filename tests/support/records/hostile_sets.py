"""Record sets of at most 1 MiB that stand for as much work as their bytes allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.record_layout import EPOCHS_MAX, TAGS_MAX
from rlmm.metadata.varint import encode_varint
from rlmm.metadata.verdicts import UndecodableReason
from rlmm.records.compression import Compression, deflate
from tests.support.records.batches import forge, record, varint
from tests.support.records.value_bytes import epoch, segment_value, update_value

if TYPE_CHECKING:
    from collections.abc import Callable

EMPTY, OVERSIZED = UndecodableReason.EMPTY_VALUE, UndecodableReason.OVERSIZED
UNKNOWN = UndecodableReason.UNKNOWN_FRAME_VERSION


def packed(codec: Compression, *values: bytes, headers: bytes = b"\x00") -> bytes:
    section = b"".join(record(at, value, headers=headers) for at, value in enumerate(values))
    return forge(deflate(codec, section), len(values), attributes=codec.value)


def tags(count: int) -> bytes:
    """Return unknown, empty tagged fields."""
    return encode_varint(count) + b"\x7f\x00" * count


def epochs(count: int) -> bytes:
    return encode_varint(count + 1) + b"".join(epoch(number, number) for number in range(count))


def headers(count: int) -> bytes:
    return varint(count) + b"\x00\x01" * count


def with_epochs(count: int) -> bytes:
    return segment_value(end=EPOCHS_MAX, epochs=epochs(count))


NONE, ZSTD, GZIP = Compression.NONE, Compression.ZSTD, Compression.GZIP
SHAPES: dict[str, Callable[[], bytes]] = {
    "4194100 tags in 892 bytes": lambda: packed(ZSTD, update_value(tags=tags(4_194_100))),
    "524088 tags": lambda: packed(NONE, update_value(tags=tags(524_088))),
    "60000 tiny records": lambda: packed(ZSTD, *[b""] * 60_000),
    "60000 tiny records, gzip": lambda: packed(GZIP, *[b""] * 60_000),
    "500000 headers": lambda: packed(NONE, b"?", headers=headers(500_000)),
    "4 x 500000 headers": lambda: packed(ZSTD, *[b"?"] * 4, headers=headers(500_000)),
    "8 MiB of zeros, gzip": lambda: packed(GZIP, b"\x02" + bytes(8_000_000)),
    "80000 leader epochs": lambda: packed(NONE, with_epochs(80_000)),
    "as many leader epochs as there may be": lambda: packed(NONE, with_epochs(EPOCHS_MAX)),
    "200 x 1000 tags": lambda: packed(NONE, *[update_value(tags=tags(TAGS_MAX))] * 200),
}
OUTCOMES = {
    "4194100 tags in 892 bytes": {OVERSIZED: 1},
    "524088 tags": {OVERSIZED: 1},
    "60000 tiny records": {EMPTY: 60_000},
    "60000 tiny records, gzip": {EMPTY: 60_000},
    "500000 headers": {UNKNOWN: 1},
    "4 x 500000 headers": {UNKNOWN: 4},
    "8 MiB of zeros, gzip": {UNKNOWN: 1},
    "80000 leader epochs": {OVERSIZED: 1},
}
