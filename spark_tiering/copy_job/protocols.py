"""What carrying out a plan works with: events, tasks, objects, and whether the job may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata, SegmentState
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.copy_job.publishing import PublishRefusal
    from spark_tiering.copy_plan.plan import PlannedCopy, PlannedEnd
    from spark_tiering.executor.tasks import CopyResult, CopyTask


class CopyUnit(NamedTuple):
    """One copy as a task."""

    uuid: Uuid
    task: CopyTask


class EventPublisher(Protocol):
    """Where events go; see `spark_tiering.copy_job.publishing.CopyEventPublisher`."""

    def start_all(self, segments: Sequence[SegmentMetadata]) -> list[WriteAnswer | PublishRefusal]:
        """
        Publish that copies are started; return the outcomes in the order of *segments*. None waits
        for the verdict on another.
        """

    def move_all(
        self,
        partition: TopicIdPartition,
        state: SegmentState,
        segments: Sequence[tuple[Uuid, bytes | None]],
    ) -> list[WriteAnswer | PublishRefusal]:
        """
        Publish that segments of one partition have come to *state*, in their order: id and custom
        metadata of each.
        """

    def state(
        self, partition: TopicIdPartition, uuid: Uuid
    ) -> SegmentState | PublishRefusal | None:
        """Return where a segment stands now; None where it is not, or not any more."""


class CopyActions(Protocol):
    """The parts of a job that reach outside, to who carries out a plan."""

    @property
    def publisher(self) -> EventPublisher: ...

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """Why the job may not publish about *partition* any more; empty where it may."""

    def started_event(self, partition: TopicIdPartition, copy: PlannedCopy) -> SegmentMetadata:
        """The event that opens *copy*; that of the open copy where it was opened before."""

    def unit(
        self, partition: TopicIdPartition, copy: PlannedCopy, event: SegmentMetadata
    ) -> CopyUnit:
        """The task that makes its objects."""

    def copy(
        self, units: Sequence[CopyUnit], on_result: Callable[[Uuid, CopyResult | str], None]
    ) -> None:
        """
        Carry out *units*; each result is told once, on the thread of the caller. A text is that of
        a task from which nobody came back.
        """

    def stop_units(self, why: str) -> None:
        """
        Have units that have not begun by now do nothing, as far as that can be; those that run go
        on to their end. Raises nothing.
        """

    def delete_objects(self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd) -> str:
        """Take away the objects of a copy, those half-written included; why not, or nothing."""
