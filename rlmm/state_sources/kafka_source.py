"""
Source of a cluster's metadata topic, replayed for one command. READ and DESCRIBE on the topic are
enough: there is no producer and no group. A cache of snapshots lets the next command read only new
records.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from rlmm.base.native_core import engine_in_use
from rlmm.errors import ConfigError
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.state_sources.brokers import Brokers
from rlmm.state_sources.protocol import SourceStatus, StateSourceKind
from rlmm.state_sources.replayed_states import ReplayedStates
from rlmm.state_sources.snapshot_cache import SnapshotCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from pathlib import Path

    from rlmm.inspection.replay import Progress, ShardsMoment
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.log.protocol import LogIdentity

FIRST_ANSWER_S = 10.0
"""How long a cluster may take to say who it is: where nobody listens, a person waits for that."""


class KafkaSource:
    kind = StateSourceKind.KAFKA

    def __init__(
        self,
        log: KafkaLog,
        cluster: Brokers,
        where: str,
        *,
        timeout_s: float,
        cache: SnapshotCache | None = None,
    ) -> None:
        """Takes ownership of its arguments, and closes them."""
        self.log = log
        self.cluster = cluster
        self.where = where
        self._cache = cache
        self._states = ReplayedStates(
            log, timeout_s=timeout_s, first_answer_s=FIRST_ANSWER_S, cache=cache
        )

    @classmethod
    async def open(
        cls,
        settings: KafkaSettings,
        *,
        timeout_s: float,
        snapshot_cache: Path | None = None,
        prepare: Callable[[KafkaSettings], Awaitable[Dialer]] = Dialer.prepare,
    ) -> Self:
        """
        Create the source; it connects at the first question. *timeout_s* limits each request, and
        how long the topic may return nothing. Raises `ConfigError` for a file of *settings*, or a
        cache, that cannot be used.
        """
        if not settings.is_observer or settings.topic.is_created:
            msg = "who looks at a cluster writes nothing: mode or kafka.topic.is.created says other"
            raise ConfigError(msg)
        async with AsyncExitStack() as opened:
            cache = None
            if snapshot_cache is not None:
                cache = await SnapshotCache.open(snapshot_cache)
                opened.push_async_callback(cache.close)
            log = KafkaLog(settings, await prepare(settings))
            opened.push_async_callback(log.close)
            cluster = await Brokers.open(settings, timeout_s, prepare=prepare)
            opened.pop_all()
        where = ",".join(settings.bootstrap_servers)
        return cls(log, cluster, where, timeout_s=timeout_s, cache=cache)

    async def standing(self) -> SourceStatus:
        """See `StateSource`; reads the whole topic, or the records since the last read."""
        identity = await self._states.identity()
        places = await self._states.standings(range(identity.partition_count))
        notes = self._notes(identity)
        if self._cache is not None and self._cache.trouble is not None:
            notes.append(self._cache.trouble)
        return SourceStatus(
            self.kind, self.where, identity, tuple(places.values()), tuple(notes),
            engine=engine_in_use().pair,
        )  # fmt: skip

    async def now(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> ShardsMoment:
        """See `StateSource`. The topic is read up to its end at the time of this call."""
        moment = await self._states.moment(places, wait_s=wait_s, progress=progress)
        self._states.tell(self._notes(moment.identity))
        return moment

    def _notes(self, identity: LogIdentity) -> list[str]:
        notes = self._states.not_understood()
        misplaced = self._states.misplaced(identity.partition_count)
        if misplaced is not None:
            notes.append(f"{misplaced}: was the number of partitions changed?")
        return notes

    async def close(self) -> None:
        """See `StateSource`. Writes the cache, unless the command was interrupted."""
        task = asyncio.current_task()
        try:
            if task is None or not task.cancelling():
                await self._states.keep()
        finally:
            await self.log.close()
            await self.cluster.close()
            if self._cache is not None:
                await self._cache.close()
