"""
A partition of a topic in memory: its record batches in offset order, its bounds, and its faults.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell
from rlmm.errors import LogTruncated
from rlmm.log.protocol import LogBounds
from rlmm.records.record_set import RecordSet

if TYPE_CHECKING:
    from rlmm.errors import LogError


class BoundsFault(Enum):
    """The planned answer to a request for bounds."""

    FAILS = "fails"
    MISSING = "missing"
    """The answer comes, but lacks this partition."""
    HANGS = "hangs"
    """The call has no answer, ever."""


class AppendOutcome(Enum):
    """The planned outcome of an append, and the answer of its caller."""

    STORED = "stored"
    REFUSED = "refused"
    UNCERTAIN_STORED = "uncertain-stored"
    """The event is stored; the caller gets no answer."""
    UNCERTAIN_LOST = "uncertain-lost"
    """The event is lost; the caller gets no answer."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """Stores one record batch; *last_offset* is its header's, also with records removed."""

    base_offset: int
    last_offset: int
    data: bytes


_LAST_OFFSET = attrgetter("last_offset")


@dataclass(slots=True)
class MemoryPartition:
    """The batches of one partition, in offset order, and the faults that a script gave it."""

    number: int
    log_start: int = 0
    next_offset: int = 0
    leader_epoch: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)
    """Leader epochs above 0 and the offsets at which they begin."""
    batches: list[StoredBatch] = field(default_factory=list)
    size_bytes: int = 0
    fault: tuple[type[LogError], str] | None = None
    """The error of every call on this partition, while it is set."""
    is_stalled: bool = False
    """Whether it grows without delivering."""
    batches_again: int = 0
    """How many batches below the position the next delivery brings once more."""
    bounds_fault: BoundsFault | None = None
    append_plan: deque[AppendOutcome] = field(default_factory=deque)
    """Outcomes of the next appends, in order; later appends are stored."""
    holds_appends: bool = False
    bell: Doorbell = field(default_factory=Doorbell)
    """Rings whenever something changes that a waiting call may want to see."""

    @property
    def bounds(self) -> LogBounds:
        return LogBounds(self.log_start, self.next_offset)

    def store(self, data: bytes, record_count: int = 1) -> int:
        """Take a batch that was built at `next_offset`, and return its base offset."""
        base_offset = self.next_offset
        self.next_offset += record_count
        self.batches.append(StoredBatch(base_offset, self.next_offset - 1, data))
        self.size_bytes += len(data)
        return base_offset

    def replace(self, batches: list[StoredBatch]) -> None:
        """Hold *batches* instead, in offset order and within the offsets that were given."""
        self.batches = batches
        self.size_bytes = sum(len(batch.data) for batch in batches)

    def index_of(self, offset: int) -> int:
        """Return the index of the batch that holds *offset*, or follows the hole around it."""
        return bisect_left(self.batches, offset, key=_LAST_OFFSET)

    def select(self, position: int, bytes_max: int) -> RecordSet | None:
        """Return the record set of a fetch, None while there is none; `LogTruncated` outside."""
        if not self.log_start <= position <= self.next_offset:
            msg = (
                f"partition {self.number}: offset {position} lies outside "
                f"[{self.log_start}, {self.next_offset}]"
            )
            raise LogTruncated(msg, self.log_start, self.next_offset)
        if self.is_stalled or position == self.next_offset:
            return None
        first = self.index_of(position)
        start = max(0, first - self.batches_again)
        self.batches_again = 0
        stop = first + 1
        size = sum(len(batch.data) for batch in self.batches[start:stop])
        while stop < len(self.batches):
            size += len(self.batches[stop].data)
            if size > bytes_max:
                break
            stop += 1
        at_end = stop >= len(self.batches)
        next_offset = self.next_offset if at_end else self.batches[stop - 1].last_offset + 1
        data = b"".join(batch.data for batch in self.batches[start:stop])
        return RecordSet(self.number, data, next_offset)

    def begin_epoch(self) -> None:
        """Elect a leader: what comes next is of another leader epoch."""
        self.leader_epoch += 1
        self.epoch_starts.append((self.leader_epoch, self.next_offset))

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch with records that is not above *leader_epoch*, and its end."""
        known = [(0, 0), *self.epoch_starts, (self.leader_epoch + 1, self.next_offset)]
        found = (-1, -1)
        for (epoch, start), (_, end) in pairwise(known):
            if epoch <= leader_epoch and start < end:
                found = epoch, end
        return found

    def truncate_head(self, log_start: int) -> None:
        """Drop the batches below *log_start*; a batch that reaches beyond it stays whole."""
        self.log_start = max(self.log_start, min(log_start, self.next_offset))
        self.replace(self.batches[self.index_of(self.log_start) :])

    def truncate_tail(self, next_offset: int) -> None:
        """Drop whole batches until nothing at or above *next_offset* is left."""
        kept = self.index_of(next_offset)
        if kept < len(self.batches):
            next_offset = min(next_offset, self.batches[kept].base_offset)
        self.replace(self.batches[:kept])
        self.next_offset = max(self.log_start, min(self.next_offset, next_offset))
        self.epoch_starts = [
            (epoch, min(start, self.next_offset)) for epoch, start in self.epoch_starts
        ]
