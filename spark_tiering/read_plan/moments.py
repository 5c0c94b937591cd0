"""
The metadata at one moment, as plans need it: exactly that of its positions. A service's answer
about a partition may be newer than the positions that it gave before, and such a plan could not be
made again. `steady` replays the metadata partition where that matters.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from rlmm.errors import UnknownPartition
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PartitionReplay, replay
from rlmm.metadata.engines import shard_type
from spark_tiering.tier_metadata.possible_partitions import impossible, possible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.findings.finding import Finding
    from rlmm.inspection.moment import PartitionSummary
    from rlmm.inspection.replay import ShardsMoment
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard
    from rlmm.records.record_set import RecordSet

TIMEOUT_S = 30.0


class PlanMoment(Protocol):
    """The metadata at one moment: `spark_tiering.maintenance.tier.TierMoment` is one."""

    @property
    def identity(self) -> LogIdentity: ...

    @property
    def positions(self) -> Mapping[int, int]: ...

    def partitions(self) -> list[PartitionSummary]: ...

    def impossible(self) -> list[Finding]: ...

    def state(self, partition: TopicIdPartition) -> Shard: ...


class PlanLog(Protocol):
    """The records of the metadata topic: `spark_tiering.maintenance.tier.TierLog` is one."""

    def identity(self) -> LogIdentity: ...

    def bounds(self, places: Collection[int]) -> Mapping[int, LogBounds | LogError]: ...

    def read(self, place: int, position: int, *, bytes_max: int = 1 << 20) -> RecordSet | None: ...


class _Awaited:
    def __init__(self, log: PlanLog) -> None:
        self._log = log

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        del timeout_s
        return self._log.identity()

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        del timeout_s
        return self._log.bounds(partitions)

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        del timeout_s
        return self._log.read(partition, position, bytes_max=bytes_max)


class PastMoment:
    def __init__(self, moment: ShardsMoment, wants_topic: Callable[[str], bool]) -> None:
        self._moment = moment
        self._wants = wants_topic
        self.identity = moment.identity
        self.positions: Mapping[int, int] = moment.positions

    def partitions(self) -> list[PartitionSummary]:
        """Return every wanted partition that a broker can have."""
        return possible(self._wanted())

    def impossible(self) -> list[Finding]:
        """Return findings about the wanted partitions that `partitions` leaves out."""
        return impossible(self._wanted())

    def _wanted(self) -> list[PartitionSummary]:
        known = asyncio.run(self._moment.user_partitions())
        return [one for one in known if self._wants(one.partition.topic)]

    def state(self, partition: TopicIdPartition) -> Shard:
        return asyncio.run(self._moment.state(partition))


def moment_at(
    log: PlanLog,
    bound: ReplayEnd,
    wants_topic: Callable[[str], bool],
    places: Collection[int] | None = None,
) -> PastMoment:
    """Return the metadata at *bound*, of *places* or all. Raise `LogTruncated` for a lost past."""
    return PastMoment(asyncio.run(replay(_Awaited(log), places, bound)), wants_topic)


class SteadyMoment:
    """*moment*, whose states may be newer than its positions, as it was at these."""

    def __init__(self, moment: PlanMoment, log: PlanLog) -> None:
        self._moment = moment
        self._log = log
        self._replayed: dict[int, PastMoment] = {}
        """Metadata partitions that had to be."""
        self.identity = moment.identity
        self.positions: Mapping[int, int] = dict(moment.positions)

    def partitions(self) -> list[PartitionSummary]:
        """List the partitions as `PlanMoment` does, newer ones included."""
        return self._moment.partitions()

    def impossible(self) -> list[Finding]:
        return self._moment.impossible()

    def state(self, partition: TopicIdPartition) -> Shard:
        """Return the state at the positions; raises `UnknownPartition` for a newer partition."""
        shard = self._moment.state(partition)
        place, position = shard.partition, self.positions[shard.partition]
        if shard.position <= position or not self._is_told_of(partition, place, shard.position):
            return shard
        if place not in self._replayed:
            bound = ReplayEnd({place: position - 1})
            self._replayed[place] = moment_at(self._log, bound, lambda _: True, [place])
        return self._replayed[place].state(partition)

    def _is_told_of(self, partition: TopicIdPartition, place: int, until: int) -> bool:
        """Return whether any event between the position and *until* is about *partition*."""
        position = self.positions[place]
        between = PartitionReplay(
            _Awaited(self._log), place, ReplayEnd({place: until - 1}),
            timeout_s=TIMEOUT_S, shard=shard_type()(place, position),
        )  # fmt: skip

        async def look() -> bool:
            found = False
            async for chunk in between.chunks():
                found = found or any(one.partition == partition for one in chunk.happened())
            return found

        return asyncio.run(look())


def steady(moment: PlanMoment, log: PlanLog) -> PlanMoment:
    """Return *moment* at its positions and nothing newer, with the help of *log*."""
    return SteadyMoment(moment, log)


def state_of(moment: PlanMoment, partition: TopicIdPartition) -> Shard | None:
    try:
        return moment.state(partition)
    except UnknownPartition:
        return None
