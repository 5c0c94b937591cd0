"""A broker: it leads and follows partitions, copies their segments and answers consumers."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from examples.python_broker.copier import Copier, EpochUnknown
from examples.python_broker.log import LocalLog
from examples.python_broker.reader import Reader, Refused
from examples.python_broker.tier import TierRefused, TierUnavailable
from rlmm.errors import RlmmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_adapter.verbs import Verbs
    from examples.python_broker.log import Record
    from examples.python_broker.tier import Tier
    from rlmm.metadata.ids import TopicIdPartition

_log = logging.getLogger(__name__)

NOT_HERE: Final = Refused("NOT_LEADER_OR_FOLLOWER", retriable=True)
COPY_S: Final = 600.0
"""What the copies of one partition may take before they are given up."""


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """Serves one broker's partitions, over the metadata verbs of a service or of a stand-in."""

    def __init__(
        self,
        broker_id: int,
        metadata: Verbs,
        tier: Tier,
        *,
        now_ms: Callable[[], int] = wall_ms,
        copy_s: float = COPY_S,
    ) -> None:
        self.broker_id = broker_id
        self.logs: dict[TopicIdPartition, LocalLog] = {}
        self.leads: set[TopicIdPartition] = set()
        self.copier = Copier(metadata, tier, broker_id, now_ms)
        self.reader = Reader(metadata, tier)
        self._metadata = metadata
        self._copy_s = copy_s

    # -------------------------------------------------------------------------- leadership

    def become_leader(self, partition: TopicIdPartition, epoch: int) -> LocalLog:
        log = self.logs.setdefault(partition, LocalLog())
        log.begin_epoch(epoch)
        self.leads.add(partition)
        self._metadata.on_partition_leadership_changes([partition], [])
        return log

    def become_follower(self, partition: TopicIdPartition) -> LocalLog:
        self.leads.discard(partition)
        self._metadata.on_partition_leadership_changes([], [partition])
        return self.logs.setdefault(partition, LocalLog())

    def stop(self, partition: TopicIdPartition) -> None:
        self.leads.discard(partition)
        self.logs.pop(partition, None)
        self._metadata.on_stop_partitions([partition])

    # ---------------------------------------------------------------------------- copying

    async def tick(self) -> dict[TopicIdPartition, int]:
        """Copy the due segments of every led partition; return the result of each."""
        partitions = sorted(self.leads, key=str)
        counts = await asyncio.gather(*(self._copy(partition) for partition in partitions))
        return dict(zip(partitions, counts, strict=True))

    async def _copy(self, partition: TopicIdPartition) -> int:
        try:
            async with asyncio.timeout(self._copy_s):
                await self.copier.resume_deletions(partition)
                return await self.copier.copy(partition, self.logs[partition])
        except (RlmmError, TierUnavailable, TierRefused, EpochUnknown, TimeoutError) as error:
            _log.warning("%s is not tiered for now: %s", partition, error)
            return 0

    # ---------------------------------------------------------------------------- reading

    async def fetch(self, partition: TopicIdPartition, offset: int) -> list[Record] | Refused:
        """Return the records for a consumer, or the refusal."""
        log = self.logs.get(partition)
        if log is None:
            return NOT_HERE
        return await self.reader.fetch(partition, log, offset)
