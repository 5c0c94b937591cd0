"""The steps of an application: events to publish, in groups, and those that are refused. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.metadata.engines import shard_type
from rlmm.metadata.segment import SegmentState
from spark_tiering.maintenance.rebuild.decision import ReadableCover, differences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rlmm.metadata.ids import SegmentId, TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.maintenance.rebuild.document import RestoredSegment

GROUP_MAX: Final = 500
GONE: Final = "its deletion is finished by now"


class ApplyStep(NamedTuple):
    entry: RestoredSegment
    needs_start: bool
    """False where an earlier application published the start."""


class ApplyRefusal(NamedTuple):
    """A segment of which nothing is published."""

    segment_id: SegmentId
    start_offset: int
    why: str


@dataclass
class ApplySteps:
    steps: list[ApplyStep] = field(default_factory=list)
    equal: int = 0
    refused: list[ApplyRefusal] = field(default_factory=list)


def steps_for(
    entries: Sequence[RestoredSegment],
    present: Mapping[SegmentId, SegmentMetadata],
    gone: Collection[SegmentId] = (),
    deletion: str = "",
) -> ApplySteps:
    """
    Return the steps for *entries* of one user partition of which the metadata has *present*. *gone*
    are segments whose deletion is finished; *deletion* is the state of the partition's. Where a
    stopped application has published the start alone, the step is the finish.
    """
    steps = ApplySteps()
    named = {entry.start.id for entry in entries}
    covers = ReadableCover(one for one in present.values() if one.id not in named)
    for entry in entries:
        start = entry.start
        known = present.get(start.id)
        why = f"the whole partition is being deleted: {deletion}" if deletion else ""
        if not why:
            why = _why_not(entry, known, covers) or ("" if known or start.id not in gone else GONE)
        if why:
            steps.refused.append(ApplyRefusal(start.id, start.start_offset, why))
        elif known is not None and known.state is SegmentState.COPY_SEGMENT_FINISHED:
            steps.equal += 1
        else:
            steps.steps.append(ApplyStep(entry, needs_start=known is None))
    return steps


def _why_not(entry: RestoredSegment, known: SegmentMetadata | None, covers: ReadableCover) -> str:
    """Return how the metadata contradicts *entry*; empty where it does not."""
    if known is None:
        holder = covers.holder(entry.start)
        if holder is None:
            return ""
        extent = f"{holder.start_offset} to {holder.last_offset}"
        return f"{holder.id.uuid} holds its offsets by now, {extent}"
    if known.state is SegmentState.COPY_SEGMENT_STARTED:
        is_ours = known == entry.start
        return "" if is_ours else f"a copy of its id is open, begun by broker {known.broker_id}"
    if known.state is SegmentState.COPY_SEGMENT_FINISHED:
        differing = differences(entry.finished, known)
        return f"it is there, with other fields: {'; '.join(differing)}" if differing else ""
    return f"it is {known.state.name} by now"


def taken_by_a_service(steps: ApplySteps) -> ApplySteps:
    """Refuse copies whose finish a service refuses, as they add nothing to another broker's."""
    shard = shard_type()(0)
    found = ApplySteps(equal=steps.equal, refused=list(steps.refused))
    for step in steps.steps:
        shard.apply_event(step.entry.start)
        if shard.admit(step.entry.finish) is None:
            shard.apply_event(step.entry.finish)
            found.steps.append(step)
        else:
            start = step.entry.start
            why = (
                "a service refuses a copy of what another broker has copied as well: publish it by"
                " --bootstrap-server or --embedded"
            )
            found.refused.append(ApplyRefusal(start.id, start.start_offset, why))
    return found


def groups(steps: Iterable[ApplyStep], most: int = GROUP_MAX) -> Iterator[list[ApplyStep]]:
    """Group *steps* in order: an overlapping segment follows the verdict on the earlier one."""
    group: list[ApplyStep] = []
    reached: dict[TopicIdPartition, tuple[int, int]] = {}
    for step in steps:
        start = step.entry.start
        partition, extent = start.id.partition, (start.start_offset, start.last_offset)
        first, last = reached.get(partition, (extent[1] + 1, extent[0] - 1))
        if group and (len(group) >= most or (extent[0] <= last and first <= extent[1])):
            yield group
            group, reached = [], {}
            first, last = extent
        group.append(step)
        reached[partition] = min(first, extent[0]), max(last, extent[1])
    if group:
        yield group
