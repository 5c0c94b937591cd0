"""
A record set opened batch by batch, and how far the current batch is read. Base offsets lie outside
a batch's CRC: they must rise and stay within the record set, else the batch is damaged.
"""

from __future__ import annotations

import struct
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamagedBatch, DamageReason, PartialTail
from rlmm.records.header import MAX_TIMESTAMP_AT
from rlmm.records.singles import single_values

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from rlmm.records.damage import DamagedRecords
    from rlmm.records.record_set import RecordSet
    from rlmm.records.records import BatchValues

INFLATED_BYTES_MAX = 16 * 1024 * 1024
"""Largest records part that is opened; a broker's own default limit for a batch is 1 MiB."""

RUN_MAX = 250
"""Batches of one event that are opened at a time."""

_FREED_AT_ONCE_MAX = 20_000

_unpack_timestamp = struct.Struct(f">{MAX_TIMESTAMP_AT}xq").unpack_from


class OpenRecordSet:
    __slots__ = (
        "_ahead",
        "_floor",
        "_limit",
        "_reading",
        "_walked",
        "batch",
        "damage",
        "data",
        "is_cut",
        "last_start",
        "left_count",
        "next_offset",
        "pending",
        "stop",
        "timestamp_ms",
    )

    def __init__(self, record_set: RecordSet, start: int = 0) -> None:
        self.data = record_set.data
        self._limit = record_set.next_offset
        self._walked = walk(record_set.data, start)
        self._ahead: deque[Batch | DamagedBatch | PartialTail] = deque()
        self._floor = 0
        self._reading: Generator[None, None, BatchValues] | None = None
        self.batch: Batch | None = None
        self.pending: Iterator[tuple[int, bytes | None]] = iter(())
        self.left_count = 0
        """Records of the current batch that were not handed out yet."""
        self.next_offset = 0
        self.timestamp_ms = -1
        """The largest time of any record of the last batch that is open; -1 when none has one."""
        self.damage: DamagedRecords | None = None
        self.last_start = -1
        """The byte where the last batch begins that was found; -1 before the first."""
        self.stop = start
        """The byte behind the batches that are open, or that were open last."""
        self.is_cut = False
        """Whether the walk ended in something that is no whole batch, which was not passed."""

    def begin(self, batch: Batch) -> None:
        """
        Open *batch*, or the gapless run of sound batches with one event each that it begins. The
        caller takes the steps of `read_on` until `is_read`.
        """
        if batch.record_count == 1 and self._begin_run(batch):
            return
        self.batch, self.pending, self.left_count, self.damage = batch, iter(()), 0, None
        self.stop = batch.stop
        self.next_offset, self.timestamp_ms = batch.next_offset, batch.max_timestamp_ms
        self._reading = batch.reading_values(inflated_bytes_max=INFLATED_BYTES_MAX)
        self.read_on()

    def go_to(self, start: int, floor: int) -> None:
        """Read on at byte *start*, where no batch may begin below offset *floor*."""
        self._ahead.clear()
        self._walked, self._floor = walk(self.data, start), floor

    @property
    def limit(self) -> int | None:
        return self._limit

    @property
    def floor(self) -> int:
        return self._floor

    @property
    def is_read(self) -> bool:
        return self._reading is None

    def read_on(self) -> None:
        """Inflate or read a part of the batch: some milliseconds of work at most."""
        assert self._reading is not None
        try:
            next(self._reading)
        except StopIteration as end:
            values: BatchValues = end.value
            self._reading = None
            self.left_count, self.damage = len(values), values.damage
            self.pending = _used_up(values) if len(values) > _FREED_AT_ONCE_MAX else iter(values)

    def _begin_run(self, batch: Batch) -> bool:
        """Open the batches of one event from *batch* on; whether there was any."""
        offset = batch.base_offset
        count_max = RUN_MAX if self._limit is None else min(RUN_MAX, self._limit - offset)
        values, last, stop = single_values(self.data, batch.start, offset, count_max)
        if not values:
            return False
        self._ahead.clear()
        self._walked = walk(self.data, stop)
        self.last_start, self.stop = last, stop
        self.next_offset = self._floor = offset + len(values)
        self.batch, self.left_count, self.damage = batch, len(values), None
        (self.timestamp_ms,) = _unpack_timestamp(self.data, last)
        self.pending = iter(zip(range(offset, self._floor), values, strict=True))
        return True

    def taken(
        self, count: int, position: int, passed: list[tuple[int, bytes | None]] | None
    ) -> Iterator[tuple[int, bytes | None]]:
        """Take *count* records at most; those from *position* on go into *passed* as well."""
        values = islice(self.pending, count)
        return values if passed is None else _noting(values, position, passed)

    def next_batch(self, position: int) -> Batch | DamagedBatch | None:
        """Return the next entry, `None` at the end; a batch with impossible offsets is damaged."""
        found = self._ahead.popleft() if self._ahead else next(self._walked, None)
        if isinstance(found, PartialTail):
            self.is_cut = True
            return None
        if isinstance(found, Batch):
            fault = self._offset_fault(found, position)
            if fault is not None:
                return DamagedBatch(
                    DamageReason.BAD_OFFSETS,
                    found.start,
                    found.stop,
                    found.base_offset,
                    None,
                    fault,
                )
            self._floor = found.next_offset
            self.last_start = found.start
        return found

    def _offset_fault(self, batch: Batch, position: int) -> str | None:
        if batch.base_offset < self._floor:
            return f"{_span(batch)} behind one that ends before {self._floor}"
        if self._limit is not None and batch.next_offset > self._limit:
            return f"{_span(batch)} in a record set that ends before {self._limit}"
        if batch.base_offset > position:  # right behind the position there is nothing to doubt
            behind = self.offset_behind()
            if behind is not None and self._floor <= behind < batch.next_offset:
                return f"{_span(batch)} before one that begins at {behind}"
        return None

    def offset_behind(self) -> int | None:
        """Base offset of the next sound batch, else the end of the set where it is known."""
        for found in self._ahead:
            if isinstance(found, Batch):
                return found.base_offset
        for found in self._walked:
            self._ahead.append(found)
            if isinstance(found, Batch):
                return found.base_offset
        return self._limit


def _used_up(values: BatchValues) -> Iterator[tuple[int, bytes | None]]:
    """Free each record when it is taken: a million of them at once take as long as a slice may."""
    offsets, found = values.offsets, values.values
    offsets.reverse()
    found.reverse()
    while offsets:
        yield offsets.pop(), found.pop()


def _noting(
    values: Iterator[tuple[int, bytes | None]],
    position: int,
    passed: list[tuple[int, bytes | None]],
) -> Iterator[tuple[int, bytes | None]]:
    for pair in values:
        if pair[0] >= position:
            passed.append(pair)
        yield pair


def _span(batch: Batch) -> str:
    return f"batch of offsets {batch.base_offset} to {batch.last_offset}"
