"""
A partition's local log in memory; epochs rise with offsets, the newest segment is never sealed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Record(NamedTuple):
    offset: int
    timestamp_ms: int
    value: bytes


@dataclass
class LocalSegment:
    start_offset: int
    records: list[Record] = field(default_factory=list)

    @property
    def last_offset(self) -> int:
        return self.start_offset + len(self.records) - 1


class LocalLog:
    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        """Leader epoch to the first offset written in it; it outlives the local records."""
        self.segments = [LocalSegment(0)]
        self.last_stable_offset: int | None = None
        """Where an open transaction begins; nothing from there on may be tiered."""

    @property
    def start_offset(self) -> int:
        return self.segments[0].start_offset

    @property
    def next_offset(self) -> int:
        return self.segments[-1].last_offset + 1

    def begin_epoch(self, epoch: int) -> None:
        """Records are written in leader epoch *epoch* from now on; to say so again is harmless."""
        self.epochs.setdefault(epoch, self.next_offset)

    def append(self, *values: bytes, timestamp_ms: int = 0) -> None:
        for value in values:
            self.segments[-1].records.append(Record(self.next_offset, timestamp_ms, value))

    def roll(self) -> None:
        if self.segments[-1].records:
            self.segments.append(LocalSegment(self.next_offset))

    def trim(self, offset: int) -> None:
        """Drop sealed segments that end before *offset*."""
        while len(self.segments) > 1 and self.segments[0].last_offset < offset:
            self.segments.pop(0)

    def sealed(self) -> list[LocalSegment]:
        """Return the segments that may be tiered: rolled, and wholly stable."""
        stable = self.next_offset if self.last_stable_offset is None else self.last_stable_offset
        return [one for one in self.segments[:-1] if one.last_offset < stable]

    def read(self, offset: int) -> list[Record]:
        """Return the records from *offset* on, of the segment that holds it."""
        for segment in self.segments:
            if segment.start_offset <= offset <= segment.last_offset:
                return segment.records[offset - segment.start_offset :]
        return []

    def epoch_of(self, offset: int) -> int | None:
        """Return the leader epoch in which *offset* was written; `None` where that is not known."""
        before = [epoch for epoch, start in self.epochs.items() if start <= offset]
        return max(before, default=None)

    def end_of(self, epoch: int) -> int:
        later = [start for other, start in self.epochs.items() if other > epoch]
        return min(later, default=self.next_offset) - 1

    def epochs_in(self, start: int, last: int) -> dict[int, int]:
        """Return the leader epochs of a range, each with its first offset in the range."""
        return {
            epoch: max(begun, start)
            for epoch, begun in sorted(self.epochs.items())
            if begun <= last and self.end_of(epoch) >= start
        }
