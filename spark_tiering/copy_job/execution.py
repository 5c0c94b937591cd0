"""
Execution of a plan: open copies ended, then waves of copies started, copied and finished as early
as possible. Before each event the job checks its claim, and that the copy is as started (F120).
"""

from __future__ import annotations

import heapq
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from rlmm.errors import EngineUnfit
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.partition_run import PartitionRun
from spark_tiering.copy_job.publishing import PublishFailure, PublishRefusal
from spark_tiering.copy_job.report import CopyFate, EndReceipt
from spark_tiering.copy_plan.reasons import SegmentAction
from spark_tiering.executor.tasks import UnitOutcome
from spark_tiering.layout.custom_metadata import CustomMetadata, format_custom_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from spark_tiering.copy_job.protocols import CopyActions
    from spark_tiering.copy_job.report import CopyReceipt
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan, PlannedCopy, PlannedEnd
    from spark_tiering.executor.tasks import CopyResult, CopyTask


class WaveSize(NamedTuple):
    """Limits the open copies of a wave. Up to *small_units* with at most *small_bytes* make one."""

    units: int
    bytes: int
    small_units: int = 0
    small_bytes: int = 0
    at_once: int = 1

    @property
    def units_max(self) -> int:
        return max(self.units, self.small_units)

    def is_full(self, units: int, size_bytes: int) -> bool:
        if size_bytes > self.bytes or units > self.units_max:
            return True
        return units > self.units and size_bytes > self.small_bytes


class CopyExecution:
    """Carries out one plan, on one thread."""

    def __init__(
        self,
        plan: CopyPlan,
        actions: CopyActions,
        size: WaveSize,
        *,
        why_stop: Callable[[], str],
        on_result: Callable[[PlannedCopy, bool], None],
        on_finished: Callable[[Sequence[CopyReceipt]], None],
    ) -> None:
        """*why_stop* returns why to stop, or nothing; running copies are then still finished."""
        self.plan = plan
        self.stopped = ""
        self.ends: list[EndReceipt] = []
        self.runs = [PartitionRun(one, plan.rules.mode) for one in plan.partitions]
        self._actions = actions
        self._size = size
        self._why_stop = why_stop
        self._on_result = on_result
        self._on_finished = on_finished
        self._by_uuid: dict[Uuid, tuple[PartitionRun, PlannedCopy]] = {
            copy.uuid: (run, copy) for run in self.runs for copy in run.plan.copies
        }
        self._fresh: list[CopyReceipt] = []
        self._touched: dict[TopicIdPartition, PartitionRun] = {}
        """Partitions in which something came back that may be to be finished."""
        self._came_back_since = 0
        self._finish_every = 1
        self._are_units_stopped = False

    def run(self) -> None:
        for run in self.runs:
            for end in run.plan.ends:
                self._end_planned(run, end)
        while (wave := self._next_wave()) and not self._is_to_stop():
            self._finish_every = self._size.at_once if len(wave) > self._size.units else 1
            self._copy(self._start(wave))
            self._finish_ready()
            self._end_failed({id(run): run for run, _ in wave}.values())
            self._tell_finished()

    def receipts(self) -> Iterator[CopyReceipt]:
        for run in self.runs:
            yield from run.receipts()

    def _is_to_stop(self) -> bool:
        self.stopped = self.stopped or self._why_stop()
        return bool(self.stopped)

    def _holds(self, run: PartitionRun) -> bool:
        """Return whether the job may still publish; a job that lost one topic stops altogether."""
        why = self._actions.why_not_ours(run.partition)
        if why:
            self.stopped = self.stopped or why
            run.stop(why)
        return not why

    def _next_wave(self) -> list[tuple[PartitionRun, PlannedCopy]]:
        upcoming = (
            [(copy.turn, run, copy) for copy in run.next_copies(self._size.units_max)]
            for run in self.runs
        )
        wave: list[tuple[PartitionRun, PlannedCopy]] = []
        size_bytes = 0
        for _, run, copy in heapq.merge(*filter(None, upcoming), key=itemgetter(0)):
            size_bytes += copy.size_bytes
            if wave and self._size.is_full(len(wave) + 1, size_bytes):
                break
            wave.append((run, copy))
        return wave

    def _start(self, wave: Sequence[tuple[PartitionRun, PlannedCopy]]) -> list[CopyTask]:
        """Publish the starts in rising order; return copies whose event may be stored."""
        units: list[CopyTask] = []
        at_once = self._size.at_once
        for first in range(0, len(wave), at_once):
            units += self._start_at_once(wave[first : first + at_once])
        return units

    def _start_at_once(
        self, wave: Sequence[tuple[PartitionRun, PlannedCopy]]
    ) -> Iterator[CopyTask]:
        held = [
            (run, copy)
            for run, copy in wave
            if not run.why_stopped and not self._is_to_stop() and self._holds(run)
        ]
        # A topic may have been lost on the way: nothing at all is published about it then.
        begun = [
            (run, copy, self._actions.started_event(run.partition, copy))
            for run, copy in held
            if not run.why_stopped
        ]
        for run, copy, _ in begun:
            run.begun(copy, is_published=copy.action is SegmentAction.COPY)
        opening = [
            (run, copy, event) for run, copy, event in begun if copy.action is SegmentAction.COPY
        ]
        told = self._actions.publisher.start_all([event for _, _, event in opening])
        failed: set[Uuid] = set()
        for (run, copy, _), published in zip(opening, told, strict=True):
            if isinstance(published, PublishRefusal):
                failed.add(copy.uuid)
                self._not_started(run, copy, published)
        standing: set[TopicIdPartition] = set()
        for run, copy, event in begun:
            if copy.uuid in failed:
                standing.add(run.partition)  # what is above it could not be finished
            elif run.partition not in standing:
                yield self._actions.unit(run.partition, copy, event)

    def _copy(self, units: Sequence[CopyTask]) -> None:
        try:
            self._actions.copy(units, self._came_back)
        except EngineUnfit as error:
            why = f"{error.code}: {error}"
            self.stopped = self.stopped or why
            for unit in units:
                run, _ = self._by_uuid[unit.segment.id.uuid]
                run.lost_unless_back(unit.segment.id.uuid, why)

    def _not_started(self, run: PartitionRun, copy: PlannedCopy, failed: PublishRefusal) -> None:
        if failed.failure is PublishFailure.UNKNOWN:
            run.left_open(copy, failed.failure.value, failed.detail)
        else:
            run.not_started(copy, f"start-{failed.failure}", failed.detail)

    def _came_back(self, uuid: Uuid, result: CopyResult | str) -> None:
        run, copy = self._by_uuid[uuid]
        if isinstance(result, str):
            run.lost(uuid, result)
        else:
            run.came_back(uuid, result)
        self._touched[run.partition] = run
        self._came_back_since += 1
        if self._came_back_since >= self._finish_every:
            self._finish_ready()
        self._on_result(copy, not isinstance(result, str) and result.outcome.is_done)
        if not isinstance(result, str) and result.outcome is UnitOutcome.STOPPED:
            # It has seen the mark in the store before the driver did.
            self.stopped = self.stopped or self._why_stop() or "paused"
        self._stop_units()

    def _stop_units(self) -> None:
        if not self._are_units_stopped and (why := self._why_stop()):
            self.stopped = self.stopped or why
            self._are_units_stopped = True
            self._actions.stop_units(why)

    def _finish_ready(self) -> None:
        touched, self._touched, self._came_back_since = self._touched, {}, 0
        for run in touched.values():
            while (ready := run.ready(self._size.at_once)) and self._holds(run):
                self._finish(run, ready)

    def _finish(self, run: PartitionRun, ready: Sequence[tuple[PlannedCopy, CopyResult]]) -> None:
        open_copies = list(self._still_open(run, ready))
        moves = [
            (copy.uuid, format_custom_metadata(CustomMetadata(remote_size_bytes=one.stored_bytes)))
            for copy, one in open_copies
        ]
        finished = SegmentState.COPY_SEGMENT_FINISHED
        told = self._actions.publisher.move_all(run.partition, finished, moves)
        for (copy, _), published in zip(open_copies, told, strict=True):
            if isinstance(published, PublishRefusal):
                self._not_finished(run, copy, published)
            else:
                self._finished(run, copy, published.offset)

    def _still_open(
        self, run: PartitionRun, ready: Sequence[tuple[PlannedCopy, CopyResult]]
    ) -> Iterator[tuple[PlannedCopy, CopyResult]]:
        """Yield copies that the metadata has as started (F120), up to one that stops the rest."""
        for copy, result in ready:
            state = self._actions.publisher.state(run.partition, copy.uuid)
            if isinstance(state, PublishRefusal):
                run.left_open(copy, f"finish-{state.failure}", state.detail)
                return
            if state is SegmentState.COPY_SEGMENT_STARTED:
                yield copy, result
                continue
            self._vanished(run, copy, state)
            if state is not SegmentState.COPY_SEGMENT_FINISHED:
                return

    def _not_finished(
        self, run: PartitionRun, copy: PlannedCopy, published: PublishRefusal
    ) -> None:
        if published.failure is PublishFailure.REJECTED:
            state = self._actions.publisher.state(run.partition, copy.uuid)
            if not isinstance(state, PublishRefusal):
                self._vanished(run, copy, state)
                return
        run.left_open(copy, f"finish-{published.failure}", published.detail)

    def _finished(self, run: PartitionRun, copy: PlannedCopy, offset: int | None) -> None:
        run.finished(copy, offset)
        self._fresh.append(run.receipt(copy))

    def _tell_finished(self) -> None:
        fresh, self._fresh = self._fresh, []
        if fresh:
            self._on_finished(fresh)

    def _vanished(self, run: PartitionRun, copy: PlannedCopy, state: SegmentState | None) -> None:
        """Delete the objects of a copy that another writer deleted; they may be gone."""
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            self._finished(run, copy, None)
            return
        failure = self._actions.delete_objects(run.partition, copy)
        at = "gone" if state is None else state.name
        detail = f"the metadata has it as {at}" + (f"; objects stay: {failure}" if failure else "")
        run.vanished(copy, detail)

    def _end_failed(self, runs: Iterable[PartitionRun]) -> None:
        for run in runs:
            for copy in run.to_end():
                if not self._holds(run):
                    return
                fate, detail = self._end(run.partition, copy, None, is_begun=False)
                run.ended(copy, fate, detail)
                if fate is not CopyFate.ENDED:
                    break  # from the top down, without leaving one out

    def _end_planned(self, run: PartitionRun, end: PlannedEnd) -> None:
        fate, detail = CopyFate.NOT_BEGUN, self.stopped
        if not self._is_to_stop() and not run.why_stopped and self._holds(run):
            is_begun = end.state is SegmentState.DELETE_SEGMENT_STARTED
            custom = end.custom_metadata
            fate, detail = self._end(run.partition, end, custom, is_begun=is_begun)
            if fate is not CopyFate.ENDED:
                run.stop("open-copy-not-ended")
        at, why = run.partition, end.reason.value
        self.ends.append(
            EndReceipt(
                at.topic, at.topic_id, at.partition, end.uuid, end.start_offset, end.last_offset,
                fate, why, detail,
            )
        )  # fmt: skip

    def _end(
        self,
        partition: TopicIdPartition,
        copy: PlannedCopy | PlannedEnd,
        custom_metadata: bytes | None,
        *,
        is_begun: bool,
    ) -> tuple[CopyFate, str]:
        """Publish the start of deletion, delete the objects, publish its end (F108, F114, F115)."""
        publisher = self._actions.publisher
        if not is_begun:
            begun = SegmentState.DELETE_SEGMENT_STARTED
            (published,) = publisher.move_all(partition, begun, [(copy.uuid, custom_metadata)])
            if isinstance(published, PublishRefusal):
                state = publisher.state(partition, copy.uuid)
                if state is None:
                    failure = self._actions.delete_objects(partition, copy)
                    return (CopyFate.ENDING, failure) if failure else (CopyFate.ENDED, "")
                if state is not SegmentState.DELETE_SEGMENT_STARTED:
                    return CopyFate.LEFT_OPEN, published.detail
        failure = self._actions.delete_objects(partition, copy)
        if failure:
            return CopyFate.ENDING, failure
        over = SegmentState.DELETE_SEGMENT_FINISHED
        (published,) = publisher.move_all(partition, over, [(copy.uuid, custom_metadata)])
        if (
            isinstance(published, PublishRefusal)
            and publisher.state(partition, copy.uuid) is not None
        ):
            return CopyFate.ENDING, published.detail
        return CopyFate.ENDED, ""


def partitions_of(plan: CopyPlan) -> list[PartitionCopyPlan]:
    return [one for one in plan.partitions if one.ends or one.copies]
