"""The whole batches of an answer, found by their lengths; readers judge if they are sound. Pure."""

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

    *size* is their end, *next_offset* and *leader_epoch* are the last one's; without one 0, None,
    -1. *wanted* is the size of the batch behind them, 0 where cut off; *damage* why there is none.
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
