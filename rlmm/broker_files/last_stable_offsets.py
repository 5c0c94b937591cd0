"""
Last stable offsets of partitions, asked of the cluster and cached for a short time.

They only rise, so a cached one is never too high: it may permit a read, and before one refuses a
read the cluster is asked again. Concurrent readers share a request; after a failure the next one
waits for a while.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import LogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.broker_files.statistics import BrokerFilesCounters
    from rlmm.kafka_client.offsets.log_ends import LastStableOffsets
    from rlmm.metadata.ids import TopicIdPartition

REFUSING_AGE_S: Final = 1.0
"""No older may an offset be that a file is refused by."""
_KEPT_MAX: Final = 10_000
"""Beyond that those are forgotten that are too old to be of use."""


class KnownStableOffset(NamedTuple):
    offset: int | None
    trouble: LogError | None = None


@dataclass(slots=True)
class _Kept:
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    told: KnownStableOffset | None = None
    at_s: float = 0.0


class CachedStableOffsets:
    def __init__(
        self,
        teller: LastStableOffsets,
        age_s_max: float,
        figures: BrokerFilesCounters,
        now_s: Callable[[], float] | None = None,
    ) -> None:
        self._teller = teller
        self._age_s_max = age_s_max
        self._figures = figures
        self._now_s = now_s
        self._kept: dict[TopicIdPartition, _Kept] = {}

    async def of(self, partition: TopicIdPartition, at_least: int = 0) -> KnownStableOffset:
        """Return the last stable offset of *partition*; one below *at_least* was asked just now."""
        now_s = self._now_s or asyncio.get_running_loop().time
        kept = self._kept.get(partition)
        if kept is None:
            self._forget(now_s())
            kept = self._kept[partition] = _Kept()
        async with kept.asking:
            told = self._usable(kept, at_least, now_s())
            if told is None:
                told = kept.told = await self._ask(partition)
                kept.at_s = now_s()
        return told

    def _usable(self, kept: _Kept, at_least: int, now_s: float) -> KnownStableOffset | None:
        told = kept.told
        if told is None:
            return None
        age_s = now_s - kept.at_s
        is_refusal = told.offset is not None and told.offset < at_least
        age_s_max = min(self._age_s_max, REFUSING_AGE_S) if is_refusal else self._age_s_max
        return told if age_s < age_s_max else None

    async def _ask(self, partition: TopicIdPartition) -> KnownStableOffset:
        self._figures.questions += 1
        try:
            return KnownStableOffset(await self._teller.last_stable_offset(partition))
        except LogError as error:
            self._figures.questions_failed += 1
            return KnownStableOffset(None, error)

    def _forget(self, now_s: float) -> None:
        if len(self._kept) < _KEPT_MAX:
            return
        old = [
            partition
            for partition, kept in self._kept.items()
            if not kept.asking.locked() and now_s - kept.at_s >= self._age_s_max
        ]
        for partition in old:
            del self._kept[partition]
