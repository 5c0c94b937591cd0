"""
The run of one partition: which copies may begin, be finished, or must be ended. Pure.

Copies begin and finish in rising order. The first that fails stops the partition, because brokers
take a copy with a gap below it for the whole; only copies of the same event batch are still
finished. A copy that failed for good is ended; where brokers adopt copies, so is everything started
above it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from spark_tiering.copy_job.report import CopyFate, CopyReceipt
from spark_tiering.copy_plan.reasons import CopyMode, SegmentAction
from spark_tiering.layout.strict_json import HexBytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlmm.metadata.ids import Uuid
    from spark_tiering.copy_plan.plan import PartitionCopyPlan, PlannedCopy
    from spark_tiering.executor.tasks import CopyResult


@dataclass(slots=True)
class _CopyRun:
    copy: PlannedCopy
    result: CopyResult | None = None
    is_started: bool = False
    """Whether its first event is in the log, or may be."""
    fate: CopyFate | None = None
    why: str = ""
    detail: str = ""
    offset: int | None = None


class PartitionRun:
    def __init__(self, plan: PartitionCopyPlan, mode: CopyMode) -> None:
        self.plan = plan
        self.partition = plan.partition
        self.why_stopped = ""
        self._mode = mode
        self._states = [
            _CopyRun(copy, is_started=copy.action is not SegmentAction.COPY) for copy in plan.copies
        ]
        self._by_uuid = {state.copy.uuid: state for state in self._states}
        self._waiting = deque(self._states)
        self._finished = 0
        """How many are, counted from the lowest."""

    def next_copies(self, most: int) -> list[PlannedCopy]:
        """Return the next copies in order; none where the partition has stopped."""
        return [] if self.why_stopped else [state.copy for state in islice(self._waiting, most)]

    def begun(self, copy: PlannedCopy, *, is_published: bool) -> None:
        """A copy was handed out; *is_published* where its first event is in the log, or may be."""
        state = self._waiting.popleft()
        assert state.copy is copy, copy
        state.is_started = state.is_started or is_published

    def not_started(self, copy: PlannedCopy, why: str, detail: str) -> None:
        """The first event of a copy is surely not in the log."""
        self._settle(copy.uuid, CopyFate.NOT_BEGUN, why, detail)

    def came_back(self, uuid: Uuid, result: CopyResult) -> None:
        state = self._by_uuid[uuid]
        state.result = result
        if not result.outcome.is_done:
            state.why, state.detail = result.outcome.value, result.detail
            if result.outcome.is_retriable:
                state.fate = CopyFate.LEFT_OPEN
            self.stop(result.outcome.value)

    def lost(self, uuid: Uuid, detail: str) -> None:
        """A worker did not come back: how far its copy went is not known."""
        self._settle(uuid, CopyFate.LEFT_OPEN, "worker-lost", detail)

    def lost_unless_back(self, uuid: Uuid, detail: str) -> None:
        state = self._by_uuid[uuid]
        if state.result is None and state.fate is None:
            self.lost(uuid, detail)

    def ready(self, most: int) -> list[tuple[PlannedCopy, CopyResult]]:
        """Return the lowest copies that are not finished, in order, as far as they are verified."""
        found: list[tuple[PlannedCopy, CopyResult]] = []
        for state in self._states[self._finished : self._finished + most]:
            if state.fate is not None or state.why or state.result is None:
                break
            found.append((state.copy, state.result))
        return found

    def finished(self, copy: PlannedCopy, offset: int | None) -> None:
        """Record a finished copy, by the *offset* of its event; a lower one may fail or follow."""
        state = self._by_uuid[copy.uuid]
        state.fate, state.offset = CopyFate.FINISHED, offset
        while self._finished < len(self._states) and (
            self._states[self._finished].fate is CopyFate.FINISHED
        ):
            self._finished += 1

    def left_open(self, copy: PlannedCopy, why: str, detail: str) -> None:
        self._settle(copy.uuid, CopyFate.LEFT_OPEN, why, detail)

    def vanished(self, copy: PlannedCopy, detail: str) -> None:
        self._settle(copy.uuid, CopyFate.VANISHED, "deleted-meanwhile", detail)

    def failed(self, copy: PlannedCopy, why: str, detail: str) -> None:
        state = self._by_uuid[copy.uuid]
        state.why, state.detail = why, detail
        self.stop(why)

    def stop(self, why: str) -> None:
        """Begin nothing more; the first reason counts."""
        self.why_stopped = self.why_stopped or why

    def _settle(self, uuid: Uuid, fate: CopyFate, why: str, detail: str) -> None:
        state = self._by_uuid[uuid]
        state.fate, state.why, state.detail = fate, why, detail
        self.stop(why)

    def to_end(self) -> list[PlannedCopy]:
        """Return the copies to end, from the top down: failed, or for brokers above one."""
        bad = [state for state in self._states if state.is_started and _is_lost_cause(state)]
        if bad and self._mode is CopyMode.ADOPT:
            lowest = bad[0].copy.start_offset
            bad = [
                state
                for state in self._states
                if state.is_started
                and state.copy.start_offset >= lowest
                and state.fate in (None, CopyFate.LEFT_OPEN)
            ]
        return [state.copy for state in reversed(bad)]

    def ended(self, copy: PlannedCopy, fate: CopyFate, detail: str) -> None:
        """*fate* is `ENDED`, `ENDING`, or `LEFT_OPEN` where ending did not begin."""
        state = self._by_uuid[copy.uuid]
        state.fate = fate
        state.why = state.why or "above-a-failed-copy"
        state.detail = detail or state.detail

    def receipts(self) -> Iterator[CopyReceipt]:
        """Return receipts of all copies; one started, not finished and not ended is open."""
        return (self.receipt(state.copy) for state in self._states)

    def receipt(self, copy: PlannedCopy) -> CopyReceipt:
        state = self._by_uuid[copy.uuid]
        result, fate = state.result, state.fate
        if fate is None:
            fate = CopyFate.LEFT_OPEN if state.is_started else CopyFate.NOT_BEGUN
        crc = None if result is None else result.log_crc64nvme
        return CopyReceipt(
            self.partition.topic,
            self.partition.topic_id,
            self.partition.partition,
            copy.uuid,
            copy.start_offset,
            copy.last_offset,
            fate,
            state.why or ("" if fate is CopyFate.FINISHED else self.why_stopped),
            state.detail,
            action=copy.action,
            log_bytes=copy.size_bytes if fate is CopyFate.FINISHED else 0,
            stored_bytes=0 if result is None else result.stored_bytes,
            requests=0 if result is None else result.requests,
            seconds=0.0 if result is None else round(result.seconds, 3),
            offset=state.offset,
            crc64nvme=None if crc is None else HexBytes(crc.to_bytes(8)),
            findings=() if result is None else result.findings,
        )


def _is_lost_cause(state: _CopyRun) -> bool:
    return state.fate is None and bool(state.why)
