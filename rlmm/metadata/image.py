"""
State images: everything that is known of a user partition, or of a shard, as bytes.

Canonical: equal state gives equal bytes, whatever the order of arrival that led to it or the engine
that holds it. No clock, no counters since start. Integers are big-endian; "varint" is the unsigned
varint of the record form.

Partition image:

    key        varint length, then topic name, topic id and partition in record form
    delete     int8 state of the last partition-delete event, then broker id int32 and
               timestamp int64; or int8 -1 for none
    segments   varint count; by rising id: 16 bytes of id, varint length, the row (see `row`)
    epochs     varint count; by rising epoch:
               epoch int32; int8 1 and int64 watermark, or int8 0
               slots    varint count; by rising offset: offset int64, varint ordinal of the segment
               strays   varint count; rising varint ordinals of the segments that are listed here
                        only by an earlier first record of theirs

Shard image: `RLMI`, int8 version, metadata partition int32, position int64, varint count, then per
partition, by rising key, varint length and its image.

What can be derived (unreferenced ids, sizes, counters) is not stored. Reading is in
`image_reading`.
"""

from __future__ import annotations

import struct
from functools import partial
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final

from rlmm.metadata.epoch_state import EpochState
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.varint import encode_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

SHARD_MAGIC: Final = b"RLMI"
SHARD_VERSION: Final = 1
SHARD_HEAD = struct.Struct(">4sbiq")
DELETE = struct.Struct(">biq")
EPOCH = struct.Struct(">ib")
INT64 = struct.Struct(">q")
NO_DELETE = b"\xff"

_COPIED_AT_A_TIME = 8_192
"""Rows whose references are copied in one step."""
_SORTED_AT_A_TIME = 4_096
_JOINED_AT_A_TIME = 4_096
"""Rows whose bytes are put together at once: no other thread has the interpreter meanwhile."""


def partition_image(state: PartitionState) -> bytes:
    parts = [encode_varint(len(state.key)), state.key]
    delete = state.delete
    if delete is None:
        parts.append(NO_DELETE)
    else:
        parts.append(DELETE.pack(delete.state, delete.broker_id, delete.event_timestamp_ms))
    ids = _in_order(state.rows)
    parts.append(encode_varint(len(ids)))
    blocks, left = [b"".join(parts)], iter(ids)
    while piece := list(islice(left, _JOINED_AT_A_TIME)):
        parts = []
        for uuid in piece:
            row = state.rows[uuid]
            parts += (uuid, encode_varint(len(row)), row)
        blocks.append(b"".join(parts))
    ordinals = {uuid: ordinal for ordinal, uuid in enumerate(ids)}
    strays: dict[int, list[int]] = {}
    for uuid in sorted(state.strays):
        for epoch in state.strays[uuid]:
            strays.setdefault(epoch, []).append(ordinals[uuid])
    blocks.append(encode_varint(len(state.epochs)))
    for epoch in sorted(state.epochs):
        more = _epoch_parts(state.epochs[epoch], ordinals, strays.get(epoch, []))
        while block := b"".join(islice(more, _JOINED_AT_A_TIME)):
            blocks.append(block)
    return b"".join(blocks)


def _in_order(ids: Collection[bytes]) -> list[bytes]:
    """*ids* sorted; many of them so that no other thread ever waits long for the interpreter."""
    if len(ids) <= _SORTED_AT_A_TIME:
        return sorted(ids)
    left = iter(ids)
    pieces = []
    while piece := sorted(islice(left, _SORTED_AT_A_TIME)):
        pieces.append(piece)
    return list(merge(*pieces))


def freezing(state: PartitionState) -> Iterator[Callable[[], bytes] | None]:
    """
    Yield in steps of about a millisecond; the last gives the function that makes the image. It
    copies references only and may run in any thread; *state* may not change before the last step.
    """
    frozen = PartitionState(state.key)
    frozen.delete = state.delete
    left = iter(state.rows.items())
    while piece := list(islice(left, _COPIED_AT_A_TIME)):
        frozen.rows.update(piece)
        yield None
    frozen.strays = state.strays.copy()
    copied_count = 0
    for epoch, entry in state.epochs.items():
        copied = frozen.epochs[epoch] = EpochState(epoch)
        copied.slots, copied.highest = entry.slots.copy(), entry.highest
        copied_count += len(copied.slots)
        if copied_count > _COPIED_AT_A_TIME:
            copied_count = 0
            yield None
    yield partial(partition_image, frozen)


def _epoch_parts(
    entry: EpochState, ordinals: dict[bytes, int], strays: list[int]
) -> Iterator[bytes]:
    yield EPOCH.pack(entry.epoch, entry.highest is not None)
    if entry.highest is not None:
        yield INT64.pack(entry.highest)
    yield encode_varint(len(entry.slots))
    for offset, uuid in entry.slots:
        yield INT64.pack(offset)
        yield encode_varint(ordinals[uuid])
    yield encode_varint(len(strays))
    for ordinal in strays:
        yield encode_varint(ordinal)


def shard_image(partition: int, position: int, states: Iterable[PartitionState]) -> bytes:
    ordered = sorted(states, key=lambda state: state.key)
    parts = [
        SHARD_HEAD.pack(SHARD_MAGIC, SHARD_VERSION, partition, position),
        encode_varint(len(ordered)),
    ]
    for state in ordered:
        image = partition_image(state)
        parts += (encode_varint(len(image)), image)
    return b"".join(parts)
