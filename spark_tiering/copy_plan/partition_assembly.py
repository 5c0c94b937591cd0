"""The assembly of one partition's plan, from its draft and the budgets. Pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX
from spark_tiering.copy_plan.partition_draft import SkippedSegment
from spark_tiering.copy_plan.plan import (
    LeftOutRun,
    OpenCopy,
    PartitionCopyPlan,
    PlannedCopy,
    PlannedEnd,
    SourceGap,
)
from spark_tiering.copy_plan.reasons import (
    CopyMode,
    EndReason,
    LeftOpen,
    NotCopiedReason,
    SegmentAction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.copy_plan.open_copies import JudgedOpen
    from spark_tiering.copy_plan.partition_draft import DraftStep, PartitionDraft
    from spark_tiering.copy_plan.rules import Cost, PlanRules

DETAIL_CHARACTERS_MAX = 300


class PartitionAssembly:
    """A partition's plan while budgets are spent; `waiting` are the copies not yet decided."""

    def __init__(self, rules: PlanRules, draft: PartitionDraft) -> None:
        self.waiting = deque(draft.steps)
        self._rules = rules
        self._draft = draft
        self._not_copied = list(draft.not_copied)
        self._copies: list[PlannedCopy] = []
        self._ends: list[PlannedEnd] = []
        self._left_open: list[OpenCopy] = []

    @property
    def partition(self) -> TopicIdPartition:
        return self._draft.source.partition

    def settle_ends(self, spend: Callable[[Cost], tuple[NotCopiedReason, str] | None]) -> None:
        cost = self._rules.costs.end_cost
        others = sorted(self._draft.others, key=_top_down)
        for one in others:
            if not isinstance(one.fate, EndReason):
                self._leave_open(one)
            elif spend(cost) is not None:
                self._leave_open(one._replace(fate=LeftOpen.BUDGET))
            else:
                self._ends.append(PlannedEnd.of(one.segment, one.fate, cost))

    def max_timestamp_ms(self, step: DraftStep) -> int:
        if step.going_on is not None:
            return step.going_on.segment.max_timestamp_ms
        assert step.source is not None
        assert step.source.details is not None
        return step.source.details.max_timestamp_ms

    def expires_at_ms(self, step: DraftStep) -> int | None:
        """Return when brokers may delete it; None for never, or unknown."""
        kept_ms, newest_ms = self._draft.source.retention_ms, self.max_timestamp_ms(step)
        if kept_ms is None or kept_ms < 0 or newest_ms < 0 or newest_ms + kept_ms > INT64_MAX:
            return None
        return newest_ms + kept_ms

    def take_waiting(self, turn: int, cost: Cost, ids: Iterator[Uuid]) -> None:
        """Plan the next copy; raises `InvalidArgument` where no id is left for it."""
        step = self.waiting.popleft()
        start, end = step.range
        details = None if step.source is None else step.source.details
        if step.going_on is not None:
            known = step.going_on.segment
            uuid, epochs, txn_index_empty = known.id.uuid, known.epochs, known.txn_index_empty
            size_bytes = known.size_bytes
        else:
            assert step.source is not None
            assert details is not None
            uuid, epochs, txn_index_empty = _next_id(ids), details.epochs, details.txn_index_empty
            size_bytes = step.source.size_bytes
        if step.action is SegmentAction.COMPLETE:
            details = None
        self._copies.append(
            PlannedCopy(
                turn,
                step.action,
                start,
                end - 1,
                uuid,
                size_bytes,
                0 if details is None else details.indexes_bytes,
                self.max_timestamp_ms(step),
                self.expires_at_ms(step),
                txn_index_empty,
                epochs,
                step.lacking,
                *cost,
            )
        )

    def leave_out_waiting(self, reason: NotCopiedReason, detail: str) -> None:
        for step in self.waiting:
            if step.source is not None:
                self._not_copied.append(SkippedSegment(step.source, reason, detail))
            if step.going_on is not None:
                self._leave_open(step.going_on._replace(fate=LeftOpen.BUDGET))
        self.waiting.clear()

    def finished(self, metadata_partition: int) -> PartitionCopyPlan:
        assert not self.waiting
        source, image = self._draft.source, self._draft.image
        self._left_open.sort(key=lambda one: (one.start_offset, one.uuid))
        return PartitionCopyPlan(
            source.partition.topic,
            source.partition.topic_id,
            source.partition.partition,
            None if image is None else metadata_partition,
            None if image is None else image.digest,
            source.is_tiered,
            source.log_start,
            tuple(self._ends),
            tuple(self._copies),
            tuple(self._left_open),
            tuple(_runs(self._not_copied)),
            tuple(self._gaps()),
        )

    def _leave_open(self, one: JudgedOpen) -> None:
        assert isinstance(one.fate, LeftOpen)
        self._left_open.append(OpenCopy.of(one.segment, one.fate))

    def _gaps(self) -> Iterable[SourceGap]:
        source, tier = self._draft.source, self._draft.tier
        if tier is None or self._rules.mode is CopyMode.ADOPT or not source.segments:
            return
        planned = [(one.start_offset, one.last_offset + 1) for one in self._copies]
        oldest = min([INT64_MAX, *tier.starts, *(start for start, _ in planned)])
        reached = tier.highest_finished
        base_offset = source.segments[0].listed.base_offset
        for start, stop in tier.ranges_missing_below(base_offset, planned):
            # What lies below the oldest copy may have expired in the tier; what lies behind all
            # that was ever finished cannot.
            parts = [(start, stop)]
            if start < oldest:
                parts = [(start, min(stop, reached)), (max(start, reached), stop)]
            for begin, end in parts:
                if begin < end:
                    yield SourceGap(begin, end, begin >= oldest or 0 < reached <= begin)


def _next_id(ids: Iterator[Uuid]) -> Uuid:
    found = next(ids, None)
    if found is None:
        msg = "more segments are to be copied than there are ids for them"
        raise InvalidArgument(msg)
    return found


def _top_down(one: JudgedOpen) -> tuple[int, int, bytes]:
    return -one.segment.start_offset, -one.segment.last_offset, one.segment.id.uuid


def _runs(left: list[SkippedSegment]) -> Iterable[LeftOutRun]:
    run: LeftOutRun | None = None
    for segment, reason, detail in sorted(left, key=lambda one: one.segment.listed.base_offset):
        base_offset, next_offset = segment.listed
        if run is not None and (run.reason, run.next_offset) == (reason, base_offset):
            run = LeftOutRun(
                run.first_offset,
                next_offset,
                run.segments + 1,
                run.size_bytes + segment.size_bytes,
                reason,
                run.detail,
            )
            continue
        if run is not None:
            yield run
        text = _printable(detail)
        run = LeftOutRun(base_offset, next_offset, 1, segment.size_bytes, reason, text)
    if run is not None:
        yield run


def _printable(detail: str) -> str:
    plain = "".join(one if one.isprintable() else "?" for one in detail)
    return plain[:DETAIL_CHARACTERS_MAX]
