"""
One segment as an immutable row of bytes: how the pure engine holds it in memory and how a state
image holds it.

    0   state             int8
    1   txn index empty   int8, 0 or 1
    2   finish offset     int64: metadata offset of the last COPY_SEGMENT_FINISHED, -1 for none
    10  broker id         int32; from here on every field as in Kafka's record form
    14  event timestamp   int64
    22  start offset      int64
    30  end offset        int64
    38  max timestamp     int64
    46  epochs            compact array of { epoch int32, first offset int64, 0x00 }, rising
    ..  size              int32
    ..  custom metadata   compact nullable bytes, to the end of the row

Bytes instead of objects: a row is one small allocation that the garbage collector never looks at,
its fields are cut out of the record without being decoded, equality of content is equality of
bytes, and a copy of a whole partition for a snapshot is a copy of references. What an update
replaces stands at the two ends.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from rlmm.metadata.encoding import encode_custom, encode_epochs
from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from rlmm.metadata.segment import Epochs, SegmentMetadata, SegmentState, trusted_segment

if TYPE_CHECKING:
    from rlmm.metadata.ids import SegmentId

STATE_AT: Final = 0
TXN_INDEX_EMPTY_AT: Final = 1
CONTENT_AT: Final = 10
"""Where the broker id begins: events state everything from here on, and the first two bytes."""
BROKER_STOP: Final = 14
EVENT_TIMESTAMP_AT: Final = 14
KEPT_AT: Final = 22
"""Where the start offset begins: nothing up to the custom metadata changes with an update."""
EPOCHS_AT: Final = 46
ONE_EPOCH: Final = 2
"""First byte of an epoch array of one entry: count + 1."""
ONE_EPOCH_CUSTOM_AT: Final = 64
NOT_FINISHED: Final = -1

unpack_range = struct.Struct(">q9xiq").unpack_from
"""To be read at `END_AT` of a row of one epoch: end offset, the epoch, its first offset."""
END_AT: Final = 30
unpack_walked = struct.Struct(">B28xq8xB").unpack_from
"""Read at `TXN_INDEX_EMPTY_AT`: the flag, the end offset, the byte at `EPOCHS_AT`."""
unpack_content = struct.Struct(">4s16xq9xiq").unpack_from
"""Read at `CONTENT_AT` of a row of one epoch: packed broker id, and the parts of `unpack_range`."""
unpack_listing = struct.Struct(">i9xi").unpack_from
"""To be read at `EPOCHS_AT` + 1 of a row of one epoch: the epoch, the segment's size."""

_HEAD = struct.Struct(">bbqiqqqq")
_ONE_EPOCH_ROW = struct.Struct(">bbq12xqq8xx12xB4xB")
"""State, flag, finish, start and end offset, tags of the epoch, first byte of custom metadata."""
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_EPOCH = struct.Struct(">iqx")

_STATES = tuple(SegmentState)
_STATE_AND_FLAG = tuple(
    tuple(bytes((state, empty)) for empty in range(2)) for state in SegmentState
)
FINISHED_HEADS = _STATE_AND_FLAG[SegmentState.COPY_SEGMENT_FINISHED]
"""First bytes of a finished copy's row, before the finish offset: with an index, without."""
STARTED, STARTED_TXN_EMPTY = (
    _STATE_AND_FLAG[SegmentState.COPY_SEGMENT_STARTED][empty] + _INT64.pack(NOT_FINISHED)
    for empty in range(2)
)
"""The first bytes of a copy that starts, with a transaction index and without one."""


def row_of(segment: SegmentMetadata, finish_offset: int = NOT_FINISHED) -> bytes:
    return b"".join(
        (
            _HEAD.pack(
                segment.state,
                segment.txn_index_empty,
                finish_offset,
                segment.broker_id,
                segment.event_timestamp_ms,
                segment.start_offset,
                segment.last_offset,
                segment.max_timestamp_ms,
            ),
            encode_epochs(segment.epochs),
            _INT32.pack(segment.size_bytes),
            encode_custom(segment.custom_metadata),
        )
    )


def segment_of(segment_id: SegmentId, row: bytes) -> SegmentMetadata:
    """Return the segment that *row* holds; a row was checked when it was made."""
    state, txn_index_empty, _, broker_id, event_ts, start, end, max_ts = _HEAD.unpack_from(row)
    custom_at = ONE_EPOCH_CUSTOM_AT if row[EPOCHS_AT] == ONE_EPOCH else _custom_at(row)
    return trusted_segment(
        segment_id,
        start,
        end,
        broker_id,
        max_ts,
        event_ts,
        epochs_of(row),
        _INT32.unpack_from(row, custom_at - 4)[0],
        _custom(row, custom_at),
        _STATES[state],
        txn_index_empty != 0,
    )


def is_sound_row(row: bytes) -> bool:
    """Return whether *row* is surely one of `row_of`; `False` where a closer look is needed."""
    if len(row) <= ONE_EPOCH_CUSTOM_AT or row[EPOCHS_AT] != ONE_EPOCH:
        return False
    state, flag, finish, start, end, tags, custom = _ONE_EPOCH_ROW.unpack_from(row)
    return (
        (finish == NOT_FINISHED if state == 0 else finish >= 0 if state == 1 else state == 2)
        and finish >= NOT_FINISHED
        and 0 <= flag <= 1
        and 0 <= start <= end
        and tags == 0
        and custom < 0x80
        and len(row) == ONE_EPOCH_CUSTOM_AT + (custom or 1)
    )


def updated_row(row: bytes, state: int, writer: bytes, custom: bytes, finish: bytes) -> bytes:
    """*row* after an update: packed broker id and time, custom metadata and finish offset."""
    custom_at = ONE_EPOCH_CUSTOM_AT if row[EPOCHS_AT] == ONE_EPOCH else _custom_at(row)
    head = _STATE_AND_FLAG[state][row[TXN_INDEX_EMPTY_AT]]
    return b"".join((head, finish, writer, row[KEPT_AT:custom_at], custom))


pack_finish = _INT64.pack
"""The form of a finish offset in a row."""


def packed_finish_of(row: bytes) -> bytes:
    return row[2:CONTENT_AT]


def finish_of(row: bytes) -> int:
    """Metadata offset of the last finish, -1 while there is none."""
    offset: int = _INT64.unpack_from(row, 2)[0]
    return offset


def start_of(row: bytes) -> int:
    offset: int = _INT64.unpack_from(row, KEPT_AT)[0]
    return offset


def end_of(row: bytes) -> int:
    offset: int = _INT64.unpack_from(row, END_AT)[0]
    return offset


def event_timestamp_of(row: bytes) -> int:
    timestamp_ms: int = _INT64.unpack_from(row, EVENT_TIMESTAMP_AT)[0]
    return timestamp_ms


def size_of(row: bytes) -> int:
    custom_at = ONE_EPOCH_CUSTOM_AT if row[EPOCHS_AT] == ONE_EPOCH else _custom_at(row)
    size: int = _INT32.unpack_from(row, custom_at - 4)[0]
    return size


def epochs_of(row: bytes) -> Epochs:
    if row[EPOCHS_AT] == ONE_EPOCH:
        return (_EPOCH.unpack_from(row, EPOCHS_AT + 1),)
    first, count = _epochs_from(row)
    return tuple(_EPOCH.iter_unpack(row[first : first + count * _EPOCH.size]))


def epoch_ranges(row: bytes) -> list[tuple[int, int, int]]:
    """(epoch, first offset, last offset in it), rising: an epoch ends where the next begins."""
    if row[EPOCHS_AT] == ONE_EPOCH:
        end, epoch, first = unpack_range(row, END_AT)
        return [(epoch, first, end)]
    epochs = epochs_of(row)
    ends = [_before(first) for _, first in epochs[1:]]
    ends.append(end_of(row))
    return [(epoch, first, end) for (epoch, first), end in zip(epochs, ends, strict=True)]


def epoch_range(row: bytes, epoch: int) -> tuple[int, int] | None:
    """First and last offset of *epoch* in the segment; `None` where it does not list it."""
    if row[EPOCHS_AT] == ONE_EPOCH:
        end, listed, first = unpack_range(row, END_AT)
        return (first, end) if listed == epoch else None
    begin, count = _epochs_from(row)
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _EPOCH.unpack_from(row, begin + middle * _EPOCH.size)[0] < epoch:
            low = middle + 1
        else:
            high = middle
    if low == count:
        return None
    listed, first = _EPOCH.unpack_from(row, begin + low * _EPOCH.size)
    if listed != epoch:
        return None
    if low + 1 == count:
        return first, end_of(row)
    return first, _before(_EPOCH.unpack_from(row, begin + (low + 1) * _EPOCH.size)[1])


def _before(offset: int) -> int:
    """Return *offset* - 1; before the least comes the largest, as in Java's arithmetic."""
    return offset - 1 if offset > INT64_MIN else INT64_MAX


def same_content(row: bytes, other: bytes) -> bool:
    return row[CONTENT_AT:] == other[CONTENT_AT:] and row[:2] == other[:2]


def _custom(row: bytes, at: int) -> bytes | None:
    if row[at] == 0:
        return None
    size, at = _varint(row, at)
    return row[at : at + size - 1]


def _custom_at(row: bytes) -> int:
    first, count = _epochs_from(row)
    return first + count * _EPOCH.size + _INT32.size


def _epochs_from(row: bytes) -> tuple[int, int]:
    if row[EPOCHS_AT] == ONE_EPOCH:
        return EPOCHS_AT + 1, 1
    size, first = _varint(row, EPOCHS_AT)
    return first, size - 1


def _varint(row: bytes, at: int) -> tuple[int, int]:
    total = 0
    for shift in range(0, 35, 7):
        byte = row[at]
        at += 1
        total |= (byte & 0x7F) << shift
        if byte < 0x80:
            return total, at
    msg = f"the number before byte {at} has more than five bytes"
    raise ValueError(msg)
