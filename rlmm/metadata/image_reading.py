"""
Reading of state images, which may come from a damaged disk or a stranger's backup. Every length is
checked before anything is allocated, every rule of the state machine is checked, and derived parts
are derived anew. A violation raises `ImageCorrupt`; nothing is taken over.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.errors import ImageCorrupt, InvalidArgument
from rlmm.metadata.decoding import decode_partition_key
from rlmm.metadata.derived import derive
from rlmm.metadata.epoch_state import EpochState
from rlmm.metadata.events import PartitionDelete
from rlmm.metadata.ids import UUID_BYTES, SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.image import (
    DELETE,
    EPOCH,
    INT64,
    NO_DELETE,
    SHARD_HEAD,
    SHARD_MAGIC,
    SHARD_VERSION,
    partition_image,
)
from rlmm.metadata.partition_state import PartitionState
from rlmm.metadata.row import (
    NOT_FINISHED,
    STATE_AT,
    epoch_range,
    epoch_ranges,
    finish_of,
    is_sound_row,
    row_of,
    segment_of,
)
from rlmm.metadata.segment import PartitionDeleteState, SegmentState

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINISHED = SegmentState.COPY_SEGMENT_FINISHED.value


def read_shard_image(image: bytes) -> tuple[int, int, list[PartitionState]]:
    """Return partition, position and user partitions of a shard image, or raise `ImageCorrupt`."""
    partition, position, parts = shard_image_parts(image)
    states: list[PartitionState] = []
    for part in parts:
        state = read_partition_image(part)
        if states and state.key <= states[-1].key:
            msg = "state image: partitions are not in order"
            raise ImageCorrupt(msg)
        states.append(state)
    return partition, position, states


def shard_image_parts(image: bytes) -> tuple[int, int, list[bytes]]:
    """Return partition, position and the images of user partitions of a shard image."""
    fields = _Fields(image)
    magic, version, partition, position = SHARD_HEAD.unpack(fields.take(SHARD_HEAD.size, "header"))
    if magic != SHARD_MAGIC:
        raise fields.corrupt(f"not a shard image, it begins with {magic!r}")
    if version != SHARD_VERSION:
        raise fields.corrupt(f"image version {version}, this build reads {SHARD_VERSION}")
    if partition < 0 or position < 0:
        raise fields.corrupt(f"metadata partition {partition}, position {position}")
    parts = [
        fields.take(fields.varint("image length"), "partition image")
        for _ in range(fields.count("partitions", smallest=1))
    ]
    fields.require_end()
    return partition, position, parts


def read_partition_image(image: bytes) -> PartitionState:
    """Raise `ImageCorrupt` unless `partition_image` would write exactly *image*."""
    fields = _Fields(image)
    key = fields.take(fields.varint("key length"), "key")
    partition = _partition_of_key(fields, key)
    state = PartitionState(key)
    state.delete = _read_delete(fields, partition)
    ids = _read_rows(fields, state, partition)
    _read_epochs(fields, state, ids)
    fields.require_end()
    _require_agreement(fields, state)
    derive(state)
    if partition_image(state) != image:
        raise fields.corrupt("not in canonical form")
    return state


class _Fields:
    """Moves a cursor over an image; every read checks the rest."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        self.at = 0

    def corrupt(self, detail: str) -> ImageCorrupt:
        return ImageCorrupt(f"state image, byte {self.at} of {len(self.image)}: {detail}")

    def take(self, size: int, what: str) -> bytes:
        if size > len(self.image) - self.at:
            raise self.corrupt(f"{what} wants {size} bytes, {len(self.image) - self.at} left")
        self.at += size
        return self.image[self.at - size : self.at]

    def varint(self, what: str) -> int:
        at = self.at
        first = self.image[at : at + 2]  # one byte or two is what nearly all of them have
        if first and first[0] < 0x80:
            self.at = at + 1
            return first[0]
        if len(first) == 2 and 0 < first[1] < 0x80:
            self.at = at + 2
            return first[0] & 0x7F | first[1] << 7
        total = 0
        for shift in range(0, 63, 7):
            byte = self.take(1, what)[0]
            total |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:  # another form of the same number: not what is written
                    raise self.corrupt(f"{what} is not in canonical form")
                return total
        raise self.corrupt(f"{what} has too many bytes")

    def count(self, what: str, smallest: int) -> int:
        count = self.varint(f"number of {what}")
        if count * smallest > len(self.image) - self.at:
            raise self.corrupt(f"{count} {what} in {len(self.image) - self.at} bytes")
        return count

    def int64(self, what: str) -> int:
        number: int = INT64.unpack(self.take(8, what))[0]
        return number

    def require_end(self) -> None:
        if self.at != len(self.image):
            raise self.corrupt(f"{len(self.image) - self.at} bytes behind the end")


def _partition_of_key(fields: _Fields, key: bytes) -> TopicIdPartition:
    partition = decode_partition_key(key)
    if partition is None or partition.key != key:
        raise fields.corrupt(f"not the key of a user partition: {key[:64].hex()}")
    return partition


def _read_delete(fields: _Fields, partition: TopicIdPartition) -> PartitionDelete | None:
    head = fields.take(1, "delete state")
    if head == NO_DELETE:
        return None
    number, broker_id, timestamp_ms = DELETE.unpack(head + fields.take(DELETE.size - 1, "delete"))
    if number not in tuple(PartitionDeleteState):
        raise fields.corrupt(f"partition delete state {number}")
    return PartitionDelete(partition, broker_id, timestamp_ms, PartitionDeleteState(number))


def _read_rows(fields: _Fields, state: PartitionState, partition: TopicIdPartition) -> list[bytes]:
    ids: list[bytes] = []
    for _ in range(fields.count("segments", smallest=UUID_BYTES)):
        uuid = fields.take(UUID_BYTES, "segment id")
        row = fields.take(fields.varint("row length"), "row")
        if ids and uuid <= ids[-1]:
            raise fields.corrupt("segments are not in order")
        if not is_sound_row(row):
            _require_row(fields, SegmentId(partition, Uuid(uuid)), row)
        ids.append(uuid)
        state.rows[uuid] = row
    return ids


def _require_row(fields: _Fields, segment_id: SegmentId, row: bytes) -> None:
    try:
        segment = replace(segment_of(segment_id, row))  # checked by the constructor
        finish = finish_of(row)
        known = row_of(segment, finish) == row
    except (struct.error, IndexError, ValueError, InvalidArgument) as error:
        raise fields.corrupt(f"row of segment {segment_id}: {error}") from error
    if not known or segment.state is SegmentState.DELETE_SEGMENT_FINISHED:
        raise fields.corrupt(f"row of segment {segment_id} is not canonical")
    finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
    started = segment.state is SegmentState.COPY_SEGMENT_STARTED
    was_finished = finish != NOT_FINISHED
    if finish < NOT_FINISHED or (finished and not was_finished) or (started and was_finished):
        raise fields.corrupt(f"segment {segment_id} in state {segment.state.name}, finish {finish}")


def _read_epochs(fields: _Fields, state: PartitionState, ids: list[bytes]) -> None:
    previous: int | None = None
    strays: dict[bytes, list[int]] = {}
    for _ in range(fields.count("epochs", smallest=EPOCH.size)):
        epoch, has_highest = EPOCH.unpack(fields.take(EPOCH.size, "epoch"))
        if (previous is not None and epoch <= previous) or has_highest not in (0, 1):
            raise fields.corrupt(f"epoch {epoch} is out of order or has no valid watermark flag")
        previous = epoch
        entry = state.epochs[epoch] = EpochState(epoch)
        entry.highest = fields.int64("watermark") if has_highest else None
        _read_slots(fields, state, entry, ids)
        for uuid in _read_strays(fields, ids):
            if epoch_range(state.rows[uuid], epoch) is not None:
                raise fields.corrupt(f"a segment that names epoch {epoch} is listed as a stray")
            strays.setdefault(uuid, []).append(epoch)
    state.strays = {uuid: frozenset(epochs) for uuid, epochs in strays.items()}


def _read_slots(
    fields: _Fields, state: PartitionState, entry: EpochState, ids: list[bytes]
) -> None:
    slots, rows, epoch = entry.slots, state.rows, entry.epoch
    for _ in range(fields.count("slots", smallest=INT64.size)):
        offset = fields.int64("slot offset")
        uuid = _ordinal(fields, ids)
        row = rows[uuid]
        covered = epoch_range(row, epoch)
        if row[STATE_AT] != _FINISHED or covered is None or covered[0] != offset:
            raise fields.corrupt(
                f"the slot of offset {offset} holds a segment that cannot be there"
            )
        if slots.top is not None and offset <= slots.top:
            raise fields.corrupt("slots are not in order")
        slots.append(offset, uuid)


def _read_strays(fields: _Fields, ids: list[bytes]) -> Iterator[bytes]:
    previous = b""
    for _ in range(fields.count("strays", smallest=1)):
        uuid = _ordinal(fields, ids)
        if uuid <= previous:
            raise fields.corrupt("strays are not in order")
        previous = uuid
        yield uuid


def _ordinal(fields: _Fields, ids: list[bytes]) -> bytes:
    ordinal = fields.varint("segment ordinal")
    if ordinal >= len(ids):
        raise fields.corrupt(f"segment {ordinal} of {len(ids)}")
    return ids[ordinal]


def _require_agreement(fields: _Fields, state: PartitionState) -> None:
    """Require an entry for each epoch of a segment, with a watermark over its finished segments."""
    for row in state.rows.values():
        was_finished = finish_of(row) != NOT_FINISHED
        for epoch, _, last in epoch_ranges(row):
            entry = state.epochs.get(epoch)
            if entry is None:
                raise fields.corrupt(f"a segment names epoch {epoch}, which has no entry")
            if was_finished and (entry.highest is None or entry.highest < last):
                raise fields.corrupt(
                    f"watermark {entry.highest} of epoch {epoch} lies below {last}"
                )
