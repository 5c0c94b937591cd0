"""
Aborted transactions: the index entries that a read needs, and the batches that they take out. A
read of [first, next) needs the index of the segment that has `first`, and following ones, until an
entry says that no transaction was open any more below `next`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    """Of its first batch, which may lie in an earlier segment."""
    last_offset: int
    last_stable_offset: int
    """Every transaction that began below it had ended when the marker was written."""


def read_txn_index(content: bytes | memoryview) -> tuple[AbortedTransaction, ...] | DecodingFault:
    """Read a transaction index, by last offset; empty when it has no bytes."""
    if len(content) % _ENTRY.size:
        at = len(content) - len(content) % _ENTRY.size
        return _bad(at, -1, f"{len(content)} bytes are no whole entries of {_ENTRY.size}")
    found: list[AbortedTransaction] = []
    previous = -1
    for number, (version, *fields) in enumerate(_ENTRY.iter_unpack(content)):
        entry = AbortedTransaction(*fields)
        at = number * _ENTRY.size
        if version != _VERSION:
            return _bad(at, entry.last_offset, f"version {version}, expected {_VERSION}")
        if not 0 <= entry.first_offset <= entry.last_offset:
            offsets = f"offsets {entry.first_offset} to {entry.last_offset}"
            return _bad(at, entry.last_offset, offsets)
        if entry.last_offset <= previous:
            detail = f"last offset {entry.last_offset} behind {previous}"
            return _bad(at, entry.last_offset, detail)
        previous = entry.last_offset
        found.append(entry)
    return tuple(found)


def _bad(position: int, offset: int, detail: str) -> DecodingFault:
    return DecodingFault(
        DecodingFaultKind.BAD_TXN_INDEX, position, max(offset, -1), f"transaction index: {detail}"
    )


class AbortedSearch:
    """Takes entries segment by segment, from *first_offset* on, until `is_complete`."""

    def __init__(self, first_offset: int, next_offset: int) -> None:
        self._first_offset = first_offset
        self._next_offset = next_offset
        self._found: list[AbortedTransaction] = []
        self.is_complete = first_offset >= next_offset

    @property
    def found(self) -> tuple[AbortedTransaction, ...]:
        return tuple(self._found)

    def take(self, entries: Iterable[AbortedTransaction]) -> None:
        for entry in entries:
            if self.is_complete:
                return
            if entry.last_offset >= self._first_offset and entry.first_offset < self._next_offset:
                self._found.append(entry)
            self.is_complete = entry.last_stable_offset >= self._next_offset


class AbortedRanges:
    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        for one in transactions:
            self._ranges.setdefault(one.producer_id, []).append((one.last_offset, one.first_offset))
        for ranges in self._ranges.values():
            ranges.sort()

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def cover(self, producer_id: int, base_offset: int) -> bool:
        ranges = self._ranges.get(producer_id)
        if ranges is None:
            return False
        # Transactions of one producer follow one another: the first that ends behind it decides.
        at = bisect_left(ranges, (base_offset, -1))
        return at < len(ranges) and ranges[at][1] <= base_offset
