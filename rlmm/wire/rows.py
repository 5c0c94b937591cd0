"""
Rows of the pure-Python engine to the bytes that are sent, without an object in between.

Invariant: `segment_value` gives the same bytes for a `SegmentMetadata`.
"""

from __future__ import annotations

import struct
from typing import Final

from rlmm.metadata.ids import UUID_BYTES, TopicIdPartition, Uuid, trusted_segment_id
from rlmm.metadata.row import EPOCHS_AT, ONE_EPOCH, segment_of
from rlmm.wire.messages import PackedResult, packed
from rlmm.wire.values import segment_value

_ONE_EPOCH_ROW: Final = struct.Struct(">b?8xiqqqqxiqxiB").unpack_from
"""All fields of a row of one epoch, up to the first byte of the custom metadata."""
_CUSTOM_AT: Final = 65
ROWS_KEPT: Final = 8_192
"""Packed rows that are kept, in some 4 MB."""
ROW_BYTES_KEPT: Final = 512
_SHORT: Final = 0x80
_ANY_PARTITION: Final = TopicIdPartition(Uuid(bytes(UUID_BYTES)), "", 0)
"""Any partition will do: the value does not contain it."""


def row_value(uuid: bytes, row: bytes) -> tuple[object, ...]:
    if row[EPOCHS_AT] != ONE_EPOCH:
        return _any_row_value(uuid, row)
    state, is_empty, broker, event, start, last, max_ts, epoch, first, size, custom = (
        _ONE_EPOCH_ROW(row)
    )
    if custom >= _SHORT:
        return _any_row_value(uuid, row)
    return (
        uuid,
        start,
        last,
        broker,
        max_ts,
        event,
        ((epoch, first),),
        size,
        row[_CUSTOM_AT:] if custom else None,
        state,
        is_empty,
    )


def _any_row_value(uuid: bytes, row: bytes) -> tuple[object, ...]:
    return segment_value(segment_of(trusted_segment_id(_ANY_PARTITION, uuid), row))


class _Rows:
    """Keeps packed rows for repeated readers; a row lost in a race of threads is packed again."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[bytes, PackedResult]] = {}

    def packed(self, uuid: bytes, row: bytes) -> PackedResult:
        """Return the segment *uuid* of *row*, as it is sent."""
        known = self._known.get(uuid)
        if known is not None and known[0] is row:  # every change of a segment makes another row
            return known[1]
        made = packed(row_value(uuid, row))
        if len(row) > ROW_BYTES_KEPT:
            return made
        if len(self._known) >= ROWS_KEPT:
            self._known = {}
        self._known[uuid] = row, made
        return made


packed_row = _Rows().packed
