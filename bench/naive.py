"""
The yardstick for decoding: a reader that takes a record value field by field into a dataclass, as
one writes it first.

It only decodes: no checks beyond the layout, no state, no verdicts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass
class NaiveEvent:
    topic: str
    topic_id: bytes
    partition: int
    segment_id: bytes
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    state: int
    start_offset: int = -1
    end_offset: int = -1
    max_timestamp_ms: int = -1
    epochs: dict[int, int] | None = None
    size_bytes: int = 0
    txn_index_empty: bool = False


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def _unpack(self, form: str, size: int) -> int:
        number: int = struct.unpack_from(form, self.data, self.pos)[0]
        self.pos += size
        return number

    def int8(self) -> int:
        return self._unpack(">b", 1)

    def int32(self) -> int:
        return self._unpack(">i", 4)

    def int64(self) -> int:
        return self._unpack(">q", 8)

    def varint(self) -> int:
        result = shift = 0
        while True:
            byte = self.data[self.pos]
            self.pos += 1
            result |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return result
            shift += 7

    def take(self, size: int) -> bytes:
        chunk = self.data[self.pos : self.pos + size]
        self.pos += size
        return chunk

    def string(self) -> str:
        return self.take(self.varint() - 1).decode()

    def nullable_bytes(self) -> bytes | None:
        size = self.varint()
        return None if size == 0 else self.take(size - 1)

    def tags(self) -> dict[int, bytes]:
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}


def naive_decode(value: bytes) -> NaiveEvent:
    reader = _Reader(value)
    reader.varint()
    api_key = reader.varint()
    reader.varint()
    topic = reader.string()
    topic_id = reader.take(16)
    partition = reader.int32()
    reader.tags()
    segment_id = reader.take(16)
    reader.tags()
    if api_key == 1:
        broker_id, event_ts = reader.int32(), reader.int64()
        custom, state = reader.nullable_bytes(), reader.int8()
        reader.tags()
        return NaiveEvent(
            topic, topic_id, partition, segment_id, broker_id, event_ts, custom, state
        )
    start, end = reader.int64(), reader.int64()
    broker_id, max_ts, event_ts = reader.int32(), reader.int64(), reader.int64()
    epochs = {}
    for _ in range(reader.varint() - 1):
        epoch = reader.int32()
        epochs[epoch] = reader.int64()
        reader.tags()
    size, custom, state = reader.int32(), reader.nullable_bytes(), reader.int8()
    empty = reader.tags().get(0) == b"\x01"
    return NaiveEvent(
        topic, topic_id, partition, segment_id, broker_id, event_ts, custom, state,
        start, end, max_ts, epochs, size, empty,
    )  # fmt: skip
