"""
Verdicts on events for the writers that wait for them.

The follower may have passed an event before the log gives its offset, so a writer listens before it
appends: while any append is under way, entries of reports and checksums of passed values are kept.
A verdict belongs to a writer only if the value at its offset is its own: a new leader may have lost
the event. A passed value without an entry was applied. When the state is read anew, waiting writers
fail, since offsets may mean other events.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from heapq import heappop, heappush
from itertools import count, takewhile
from typing import TYPE_CHECKING

import google_crc32c

from rlmm.errors import OutcomeUnknown
from rlmm.metadata.verdicts import APPLIED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlmm.errors import Unresolved
    from rlmm.metadata.report import Entry, Report
    from rlmm.metadata.verdicts import Verdict

_Waiter = tuple[int, int, int, "asyncio.Future[Verdict]"]
"""Offset, order of arrival, checksum of the value, future of the writer."""


class VerdictWaits:
    def __init__(self, position: int) -> None:
        self._position = position
        self._appending: dict[int, int] = {}
        """Appends under way, each with the follower's position at its beginning."""
        self._kept: list[Entry] = []
        """Entries by rising offset, while any append does not know its offset yet."""
        self._passed: dict[int, int] = {}
        """Offset -> checksum of the value there, by rising offset, as long as entries are kept."""
        self._waiters: list[_Waiter] = []
        self._arrivals = count()
        self._end: tuple[type[Unresolved], str] | None = None

    @property
    def listening(self) -> int:
        waiting = sum(not waiter.done() for *_, waiter in self._waiters)
        return len(self._appending) + waiting

    def begin(self) -> int:
        """Keep entries from now on; callers pass the result to `end_append` in any case."""
        append = next(self._arrivals)
        self._appending[append] = self._position
        return append

    def end_append(self, append: int) -> None:
        del self._appending[append]
        # No append under way has an event before the position at its beginning.
        low = next(iter(self._appending.values()), self._position)
        needless = bisect_right(self._kept, low, key=lambda entry: entry.next_offset)
        del self._kept[:needless]
        for offset in list(takewhile(lambda offset: offset < low, self._passed)):
            del self._passed[offset]

    def listen(self, offset: int, append: int, value: bytes) -> asyncio.Future[Verdict]:
        """Return the verdict on *value* at *offset*. To be called before `end_append`."""
        checksum: int = google_crc32c.value(value)
        waiter: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        if self._end is not None:
            error, message = self._end
            waiter.set_exception(error(message))
        elif offset < self._appending[append]:
            # What was passed there was another event, of a tail that the log has lost since: what
            # is known of that one says nothing of this one.
            msg = "the log was cut off below its offset, and what was read is not what it holds"
            waiter.set_exception(OutcomeUnknown(msg))
        elif offset < self._position:
            _settle(waiter, offset, checksum, self._passed, self._kept)
        else:
            heappush(self._waiters, (offset, next(self._arrivals), checksum, waiter))
        return waiter

    def listening_list(self) -> list[tuple[int, bytes | None]] | None:
        """Return an empty list for what the next report passes, if any writer waits for that."""
        return [] if self._appending or self._waiters else None

    def take_report(self, report: Report, values: Iterable[tuple[int, bytes | None]]) -> None:
        """Take a *report*, and the *values* that it passed where `listening_list` asked for it."""
        waiters, passed = self._waiters, self._passed
        for offset, value in values:
            if value is not None:
                passed[offset] = google_crc32c.value(value)
        if self._appending:
            self._kept.extend(report.entries)
        self._position = report.next_offset
        while waiters and waiters[0][0] < report.next_offset:
            offset, _, checksum, waiter = heappop(waiters)
            if not waiter.done():
                _settle(waiter, offset, checksum, passed, report.entries)
        if not self._appending:
            passed.clear()

    def fail(self, error: type[Unresolved], message: str) -> None:
        """Fail all writers, from now on; the first error holds."""
        if self._end is not None:
            return
        self._end = error, message
        for *_, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error(message))
        self._waiters.clear()


def _settle(
    waiter: asyncio.Future[Verdict],
    offset: int,
    checksum: int,
    passed: Mapping[int, int],
    entries: Sequence[Entry],
) -> None:
    if passed.get(offset) == checksum:
        waiter.set_result(_verdict_on(offset, entries))
    else:
        # Damage is no verdict, either: the log may have been cut, and hold another event there.
        what = f"another event, or none, was read at offset {offset}"
        msg = f"{what}: the log was cut below it, or is damaged there"
        waiter.set_exception(OutcomeUnknown(msg))


def _verdict_on(offset: int, entries: Sequence[Entry]) -> Verdict:
    index = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
    if index >= 0 and entries[index].offset <= offset < entries[index].next_offset:
        return entries[index].verdict
    return APPLIED
