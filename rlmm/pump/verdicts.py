"""
Verdicts on events for the writers that wait for them.

The follower may have passed an event before the log gives its offset, so a writer listens before it
appends: while any append is under way, entries of reports are kept. A passed offset without an
entry was applied. When the state is read anew, waiting writers fail, since offsets may mean other
events.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from rlmm.errors import OutcomeUnknown
from rlmm.metadata.verdicts import APPLIED

if TYPE_CHECKING:
    from rlmm.errors import Unresolved
    from rlmm.metadata.report import Entry, Report
    from rlmm.metadata.verdicts import Verdict

_Waiter = tuple[int, int, "asyncio.Future[Verdict]"]
"""Offset, order of arrival, future of the writer."""


class VerdictWaits:
    def __init__(self, position: int) -> None:
        self._position = position
        self._appending: dict[int, int] = {}
        """Appends under way, each with the follower's position at its beginning."""
        self._kept: list[Entry] = []
        """Entries by rising offset, while any append does not know its offset yet."""
        self._waiters: list[_Waiter] = []
        self._arrivals = count()
        self._end: tuple[type[Unresolved], str] | None = None

    @property
    def listening(self) -> int:
        waiting = sum(not waiter.done() for _, _, waiter in self._waiters)
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

    def listen(self, offset: int, append: int) -> asyncio.Future[Verdict]:
        """Return the verdict on the event at *offset*. To be called before `end_append`."""
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
            waiter.set_result(_verdict_on(offset, self._kept))
        else:
            heappush(self._waiters, (offset, next(self._arrivals), waiter))
        return waiter

    def take_report(self, report: Report) -> None:
        if self._appending:
            self._kept.extend(report.entries)
        self._position = report.next_offset
        waiters = self._waiters
        while waiters and waiters[0][0] < report.next_offset:
            offset, _, waiter = heappop(waiters)
            if not waiter.done():
                waiter.set_result(_verdict_on(offset, report.entries))

    def fail(self, error: type[Unresolved], message: str) -> None:
        """Fail all writers, from now on; the first error holds."""
        if self._end is not None:
            return
        self._end = error, message
        for _, _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error(message))
        self._waiters.clear()


def _verdict_on(offset: int, entries: tuple[Entry, ...] | list[Entry]) -> Verdict:
    index = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
    if index >= 0 and entries[index].offset <= offset < entries[index].next_offset:
        return entries[index].verdict
    return APPLIED
