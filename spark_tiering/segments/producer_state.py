"""
Producer snapshots: the bytes, and the state of producers that the batches of a log lead to. Pure.

    version int16 (1), CRC-32C uint32 (of what follows), count int32, and for each producer: id
    int64, epoch int16, last sequence int32, last offset int64, offset delta int32 (of its last
    batch), timestamp int64, coordinator epoch int32, first offset of its open transaction int64

A broker forgets idle producers after a day, never one with an open transaction. Entries have the
order of a broker that recovers: that of Java's `HashMap`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c

from rlmm.records.control import ControlType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spark_tiering.segments.log_walk import LogBatch, TransactionMarker

PRODUCERS_MAX = 100_000
"""Most producers of a partition that are held, in 40 MB; brokers forget idle ones after a day."""
NO_TRANSACTION = -1

_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1
_CRC_FROM = 6
SNAPSHOT_BYTES_MAX = _HEAD.size + PRODUCERS_MAX * _ENTRY.size

_INT32_MAX = 2**31 - 1
_NO_SEQUENCE = -1
_TABLE_MIN = 16


class ProducerEntry(NamedTuple):
    """Holds the state of one producer; -1 stands for "none" in every field but the delta."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    txn_first_offset: int


class EndedTransaction(NamedTuple):
    """A transaction that a marker ended; offsets of its first record and of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int
    """Where the oldest open transaction of another producer begins, else behind the marker."""


def parse_snapshot(content: bytes) -> dict[int, ProducerEntry] | str:
    """Read a snapshot as a broker does; a text that names the fault, where there is one."""
    if len(content) < _HEAD.size:
        return f"{len(content)} bytes are no snapshot"
    version, crc, count = _HEAD.unpack_from(content)
    if version != _VERSION:
        return f"version {version}, expected {_VERSION}"
    if google_crc32c.value(content[_CRC_FROM:]) != crc:
        return f"the CRC-32C of {len(content) - _CRC_FROM} bytes is not {crc:08x}"
    entries = content[_HEAD.size :]
    if count < 0 or count * _ENTRY.size != len(entries):
        return f"{len(entries)} bytes of entries, its count of {count} says {count * _ENTRY.size}"
    return {row[0]: ProducerEntry._make(row) for row in _ENTRY.iter_unpack(entries)}


def format_snapshot(entries: Mapping[int, ProducerEntry]) -> bytes:
    """Write a snapshot; entries that were added in the order of the mapping."""
    table = _TABLE_MIN
    while len(entries) * 4 > table * 3:
        table *= 2
    rows = sorted(entries.values(), key=lambda entry: _bucket(entry.producer_id, table))
    body = struct.pack(">i", len(rows)) + b"".join(_ENTRY.pack(*row) for row in rows)
    return struct.pack(">hI", _VERSION, google_crc32c.value(body)) + body


def _bucket(producer_id: int, table: int) -> int:
    """Return the bucket of a Long in a `HashMap` of *table* buckets; one bucket keeps the order."""
    bits = producer_id & (2**64 - 1)
    hashed = (bits ^ bits >> 32) & (2**32 - 1)
    return (hashed ^ hashed >> 16) & (table - 1)


class ProducerState:
    """The producers of a partition, batch by batch, up to a *fault* that no broker takes."""

    def __init__(self, entries: Mapping[int, ProducerEntry] | None = None) -> None:
        self.entries: dict[int, ProducerEntry] = dict(entries or {})
        self.fault: str | None = None
        opened = sorted(
            (entry.txn_first_offset, entry.producer_id)
            for entry in self.entries.values()
            if entry.txn_first_offset >= 0
        )
        self._open: dict[int, int] = dict(opened)
        """First offset -> producer, of the open transactions; rising, as they are begun."""

    def copy(self) -> ProducerState:
        twin = ProducerState(self.entries)
        twin.fault = self.fault
        return twin

    @property
    def first_open_offset(self) -> int | None:
        return next(iter(self._open), None)

    def note(self, batch: LogBatch) -> EndedTransaction | None:
        """Take in the next batch; give the transaction that it ends, if it ends one."""
        if batch.producer_id < 0 or self.fault is not None:
            return None
        if batch.is_control:
            return None if batch.marker is None else self._end(batch, batch.marker)
        self._add(batch)
        return None

    def _add(self, batch: LogBatch) -> None:
        known = self.entries.get(batch.producer_id)
        first_offset = NO_TRANSACTION if known is None else known.txn_first_offset
        where = f"producer {batch.producer_id}, offset {batch.base_offset}"
        if known is None and len(self.entries) >= PRODUCERS_MAX:
            self.fault = f"{where}: more than {PRODUCERS_MAX} producers"
            return
        if first_offset >= 0 and not batch.is_transactional:
            self.fault = f"{where}: data outside of its transaction open since {first_offset}"
            return
        if first_offset < 0 and batch.is_transactional:
            first_offset = batch.base_offset
            self._open[first_offset] = batch.producer_id
        delta = batch.last_offset - batch.base_offset
        self.entries[batch.producer_id] = ProducerEntry(
            batch.producer_id,
            batch.producer_epoch,
            _sequence_after(batch.base_sequence, delta),
            batch.last_offset,
            delta,
            batch.max_timestamp_ms,
            -1 if known is None else known.coordinator_epoch,
            first_offset,
        )

    def _end(self, batch: LogBatch, marker: TransactionMarker) -> EndedTransaction | None:
        producer_id, offset = batch.producer_id, batch.base_offset
        if marker.kind is ControlType.OTHER:
            self.fault = f"producer {producer_id}, offset {offset}: no marker that can be read"
            return None
        known = self.entries.get(producer_id)
        if known is None and len(self.entries) >= PRODUCERS_MAX:
            self.fault = f"producer {producer_id}: more than {PRODUCERS_MAX} producers"
            return None
        if known is None or known.producer_epoch != batch.producer_epoch:
            last: tuple[int, int, int] = (-1, -1, 0)
        else:
            last = (known.last_sequence, known.last_offset, known.offset_delta)
        self.entries[producer_id] = ProducerEntry(
            producer_id,
            batch.producer_epoch,
            *last,
            marker.timestamp_ms,
            marker.coordinator_epoch,
            NO_TRANSACTION,
        )
        if known is None or known.txn_first_offset < 0:
            return None
        others = (first for first, owner in self._open.items() if owner != producer_id)
        last_stable_offset = next(others, offset + 1)
        self._open.pop(known.txn_first_offset, None)
        is_aborted = marker.kind is ControlType.ABORT
        return EndedTransaction(
            producer_id, known.txn_first_offset, offset, is_aborted, last_stable_offset
        )


def _sequence_after(base_sequence: int, delta: int) -> int:
    """Return the sequence *delta* records on; it begins anew at 0 behind the largest int32."""
    if base_sequence == _NO_SEQUENCE:
        return _NO_SEQUENCE
    if base_sequence > _INT32_MAX - delta:
        return delta - (_INT32_MAX - base_sequence) - 1
    return base_sequence + delta
