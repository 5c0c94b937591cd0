"""
A metadata log, a store and a source in memory, in which plans are carried out and drivers die.

A driver dies before or after an outside step takes effect; the next job finds its leftovers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import TRANSITIONS, SegmentMetadata, SegmentState
from rlmm.wire.values import WriteAnswer
from spark_tiering.copy_job.execution import CopyExecution, WaveSize
from spark_tiering.copy_job.publishing import PublishFailure, PublishRefusal
from spark_tiering.copy_plan.inputs import OpenCopyEvidence, OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import CopyMode, SegmentAction
from spark_tiering.executor.tasks import CopyResult, UnitOutcome
from tests.support.builders import tp
from tests.support.tier.copy_plans import image, metadata, rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.copy_plan.inputs import MetadataImage, SourcePartition
    from spark_tiering.copy_plan.plan import CopyPlan, PlannedCopy, PlannedEnd
    from spark_tiering.executor.tasks import CopyTask

OPEN = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)
WAVES = WaveSize(3, 10**9)


FIRST = tp("orders", 0)


def fates(carried: CopyExecution, partition: TopicIdPartition = FIRST) -> list[str]:
    return [one.fate.value for one in carried.receipts() if one.partition == partition]


class Killed(BaseException):
    pass


@dataclass
class World:
    sources: Sequence[SourcePartition]
    mode: CopyMode = CopyMode.ARCHIVE
    segments: dict[SegmentId, SegmentMetadata] = field(default_factory=dict)
    events: list[tuple[SegmentId, SegmentState]] = field(default_factory=list)
    objects: dict[Uuid, StoredObjects] = field(default_factory=dict)
    outcomes: dict[int, UnitOutcome] = field(default_factory=dict)
    """The outcome of the copy that begins at an offset; copied by default."""
    failures: dict[tuple[int, SegmentState], PublishFailure] = field(default_factory=dict)
    """The outcome of an event about the copy that begins at an offset."""
    lost_at: int | None = None
    dies_at: int | None = None
    steps: int = 0
    drawn: int = 0
    undeletable: set[int] = field(default_factory=set)
    """Where copies begin whose objects cannot be deleted."""
    told: list[int] = field(default_factory=list)
    """Where copies begin that were told to be finished, in order."""
    stopped_units: list[str] = field(default_factory=list)
    """Why units that wait were told not to begin."""
    on_copy: Callable[[PlannedCopy], None] = lambda copy: None
    waves: WaveSize = WAVES

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.dies_at:
            raise Killed

    def plan(self) -> CopyPlan:
        made = rules(self.mode)
        return make_plan(
            made, self.metadata_image(), self.known_sources(), self.evidence(), self._ids()
        )

    def known_sources(self) -> Sequence[SourcePartition]:
        return self.sources

    def metadata_image(self) -> MetadataImage:
        segments = self.segments.values()
        return metadata(
            *(
                image(*(one for one in segments if one.id.partition == at), partition=at)
                for at in (source.partition for source in self.sources)
            )
        )

    def writer_of(self, segment: SegmentMetadata) -> OpenCopyWriter:
        return OpenCopyWriter.ENDED

    def evidence(self) -> list[OpenCopyEvidence]:
        return [
            OpenCopyEvidence(
                one.id, self.writer_of(one), self.objects.get(one.id.uuid, StoredObjects.NONE)
            )
            for one in self.segments.values()
            if one.state in OPEN
        ]

    def _ids(self) -> Iterator[Uuid]:
        while True:
            self.drawn += 1
            yield Uuid.of(7, self.drawn)

    def carry_out(
        self, why_stop: Callable[[], str] = lambda: "", plan: CopyPlan | None = None
    ) -> CopyExecution:
        plan = plan or self.plan()
        carried = CopyExecution(
            plan,
            WorldHands(self, plan),
            self.waves,
            why_stop=why_stop,
            on_result=lambda _, __: None,
            on_finished=lambda receipts: self.told.extend(one.start_offset for one in receipts),
        )
        carried.run()
        return carried

    def state_of(self, start_offset: int) -> list[SegmentState]:
        return [one.state for one in self.segments.values() if one.start_offset == start_offset]

    def finished_starts(self) -> list[int]:
        return sorted(
            one.start_offset
            for one in self.segments.values()
            if one.state is SegmentState.COPY_SEGMENT_FINISHED
        )

    def check(self) -> None:
        for one in self.segments.values():
            if one.state is SegmentState.COPY_SEGMENT_FINISHED:
                assert self.objects.get(one.id.uuid) is StoredObjects.WHOLE, one
        known = {segment_id.uuid for segment_id in self.segments}
        assert set(self.objects) <= known, "objects that no metadata knows"


class WorldPublisher:
    def __init__(self, world: World) -> None:
        self._world = world

    def start(self, segment: SegmentMetadata) -> WriteAnswer | PublishRefusal:
        return self._publish(segment.id, segment.state, segment)

    def start_all(self, segments: Sequence[SegmentMetadata]) -> list[WriteAnswer | PublishRefusal]:
        return [self.start(one) for one in segments]

    def move(
        self,
        partition: TopicIdPartition,
        uuid: Uuid,
        state: SegmentState,
        custom_metadata: bytes | None,
    ) -> WriteAnswer | PublishRefusal:
        known = self._world.segments.get(SegmentId(partition, uuid))
        moved = None
        if known is not None:
            moved = replace(known, state=state, custom_metadata=custom_metadata)
        return self._publish(SegmentId(partition, uuid), state, moved)

    def move_all(
        self,
        partition: TopicIdPartition,
        state: SegmentState,
        segments: Sequence[tuple[Uuid, bytes | None]],
    ) -> list[WriteAnswer | PublishRefusal]:
        return [self.move(partition, uuid, state, custom) for uuid, custom in segments]

    def state(self, partition: TopicIdPartition, uuid: Uuid) -> SegmentState | None:
        found = self._world.segments.get(SegmentId(partition, uuid))
        return None if found is None else found.state

    def _publish(
        self, segment_id: SegmentId, state: SegmentState, moved: SegmentMetadata | None
    ) -> WriteAnswer | PublishRefusal:
        world = self._world
        world.step()
        known = world.segments.get(segment_id)
        before = None if known is None else known.state
        if moved is None or state not in TRANSITIONS[before]:
            return PublishRefusal(PublishFailure.REJECTED, f"{before} to {state.name}")
        failure = world.failures.get((moved.start_offset, state))
        if failure is not None and failure is not PublishFailure.UNKNOWN:
            return PublishRefusal(failure, "as it was told")
        world.events.append((segment_id, state))
        if state is SegmentState.DELETE_SEGMENT_FINISHED:
            del world.segments[segment_id]
        else:
            world.segments[segment_id] = moved
        world.step()
        if failure is not None:
            return PublishRefusal(failure, "as it was told")
        return WriteAnswer(0, len(world.events) - 1, "applied")


class WorldHands:
    def __init__(self, world: World, plan: CopyPlan) -> None:
        self.publisher = WorldPublisher(world)
        self._world = world
        self._plan = plan
        self._copies = {copy.uuid: copy for _, copy in plan.in_turn()}

    def why_not_ours(self, partition: TopicIdPartition) -> str:
        lost_at = self._world.lost_at
        return "lost" if lost_at is not None and self._world.steps >= lost_at else ""

    def started_event(self, partition: TopicIdPartition, copy: PlannedCopy) -> SegmentMetadata:
        known = self._world.segments.get(SegmentId(partition, copy.uuid))
        return known or self._plan.started_event(partition, copy, 1)

    def unit(
        self, partition: TopicIdPartition, copy: PlannedCopy, event: SegmentMetadata
    ) -> CopyTask:
        return SimpleNamespace(segment=event)  # type: ignore[return-value]

    def copy(
        self, units: Sequence[CopyTask], on_result: Callable[[Uuid, CopyResult | str], None]
    ) -> None:
        """Return results in the worst order, highest offset first."""
        for unit in reversed(units):
            copy = self._copies[unit.segment.id.uuid]
            if self._world.stopped_units:
                on_result(
                    unit.segment.id.uuid,
                    CopyResult(str(copy.uuid), UnitOutcome.STOPPED, "it is told to"),
                )
                continue
            self._world.on_copy(copy)
            outcome = self._world.outcomes.get(copy.start_offset)
            if copy.action is not SegmentAction.COMPLETE:
                self._world.step()
                self._world.objects[copy.uuid] = StoredObjects.PARTIAL
            self._world.step()
            if outcome is None or outcome.is_done:
                self._world.objects[copy.uuid] = StoredObjects.WHOLE
            result = CopyResult(
                str(copy.uuid),
                outcome or UnitOutcome.COPIED,
                "",
                copy.size_bytes,
                2 * copy.size_bytes,
            )
            on_result(unit.segment.id.uuid, result)

    def stop_units(self, why: str) -> None:
        self._world.stopped_units.append(why)

    def delete_objects(self, partition: TopicIdPartition, copy: PlannedCopy | PlannedEnd) -> str:
        self._world.step()
        if copy.start_offset in self._world.undeletable:
            return "store-unavailable: it does not answer"
        self._world.objects.pop(copy.uuid, None)
        self._world.step()
        return ""
