"""Protocols of carrying out a plan: events, tasks, objects, and whether the job may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.segment import SegmentMetadata, SegmentState
    from rlmm.wire.values import WriteAnswer
    from spark_tiering.copy_job.publishing import PublishRefusal
    from spark_tiering.copy_plan.plan import PlannedCopy, PlannedEnd
    from spark_tiering.executor.tasks import CopyResult, CopyTask


class EventPublisher(Protocol):
    def start_all(self, segments: Sequence[SegmentMetadata]) -> list[WriteAnswer | PublishRefusal]:
        """Publish starts without waiting for verdicts in between; return outcomes in order."""

    def move_all(
        self,
        partition: TopicIdPartition,
        state: SegmentState,
        segments: Sequence[tuple[Uuid, bytes | None]],
    ) -> list[WriteAnswer | PublishRefusal]:
        """Publish that a partition's segments, id and custom metadata, have come to *state*."""

    def state(
        self, partition: TopicIdPartition, uuid: Uuid
    ) -> SegmentState | PublishRefusal | None:
        """Return where a segment stands now; None where it is not, or not any more."""


class CopyActions(Protocol):
    @property
    def publisher(self) -> EventPublisher: ...

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        """Return why the job may not publish about *partition* any more; empty where it may."""

    def started_event(self, partition: TopicIdPartition, copy: PlannedCopy) -> SegmentMetadata:
        """Return the event that opens *copy*, or has opened it before."""

    def unit(
        self, partition: TopicIdPartition, copy: PlannedCopy, event: SegmentMetadata
    ) -> CopyTask: ...

    def copy(
        self, units: Sequence[CopyTask], on_result: Callable[[Uuid, CopyResult | str], None]
    ) -> None:
        """Run *units*; *on_result* gets each result once, a text if lost, on this thread."""

    def stop_units(self, why: str) -> None:
        """Keep units that have not begun from beginning, where that can be done. Raises nothing."""

    def delete_objects(self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd) -> str:
        """Delete the objects of a copy, those half-written included; return why not, or nothing."""
