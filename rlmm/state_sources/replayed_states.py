"""
Replayed states of a log's metadata partitions, and their status, for one command. A later question
continues where the last one stopped. Invariant: a state that was handed out never changes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import (
    LogDamaged,
    LogError,
    LogNotPermitted,
    NotReady,
    RlmmError,
    first_of,
)
from rlmm.gate.state import GateState
from rlmm.inspection.moment import ReplayEnd
from rlmm.inspection.replay import PLACES_AT_ONCE, PartitionReplay, ShardsMoment
from rlmm.inspection.source_status import MetadataPartitionStatus, lost_note, unread
from rlmm.log.replay_progress import NotReadyReason, ReplayHistory
from rlmm.metadata.assignment import place_of
from rlmm.metadata.misplaced import MisplacedPartitions
from rlmm.metadata.verdicts import COUNTED_APART, RejectReason
from rlmm.views.status import segments_by_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlmm.inspection.replay import EventLog, Progress
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.report import ShardStatistics
    from rlmm.metadata.shard import Shard
    from rlmm.state_sources.snapshot_cache import SnapshotCache

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReplayedPartition:
    replay: PartitionReplay
    base: ReplayHistory
    """What its state was made of before this process read on."""
    is_lent: bool = False
    """Whether a caller holds the state: then nothing more is applied to it."""

    @property
    def shard(self) -> Shard:
        return self.replay.shard

    @property
    def history(self) -> ReplayHistory:
        return history_of(self.base, self.shard.statistics())


class ReplayedStates:
    def __init__(
        self,
        log: EventLog,
        *,
        timeout_s: float,
        first_answer_s: float = math.inf,
        cache: SnapshotCache | None = None,
    ) -> None:
        """*timeout_s* limits each request, *first_answer_s* the first one if shorter."""
        self._log = log
        self._timeout_s = timeout_s
        self._first_answer_s = first_answer_s
        self._cache = cache
        self._identity: LogIdentity | None = None
        self._held: dict[int, ReplayedPartition] = {}
        self._misplaced: dict[int, tuple[tuple[Shard, int, int], MisplacedPartitions]] = {}
        """By metadata partition, for shard, position and partition count of the last look."""
        self._told: set[str] = set()
        self._turn = asyncio.Lock()

    def held(self) -> Mapping[int, ReplayedPartition]:
        return self._held

    async def identity(self) -> LogIdentity:
        """Ask for the identity of the log; forget the states of another log."""
        known, timeout_s = self._identity, self._timeout_s
        if known is None:
            timeout_s = min(timeout_s, self._first_answer_s)
        found = await self._log.identity(timeout_s=timeout_s)
        if known is not None and (known.cluster_id, known.topic_id) != (
            found.cluster_id, found.topic_id,
        ):  # fmt: skip
            self._held.clear()
        self._identity = found
        if self._cache is not None:
            self._cache.of(found)
        return found

    async def moment(
        self,
        places: Collection[int] | None = None,
        *,
        wait_s: float = 0.0,
        progress: Progress | None = None,
    ) -> ShardsMoment:
        """Return the state of *places*, or of all, up to the current end of the log."""
        identity = await self.identity()
        asked = range(identity.partition_count) if places is None else sorted(set(places))
        async with self._turn:
            found = await self._advance(asked, max(self._timeout_s, wait_s), progress)
            for error in found.values():
                if not isinstance(error, ReplayedPartition):
                    raise error
            held = {place: self._held[place] for place in asked}
            for one in held.values():
                one.is_lent = True
        return ShardsMoment(identity, {place: one.replay for place, one in held.items()})

    async def standings(self, places: Collection[int]) -> dict[int, MetadataPartitionStatus]:
        """Return the status of each of *places*, read up to the current end of the log."""
        async with self._turn:
            found = await self._advance(places, self._timeout_s, None)
        return {place: self._standing(place, one) for place, one in found.items()}

    async def read(self, places: Collection[int], progress: Progress | None) -> None:
        """Read *places* as far as possible; errors are reported when a state is requested."""
        async with self._turn:
            await self._advance(places, self._timeout_s, progress)

    async def keep(self) -> None:
        if self._cache is not None:
            for one in self._held.values():
                await self._cache.keep(one.shard, one.history)

    # ------------------------------------------------------------------------------ reading

    async def _advance(
        self, places: Collection[int], timeout_s: float, progress: Progress | None
    ) -> dict[int, ReplayedPartition | RlmmError]:
        """Read each of *places* to the current end of the log; return the obstacles."""
        bounds = await self._log.bounds(list(places), timeout_s=self._timeout_s)
        begun: dict[int, tuple[Shard | None, ReplayHistory]] = {}
        found: dict[int, ReplayedPartition | RlmmError] = {}
        for place in places:
            told = bounds[place]
            if isinstance(told, LogError):
                found[place] = told
            elif self._is_unchanged(place, told):
                found[place] = self._held[place]
            else:
                begun[place] = await self._beginning(place, told)
                if progress is not None:
                    shard = begun[place][0]
                    start = told.log_start_offset if shard is None else shard.position
                    progress(place, min(start, told.high_watermark), told.high_watermark)
        turns = asyncio.Semaphore(PLACES_AT_ONCE)

        async def run(place: int) -> None:
            shard, base = begun[place]
            one = PartitionReplay(self._log, place, ReplayEnd(), timeout_s=timeout_s, shard=shard)
            try:
                async with turns:
                    await one.run(progress)
            except RlmmError as error:
                found[place] = error
                return
            if one.shard is not shard:
                base = ReplayHistory(first_offset=one.log_start)
            found[place] = self._held[place] = ReplayedPartition(one, base)

        try:
            async with asyncio.TaskGroup() as tasks:
                for place in begun:
                    tasks.create_task(run(place), name=f"replay {place}")
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        return {place: found[place] for place in places}

    def _is_unchanged(self, place: int, bounds: LogBounds) -> bool:
        held = self._held.get(place)
        return held is not None and held.shard.position == bounds.high_watermark

    async def _beginning(self, place: int, bounds: LogBounds) -> tuple[Shard | None, ReplayHistory]:
        """Return a state to continue from, with its history; None for the start of the log."""
        held = self._held.get(place)
        if held is not None and not held.is_lent:
            return held.shard, held.base
        if self._cache is not None:
            kept = await self._cache.restore(place, bounds)
            if kept is not None:
                return kept.shard, kept.history
        return None, ReplayHistory()

    # ------------------------------------------------------------------------------ telling

    def misplaced(self, partition_count: int) -> str | None:
        """Return which user partitions are misplaced in a topic of that size; `None` for none."""
        found: list[tuple[TopicIdPartition, int]] = []
        for place, one in self._held.items():
            seen = one.shard, one.shard.position, partition_count
            if self._misplaced.get(place, (None,))[0] != seen:
                misplaced = MisplacedPartitions(place, partition_count)
                for partition in one.shard.partitions():
                    misplaced.meet(partition)
                self._misplaced[place] = seen, misplaced
            found += [(partition, place) for partition in self._misplaced[place][1].values()]
        if not found:
            return None
        first, place = found[0]
        return (
            f"{len(found)} user partitions have events where brokers do not look for them in a "
            f"topic of {partition_count} partitions, {first} in metadata partition {place}, not "
            f"{place_of(first, partition_count)}"
        )

    def not_understood(self) -> list[str]:
        """Return notes on records that could not be decoded and are in no state."""
        lost = {place: one.history for place, one in sorted(self._held.items())}
        return [
            lost_note(place, one.undecodable, one.records)
            for place, one in lost.items()
            if one.undecodable
        ]

    def tell(self, notes: Iterable[str]) -> None:
        """Print the notes on the sources of an answer once."""
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                _log.warning("%s", note)

    def _standing(
        self, place: int, found: ReplayedPartition | RlmmError
    ) -> MetadataPartitionStatus:
        if isinstance(found, RlmmError):
            return standing_of_trouble(place, found)
        figures, end = found.shard.statistics(), found.shard.position
        return MetadataPartitionStatus(
            metadata_partition=place,
            state=GateState.OPEN.value,
            why=None,
            detail="",
            log_start=found.replay.log_start,
            position=end,
            target=end,
            log_end=end,
            lag_records=0,
            lag_s=0.0,
            user_partitions=figures.partitions,
            segments=segments_by_state(figures),
            size_bytes=figures.size_bytes,
            rejected={str(why): count for why, count in figures.rejected_by_reason.items()},
            undecodable={str(why): count for why, count in figures.undecodable_by_reason.items()},
            is_history_complete=found.history.is_complete,
            lost_records=found.history.undecodable,
            without_base=found.history.without_base,
            snapshot_age_s=None if self._cache is None else self._cache.age_s(place),
        )


def standing_of_trouble(place: int, error: RlmmError) -> MetadataPartitionStatus:
    """Return the status of a metadata partition that *error* keeps from being read."""
    why, state = NotReadyReason.END_UNKNOWN, GateState.REPLAYING
    position = target = None
    if isinstance(error, LogNotPermitted):
        why, state = NotReadyReason.NOT_PERMITTED, GateState.CLOSED
    elif isinstance(error, LogDamaged):
        why, state = NotReadyReason.DAMAGED, GateState.CLOSED
    elif isinstance(error, NotReady):
        why, position, target = NotReadyReason.BEHIND, error.position, error.target
    return unread(place, state.value, why.value, str(error), position=position, target=target)


def history_of(base: ReplayHistory, figures: ShardStatistics) -> ReplayHistory:
    """Return the history of a state that began with *base* and has counted *figures* since."""
    undecodable = figures.undecodable_by_reason
    apart = sum(count for reason, count in undecodable.items() if reason in COUNTED_APART)
    tally, found = figures.tally, base.copy()
    lost = tally.undecodable - apart
    found.counted_apart += apart
    found.undecodable += lost
    found.records += tally.applied + tally.duplicate + tally.rejected + lost
    found.without_base += figures.rejected_by_reason.get(RejectReason.UNKNOWN_SEGMENT, 0)
    return found
