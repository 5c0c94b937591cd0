"""
The execution of a plan, in waves: deletions are started, objects deleted, deletions finished. A
wave compares its segments with the metadata before it starts their deletion and again before it
deletes objects. A job that dies leaves at most one wave started, and the next job continues from
the state of each segment. Spark, stores and services are used by `actions` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from spark_tiering.maintenance.expire.actions import RemovalTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.expire.actions import ExpireActions
    from spark_tiering.maintenance.expire.decision import (
        ExpiredSegment,
        ExpireReason,
        PartitionExpirePlan,
    )

_CF, _DS, _DF = (
    SegmentState.COPY_SEGMENT_FINISHED,
    SegmentState.DELETE_SEGMENT_STARTED,
    SegmentState.DELETE_SEGMENT_FINISHED,
)
_STARTED = PartitionDeleteState.DELETE_PARTITION_STARTED
_FINISHED = PartitionDeleteState.DELETE_PARTITION_FINISHED
MAX_DELETE = "max-delete"


class ExpireFate(StrEnum):
    WOULD_GO = "would-go"
    DELETED = "deleted"
    """Its objects are deleted, and the metadata says so."""
    LEFT = "deletion-left"
    """Its deletion is started and not finished: the next run continues it."""
    CHANGED = "changed"
    """The metadata changed since the decision: the job left it as it is."""
    NOT_BEGUN = "not-begun"


class ExpireReceipt(NamedTuple):
    segment: SegmentMetadata
    reason: ExpireReason
    fate: ExpireFate
    detail: str = ""
    was_there: bool = True
    """Its manifest was found; only known of a segment that is deleted."""


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """Tells how far the deletion of a partition has come; *detail* says why not further."""

    partition: TopicIdPartition
    is_finished: bool
    detail: str = ""


class ExpireExecution:
    """Runs once; *on_receipts* gets the receipts as they come."""

    def __init__(
        self,
        plans: Sequence[PartitionExpirePlan],
        actions: ExpireActions,
        *,
        max_delete: int | None = None,
        why_stop: Callable[[], str] = lambda: "",
        on_receipts: Callable[[Sequence[ExpireReceipt]], None] = lambda receipts: None,
    ) -> None:
        self._plans = plans
        self._actions = actions
        self._left = max_delete
        self._why_stop = why_stop
        self._on_receipts = on_receipts
        self.stopped = ""
        self.receipts: list[ExpireReceipt] = []
        self.ends: list[PartitionEnd] = []
        self._barred: dict[TopicIdPartition, str] = {}

    def run(self) -> None:
        whole = [one for one in self._plans if one.delete is not None and not one.is_idle]
        for plan in whole:
            self._begin_partition(plan)
        for wave in self._waves():
            self.stopped = self.stopped or self._why_stop()
            if self.stopped:
                self._not_begun(wave, self.stopped)
            else:
                self._run_wave(wave)
        for plan in whole:
            self._end_partition(plan)

    def _waves(self) -> Iterator[list[ExpiredSegment]]:
        size = self._actions.wave
        wave: list[ExpiredSegment] = []
        for one in (one for plan in self._plans for one in plan.doomed):
            if self._left is not None:
                if not self._left:
                    self._not_begun([one], MAX_DELETE)
                    continue
                self._left -= 1
            wave.append(one)
            if len(wave) == size:
                yield wave
                wave = []
        if wave:
            yield wave

    def _run_wave(self, wave: Sequence[ExpiredSegment]) -> None:
        looked = [one for one in wave if self._is_ours(one)]
        started = self._start([one for one in looked if self._is_as_decided(one)])
        ready = [one for one in started if self._is_being_deleted(one)]
        targets = [
            RemovalTarget(one.segment.id, one.segment.start_offset, one.segment.state is _CF)
            for one in ready
        ]
        removals = self._actions.remove(targets)
        gone = []
        for one, removal in zip(ready, removals, strict=True):
            if removal.is_done:
                gone.append((one, removal.was_there))
            else:
                self._record(
                    one, ExpireFate.LEFT, removal.detail or "its objects could not be deleted"
                )
        self._finish(gone)

    def _is_ours(self, doomed: ExpiredSegment) -> bool:
        partition = doomed.segment.id.partition
        why = self._barred.get(partition) or self._actions.why_not_ours(partition)
        if why:
            # A topic that is lost stays lost; and what is not known now is not asked for each.
            self._barred[partition] = why
            self._record(doomed, ExpireFate.NOT_BEGUN, why)
        return not why

    def _is_as_decided(self, doomed: ExpiredSegment) -> bool:
        now = self._actions.look(doomed.segment.id)
        if now == doomed.segment:
            return True
        if isinstance(now, str):
            self._record(doomed, ExpireFate.NOT_BEGUN, now)
        elif now is None:
            self._record(doomed, ExpireFate.CHANGED, "another process has deleted it meanwhile")
        elif now.state is _DS and doomed.segment.state is not _DS:
            self._record(
                doomed, ExpireFate.CHANGED, "another process has begun to delete it meanwhile"
            )
        else:
            self._record(doomed, ExpireFate.CHANGED, f"it is {now.state.name} meanwhile")
        return False

    def _start(self, wave: Sequence[ExpiredSegment]) -> list[ExpiredSegment]:
        """Return those whose deletion is started now: CS -> DS -> DF, never without DS (F115)."""
        fresh = [one for one in wave if one.segment.state is not _DS]
        errors = self._actions.move([one.segment for one in fresh], _DS)
        failed = {one.segment.id: why for one, why in zip(fresh, errors, strict=True) if why}
        started = []
        for one in wave:
            why = failed.get(one.segment.id, "")
            now = self._actions.look(one.segment.id) if why else None
            # The event may have taken effect anyway.
            if why and (now is None or isinstance(now, str) or now.state is not _DS):
                self._record(one, ExpireFate.NOT_BEGUN, why)
            else:
                started.append(one)
        return started

    def _is_being_deleted(self, doomed: ExpiredSegment) -> bool:
        """Compare once more just before the objects are deleted: this cannot be undone."""
        now = self._actions.look(doomed.segment.id)
        why = self._actions.why_not_ours(doomed.segment.id.partition)
        if isinstance(now, str) or why:
            self._record(doomed, ExpireFate.LEFT, why or str(now))
            return False
        if now is None:
            self._record(doomed, ExpireFate.CHANGED, "another process has deleted it meanwhile")
            return False
        if now.state is not _DS:
            self._record(doomed, ExpireFate.CHANGED, f"it is {now.state.name} meanwhile")
            return False
        return True

    def _finish(self, gone: Sequence[tuple[ExpiredSegment, bool]]) -> None:
        errors = self._actions.move([one.segment for one, _ in gone], _DF)
        for (one, was_there), why in zip(gone, errors, strict=True):
            if why and self._actions.look(one.segment.id) is not None:
                self._record(one, ExpireFate.LEFT, why)
            else:
                self._record(one, ExpireFate.DELETED, was_there=was_there)

    def _not_begun(self, wave: Sequence[ExpiredSegment], why: str) -> None:
        for one in wave:
            self._record(one, ExpireFate.NOT_BEGUN, why)

    def _record(
        self, doomed: ExpiredSegment, fate: ExpireFate, detail: str = "", *, was_there: bool = True
    ) -> None:
        receipt = ExpireReceipt(doomed.segment, doomed.reason, fate, detail, was_there)
        self.receipts.append(receipt)
        self._on_receipts([receipt])

    def _begin_partition(self, plan: PartitionExpirePlan) -> None:
        """Start the deletion of a marked partition before any segment of it is deleted."""
        assert plan.delete is not None
        why = self._actions.why_not_ours(plan.partition)
        if not why and plan.delete.state < _STARTED and not self._why_stop():
            why = self._actions.move_partition(plan.partition, _STARTED)
        if why:
            self._barred[plan.partition] = why

    def _end_partition(self, plan: PartitionExpirePlan) -> None:
        """Finish the deletion when no segment is left: no event may follow it."""
        why = self._barred.get(plan.partition) or self.stopped
        why = why or self._actions.why_not_ours(plan.partition)
        if not why:
            is_empty = self._actions.is_empty(plan.partition)
            if isinstance(is_empty, str):
                why = is_empty
            elif not is_empty:
                why = "segments of it are left"
        if not why:
            why = self._actions.move_partition(plan.partition, _FINISHED)
        self.ends.append(PartitionEnd(plan.partition, not why, why))
