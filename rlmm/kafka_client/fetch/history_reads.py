"""
Reads of history beside the followers of a log, answered by a fetcher of their own.

A fetcher has one request per partition under way, and remembers end and epoch. A reader of history
that shared it would wait for long polls and disturb that. The second fetcher starts with the first
such read, and is dropped when unused for a while.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_client.fetch.fetcher import Fetcher
    from rlmm.metadata.ids import Uuid

IDLE_S: Final = 60.0
"""How long the second fetcher may be idle before it is dropped."""


class HistoryReads:
    """The fetcher of the followers, and the one of all other readers."""

    def __init__(self, make: Callable[[], Fetcher]) -> None:
        self.main = make()
        self._make = make
        self._aside: Fetcher | None = None
        self._going: asyncio.TimerHandle | None = None
        self._gone = (0, 0, 0)
        """Requests, bytes and deaths of fetchers that were dropped."""

    def all(self) -> list[Fetcher]:
        return [self.main] if self._aside is None else [self.main, self._aside]

    def counts(self) -> tuple[int, int, int]:
        """Return requests, bytes and deaths, summed over all fetchers that there ever were."""
        requests, size, deaths = self._gone
        for fetcher in self.all():
            requests += fetcher.requests
            size += fetcher.bytes
            deaths += fetcher.deaths
        return requests, size, deaths

    def aside(self, topic_id: Uuid) -> Fetcher:
        """Return the fetcher of reads beside followers; callers `leave` it after each read."""
        if self._aside is None:
            self._aside = self._make()
        self._aside.bind(topic_id)
        self.close()
        return self._aside

    def leave(self, fetcher: Fetcher) -> None:
        """Drop *fetcher* a while after its last read, unless it is the followers' own."""
        if fetcher is not self.main and not fetcher.pending:
            loop = asyncio.get_running_loop()
            self._going = loop.call_later(IDLE_S, self._drop, fetcher)

    def _drop(self, fetcher: Fetcher) -> None:
        if fetcher is self._aside and not fetcher.pending:
            requests, size, deaths = self._gone
            self._gone = requests + fetcher.requests, size + fetcher.bytes, deaths + fetcher.deaths
            self._aside = None

    def close(self) -> None:
        if self._going is not None:
            self._going.cancel()
