"""
Admission of questions: by assignment, and by the state of each metadata partition's gate.
`NotAssigned` means ask another service, `NotReady` ask again (also while the assignment is not
known), `UnknownPartition` never stored. No `await` may stand between admission and answer.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from rlmm.base.doorbell import Doorbell
from rlmm.errors import InvalidArgument, NotAssigned, NotReady, UnknownPartition
from rlmm.gate.frame_lookups import OpenCores
from rlmm.gate.state import GateState, ShardGate
from rlmm.gate.statistics import QuestionOutcomes, ShardGateStatistics
from rlmm.log.replay_progress import NotReadyReason, PartitionReassigned
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import PartitionDeleteState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.errors import RlmmError, Unresolved
    from rlmm.gate.statistics import GateStatistics
    from rlmm.log.replay_progress import Fact, ReplayProgress
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.shard import Shard

_log = logging.getLogger(__name__)

_ADMITTED_MAX = 100_000
"""User partitions whose shard is kept, to look it up once; only those that have events."""


class GatedShard:
    __slots__ = ("gate", "holds_until_s", "is_current", "progress", "shard")

    def __init__(self, progress: ReplayProgress, is_current: Callable[[], bool]) -> None:
        self.gate = ShardGate()
        self.is_current = is_current
        self.holds_until_s = -math.inf  # the last judgement, by the event loop's clock
        self.shard: Shard | None = None
        self.progress = progress
        """Of the last fact; the shard's own position is newer."""

    @property
    def is_open(self) -> bool:
        """Return whether questions are answered now, also where a pause kept the timer back."""
        return self.gate.state is GateState.OPEN and self.is_current()


class Gate:
    """All gates of one engine. The pump reports to it (see `ReplayListener`), queries ask it."""

    def __init__(self, *, retry_after_ms: int = 1_000, retry_after_ms_max: int = 10_000) -> None:
        self._retry_after_ms, self._retry_after_ms_max = retry_after_ms, retry_after_ms_max
        self._assignment = Assignment.nothing()
        self._partition_count: int | None = None
        self._shards: dict[int, GatedShard] = {}
        self._connecting = "the log has not been reached yet"
        self._end: tuple[type[Unresolved], str] | None = None
        self._bell = Doorbell()
        self._admitted: dict[bytes, GatedShard] = {}
        """Shards admitted since the last change, by key of the user partition, to look up once."""
        self._admitted_stored: dict[bytes, GatedShard] = {}
        self.cores = OpenCores()
        self.outcomes = QuestionOutcomes()
        """Counted by `PartitionQueries`."""

    # --------------------------------------------------------------------- reports of the pump

    def connect(self, partition_count: int) -> None:
        self._partition_count = partition_count
        self._shards.clear()
        self._forget()
        self._bell.ring()

    def disconnect(self, detail: str) -> None:
        self._partition_count = None
        self._connecting = detail
        self._shards.clear()
        self._forget()

    def assign(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._forget()
        self._bell.ring()

    def begin_partition(
        self,
        partition: int,
        progress: ReplayProgress,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """*is_current* judges by the clock whether an open gate may answer, or closes it."""
        self._shards[partition] = GatedShard(progress, is_current)
        self._forget()

    def end_partition(self, partition: int) -> None:
        self._shards.pop(partition, None)
        self._forget()
        self._bell.ring()

    def set_shard(self, partition: int, shard: Shard) -> None:
        gated = self._shards.get(partition)
        if gated is not None:
            gated.shard = shard
            self._forget()

    def hold(self, partition: int, until_s: float) -> None:
        gated = self._shards.get(partition)
        if gated is not None:
            gated.holds_until_s = until_s
            self.cores.hold(partition, until_s)

    def take_fact(self, partition: int, fact: Fact, progress: ReplayProgress) -> None:
        gated = self._shards.get(partition)
        if gated is None:
            return
        gated.progress = progress
        if isinstance(fact, PartitionReassigned) and fact.why is NotReadyReason.LOADING:
            gated.shard = None  # the follower gave it up, its position means nothing
            self._forget()
        if gated.gate.meet(fact):
            self._forget()
            self._bell.ring()
            self._log_change(partition, gated.gate, progress.position)

    def _log_change(self, partition: int, gate: ShardGate, position: int) -> None:
        where = {"metadata_partition": partition, "offset": position}
        if gate.state is GateState.OPEN:
            count, is_open = len(self._shards), len(self._shards) - len(self.not_open())
            _log.log(
                logging.INFO if is_open == count or gate.openings > 1 else logging.DEBUG,
                "metadata partition %d is answered from, at offset %d: %d of %d are",
                partition, position, is_open, count,
                extra=where,
            )  # fmt: skip
        elif gate.state is not GateState.REPLAYING:
            _log.warning(
                "metadata partition %d is no longer ready (%s, %s): %s",
                partition, gate.state, gate.why, gate.detail,
                extra=where,
            )  # fmt: skip

    def stop(self, error: type[Unresolved], message: str) -> None:
        """Refuse everything from now on: a state that is not read on is never served."""
        self._end = error, message
        self._forget()
        self._bell.ring()

    def _forget(self) -> None:
        self._admitted.clear()
        self._admitted_stored.clear()
        self.cores.take_back()

    # -------------------------------------------------------------------------- admission

    @property
    def assignment(self) -> Assignment:
        return self._assignment

    def shards(self) -> Mapping[int, GatedShard]:
        """Return every assigned metadata partition; live."""
        return self._shards

    def state(self, partition: int) -> GateState | None:
        """`None` where *partition* is not assigned."""
        gated = self._shards.get(partition)
        if gated is None:
            return None
        return GateState.OPEN if gated.is_open else gated.gate.state

    def place_of(self, partition: TopicIdPartition) -> int:
        """Return the metadata partition of *partition*; `NotReady` while the count is unknown."""
        if self._end is not None:
            raise self._end[0](self._end[1])
        if self._partition_count is None:
            raise self.not_connected(partition)
        return metadata_partition_for(
            partition.topic_id, partition.partition, self._partition_count
        )

    def require_assigned(self, partition: TopicIdPartition) -> int:
        place = self.place_of(partition)
        if not self._assignment.covers(partition, place):
            if not self._assignment.is_known:
                raise self._awaiting(partition, place)
            msg = (
                f"{partition}, in metadata partition {place}, is not assigned to this service: "
                f"it answers for {self._assignment}"
            )
            raise NotAssigned(msg, metadata_partition=place)
        self._require_placed(partition, place)
        return place

    def _require_placed(self, partition: TopicIdPartition, place: int) -> None:
        """Refuse a user partition with events in another metadata partition than its place."""
        for at, gated in self._shards.items():
            if gated.shard is not None and partition.key in gated.shard.misplaced:
                msg = (
                    f"{partition} is not ready ({NotReadyReason.MISPLACED}): its place is metadata "
                    f"partition {place} of {self._partition_count}, and metadata partition {at} "
                    "has events of it (docs/operating.md, number of metadata partitions)"
                )
                raise NotReady(
                    msg,
                    reason=NotReadyReason.MISPLACED,
                    user_partition=str(partition),
                    metadata_partition=place,
                    retry_after_ms=self._retry_after_ms_max,
                )

    def is_assigned(self, partition: TopicIdPartition) -> bool:
        try:
            self.require_assigned(partition)
        except NotAssigned:
            return False
        return True

    def admit(self, partition: TopicIdPartition) -> Shard:
        """Return the shard that answers for *partition*, known to it or not, or raise why not."""
        admitted = self._admitted.get(partition.key)
        if admitted is not None and admitted.shard is not None and admitted.is_current():
            return admitted.shard
        place = self.require_assigned(partition)
        gated = self._shards.get(place)
        if gated is None or gated.shard is None or not gated.is_open:
            raise self._not_ready(partition, place, gated)
        _note(self._admitted, partition, gated, gated.shard)
        return gated.shard

    def admit_stored(self, partition: TopicIdPartition) -> Shard:
        """Admit as `admit` does, also an unassigned partition whose metadata partition is open."""
        admitted = self._admitted_stored.get(partition.key)
        if admitted is not None and admitted.shard is not None and admitted.is_current():
            return admitted.shard
        place = self.place_of(partition)
        gated = self._shards.get(place)
        if gated is None or gated.shard is None or not gated.is_open:
            return self.admit(partition)
        self._require_placed(partition, place)
        _note(self._admitted_stored, partition, gated, gated.shard)
        return gated.shard

    def admit_place(self, place: int) -> Shard:
        """Return the shard of metadata partition *place*; callers judge which of it may be seen."""
        gated = self._shards.get(place)
        if gated is None and self._end is None:
            raise self.not_read(place)
        if gated is None or gated.shard is None or not self.is_open(place):
            raise self.refusal(place)
        return gated.shard

    def is_open(self, place: int) -> bool:
        return self._end is None and self.state(place) is GateState.OPEN

    @property
    def knows_places(self) -> bool:
        return self._partition_count is not None and self._assignment.is_known

    async def wait_assigned(self) -> None:
        """Returns, too, when all ends."""
        while not self.knows_places and self._end is None:
            await self._bell.wait()

    async def wait_all_open(self) -> None:
        """Returns, too, when all ends."""
        while self._end is None and (not self.knows_places or self.not_open()):
            await self._bell.wait()

    def not_open(self) -> list[int]:
        return [partition for partition, gated in self._shards.items() if not gated.is_open]

    async def wait_open(self, partition: TopicIdPartition) -> None:
        while True:
            try:
                self.admit(partition)
            except NotReady:
                await self._bell.wait()
            else:
                return

    def refusal(self, place: int) -> RlmmError:
        """Return the error for a question about metadata partition *place* while it is closed."""
        if self._end is not None:
            return self._end[0](self._end[1])
        if not self._assignment.is_known:
            return self._awaiting(None, place)
        return self._not_ready(None, place, self._shards.get(place))

    def not_read(self, place: int) -> RlmmError:
        if not self.knows_places:
            return self.refusal(place)
        count = self._partition_count
        if count is not None and not 0 <= place < count:
            return InvalidArgument(f"there is no metadata partition {place}: there are {count}")
        msg = f"metadata partition {place} is not read by this service"
        return NotAssigned(msg, metadata_partition=place)

    def not_assigned_yet(self) -> NotReady:
        if self._partition_count is None:
            return self.not_connected()
        return self._awaiting(None, None)

    def not_connected(self, partition: TopicIdPartition | None = None) -> NotReady:
        """Return the refusal of a question about *partition*, or any, for an unknown topic."""
        msg = f"{partition or 'nothing'} is {'not ' if partition else ''}ready: {self._connecting}"
        return NotReady(
            msg,
            reason=NotReadyReason.CONNECTING,
            user_partition=None if partition is None else str(partition),
            retry_after_ms=self._retry_after_ms,
        )

    def _awaiting(self, partition: TopicIdPartition | None, place: int | None) -> NotReady:
        """Return `NotReady`, not `NotAssigned`: an unknown assignment sends no caller away."""
        what = partition or ("nothing" if place is None else f"metadata partition {place}")
        is_not = "is" if what == "nothing" else "is not"
        return NotReady(
            f"{what} {is_not} ready: the assignment is not known yet",
            reason=NotReadyReason.ASSIGNMENT_UNKNOWN,
            user_partition=None if partition is None else str(partition),
            metadata_partition=place,
            retry_after_ms=self._retry_after_ms,
        )

    def _not_ready(
        self, partition: TopicIdPartition | None, place: int, gated: GatedShard | None
    ) -> NotReady:
        why = NotReadyReason.LOADING
        detail, position, target = "", None, None
        if gated is not None:
            why = gated.gate.why or why
            detail = gated.gate.detail
            if gated.shard is not None:
                position = gated.shard.position
                target = gated.progress.target
                if target is None or target <= position:  # the replay is over
                    target = gated.progress.high_watermark
        subject = f"metadata partition {place}"
        if partition is not None:
            subject = f"{partition} in {subject}"
        stand = "position not known" if position is None else f"position {position}"
        goal = "target not known" if target is None else f"target {target}"
        msg = f"{subject} is not ready ({why}): {stand}, {goal}{': ' if detail else ''}{detail}"
        return NotReady(
            msg,
            reason=why,
            user_partition=None if partition is None else str(partition),
            metadata_partition=place,
            position=position,
            target=target,
            retry_after_ms=self._hint(position, target),
        )

    def _hint(self, position: int | None, target: int | None) -> int:
        if position is None or target is None or target <= position:
            return self._retry_after_ms
        left_ms = (target - position) // 100  # at some 100,000 records a second
        return min(max(self._retry_after_ms, left_ms), self._retry_after_ms_max)

    def statistics(self) -> GateStatistics:
        return self.outcomes.statistics(
            {
                place: ShardGateStatistics(
                    gated.gate.state, gated.gate.why, gated.gate.detail, gated.gate.openings
                )
                for place, gated in self._shards.items()
            }
        )


def _note(
    table: dict[bytes, GatedShard], partition: TopicIdPartition, gated: GatedShard, shard: Shard
) -> None:
    """Keep *gated*, unless *shard* has no event of *partition*: clients make up any names."""
    if shard.knows(partition):
        if len(table) >= _ADMITTED_MAX:
            table.clear()
        table[partition.key] = gated


def require_known(shard: Shard, partition: TopicIdPartition) -> None:
    """Raise `UnknownPartition` where *shard* holds no event of *partition*, or it was deleted."""
    if not shard.knows(partition):
        msg = f"{partition}: no event of it was ever stored"
        raise UnknownPartition(msg)
    delete = shard.partition_delete(partition)
    finished = PartitionDeleteState.DELETE_PARTITION_FINISHED
    if (
        delete is not None
        and delete.state is finished
        and not any(shard.segment_counts_of(partition))
    ):
        msg = f"{partition}: its deletion is finished"
        raise UnknownPartition(msg)
