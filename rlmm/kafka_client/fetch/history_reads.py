"""
How reads are answered that are none of a follower's: by a source of their own.

A source asks for one read of each partition at a time, and remembers where a partition ends and
which leader epoch lies behind it. Who goes through a whole partition beside its follower would wait
for every long poll of that, and take from it what is remembered. So there is a second source, which
begins with the first such read, and goes when nobody has read for a while.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_client.connections.task_set import TaskSet
    from rlmm.kafka_client.fetch.partition_reads import ReadSource
    from rlmm.metadata.ids import Uuid

IDLE_S: Final = 60.0
"""How long nobody may read before what is held for that is given back."""


class HistoryReads:
    """The source of the followers, and the one of all others."""

    def __init__(self, make: Callable[[], ReadSource], crew: TaskSet) -> None:
        self.main = make()
        self._make = make
        self._crew = crew
        self._aside: ReadSource | None = None
        self._going: asyncio.TimerHandle | None = None
        self._gone = (0, 0, 0)
        """Requests, bytes and deaths of sources that are no more."""

    def all(self) -> list[ReadSource]:
        return [self.main] if self._aside is None else [self.main, self._aside]

    def counts(self) -> tuple[int, int, int]:
        """Requests, bytes and deaths, of all that there ever were."""
        requests, size, deaths = self._gone
        for one in self.all():
            requests, size, deaths = requests + one.requests, size + one.bytes, deaths + one.deaths
        return requests, size, deaths

    def aside(self, topic_id: Uuid) -> ReadSource:
        """The source of reads beside followers; callers `leave` it after each read."""
        if self._aside is None:
            self._aside = self._make()
        self._aside.bind(topic_id)
        if self._going is not None:
            self._going.cancel()
        return self._aside

    def leave(self, source: ReadSource) -> None:
        """Give *source* back a while after its last read."""
        if source is not self.main and not source.pending:
            loop = asyncio.get_running_loop()
            self._going = loop.call_later(IDLE_S, self._let_go, source)

    def _let_go(self, source: ReadSource) -> None:
        if source is not self._aside or source.pending:
            return
        requests, size, deaths = self._gone
        self._gone = requests + source.requests, size + source.bytes, deaths + source.deaths
        self._aside = None
        self._crew.start(source.close(), "close what was read aside")

    async def close(self) -> None:
        """Give back what is still held, now that all reads have ended."""
        if self._going is not None:
            self._going.cancel()
        for one in self.all():
            await one.close()
