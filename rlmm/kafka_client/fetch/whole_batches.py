"""
The whole batches of an answer: where the last one ends. Pure.

Only lengths are followed, from batch to batch; the reader of a batch judges whether it is sound.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from rlmm.records.header import BATCH_BYTES_MAX, HEADER_BYTES, LENGTH_FROM, MAGIC

_START = struct.Struct(">qi")
_INT32 = struct.Struct(">i")
_LEADER_EPOCH_AT = 12
_MAGIC_AT = 16
_LAST_DELTA_AT = 23
_LENGTH_MIN = 14
"""The smallest that any format ever had, as a length counts."""
_NO_EPOCH = -1


class WholeBatches(NamedTuple):
    """
    The whole batches at the start of some bytes.

    *size* is where they end, *next_offset* and *leader_epoch* are those of the last one; 0, None
    and -1 where there is none. *wanted* is the size of the batch after them, 0 where that is cut
    off. *damage* says why the bytes after them are no batch.
    """

    size: int
    next_offset: int | None
    leader_epoch: int
    wanted: int
    damage: str | None


def whole_batches(data: bytes | memoryview) -> WholeBatches:
    """Find the whole batches at the begin of *data*."""
    unpack = _START.unpack_from
    count = len(data)
    at = last = wanted = 0
    damage = None
    while count - at >= LENGTH_FROM:
        base_offset, length = unpack(data, at)
        if not _LENGTH_MIN <= length <= BATCH_BYTES_MAX:
            damage = f"a batch at offset {base_offset} claims a length of {length}"
            break
        stop = at + LENGTH_FROM + length
        if stop > count:
            wanted = stop - at
            break
        last = at
        at = stop
    if at == 0:
        return WholeBatches(0, None, _NO_EPOCH, wanted, damage)
    base_offset, _ = unpack(data, last)
    if data[last + _MAGIC_AT] != MAGIC or at - last < HEADER_BYTES:
        return WholeBatches(at, base_offset + 1, _NO_EPOCH, wanted, damage)
    (last_delta,) = _INT32.unpack_from(data, last + _LAST_DELTA_AT)
    (leader_epoch,) = _INT32.unpack_from(data, last + _LEADER_EPOCH_AT)
    return WholeBatches(at, base_offset + last_delta + 1, leader_epoch, wanted, damage)
