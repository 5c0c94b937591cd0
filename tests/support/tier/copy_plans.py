"""Inputs of copy plans, with defaults."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.inputs import (
    MetadataImage,
    OpenCopyEvidence,
    OpenCopyWriter,
    PartitionImage,
    SegmentDetails,
    SourcePartition,
    SourceSegment,
    StoredObjects,
)
from spark_tiering.copy_plan.lineage import spans_of
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import Budgets, PlanRules, RequestCosts, SegmentSelection
from spark_tiering.segments.segment_listing import ListedSegment
from tests.support.builders import TOPIC_ID, segment_id, started, tp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan
    from spark_tiering.segments.leader_epochs import Epochs
    from tests.support.builders import Label

NOW_MS = 1_700_000_000_000
HISTORY: Epochs = ((0, 0),)
BROKER_ID = 1
PARTITION_COUNT = 5
SIZE_BYTES = 1000
INDEXES_BYTES = 100

STARTED, FINISHED, DELETING, _ = SegmentState


def rules(
    mode: CopyMode = CopyMode.ARCHIVE,
    *,
    filters: SegmentSelection | None = None,
    budgets: Budgets | None = None,
    costs: RequestCosts | None = None,
    prefix: str = "",
) -> PlanRules:
    return PlanRules(
        mode,
        NOW_MS,
        BROKER_ID,
        prefix,
        filters or SegmentSelection(),
        budgets or Budgets(),
        costs or RequestCosts(),
    )


def segment(
    base: int,
    behind: int | None,
    epochs: Epochs | None = None,
    *,
    size: int = SIZE_BYTES,
    newest_ms: int | None = None,
    blockers: tuple[str, ...] = (),
    is_inspected: bool = True,
    txn_index_empty: bool = True,
) -> SourceSegment:
    details = SegmentDetails(
        ((0, base),) if epochs is None else epochs,
        base if newest_ms is None else newest_ms,
        txn_index_empty,
        INDEXES_BYTES,
        blockers,
    )
    is_known = is_inspected and behind is not None
    return SourceSegment(ListedSegment(base, behind), size, details if is_known else None)


def cut(
    *offsets: int,
    history: Epochs = HISTORY,
    is_active: bool = False,
    size: int = SIZE_BYTES,
    is_inspected: bool = True,
) -> list[SourceSegment]:
    """Cut segments from each offset to the next; the last one is open where *is_active*."""
    found = [
        segment(
            base, behind, own_epochs(history, base, behind), size=size, is_inspected=is_inspected
        )
        for base, behind in pairwise(offsets)
    ]
    if is_active:
        found.append(segment(offsets[-1], None, size=size))
    return found


def own_epochs(history: Epochs, base: int, behind: int) -> Epochs:
    return tuple((span.epoch, span.first_offset) for span in spans_of(history, base, behind))


def source(
    segments: Sequence[SourceSegment],
    *,
    partition: TopicIdPartition | None = None,
    history: Epochs | None = HISTORY,
    stable: int | None = 10**9,
    is_tiered: bool = False,
    log_start: int | None = None,
    retention_ms: int | None = None,
) -> SourcePartition:
    return SourcePartition(
        partition or tp(), tuple(segments), history, stable, is_tiered, log_start, retention_ms
    )


def copied(
    label: Label,
    base: int,
    behind: int,
    state: SegmentState,
    epochs: Epochs | None = None,
    *,
    broker_id: int = BROKER_ID,
    size: int = SIZE_BYTES,
    newest_ms: int | None = None,
    txn_index_empty: bool = True,
    custom: bytes | None = None,
) -> SegmentMetadata:
    """Build the metadata of [base, behind) as `segment` does."""
    return started(
        label,
        base,
        behind - 1,
        ((0, base),) if epochs is None else epochs,
        broker_id=broker_id,
        max_timestamp_ms=base if newest_ms is None else newest_ms,
        size_bytes=size,
        custom_metadata=custom,
        state=state,
        txn_index_empty=txn_index_empty,
    )


def metadata(
    *images: PartitionImage, position: int = 10, cluster_id: str = "cluster-1"
) -> MetadataImage:
    positions = dict.fromkeys(range(PARTITION_COUNT), position)
    return MetadataImage(cluster_id, TOPIC_ID, PARTITION_COUNT, positions, images)


def image(
    *segments: SegmentMetadata,
    partition: TopicIdPartition | None = None,
    watermarks: Iterable[tuple[int, int]] = (),
) -> PartitionImage:
    return PartitionImage(partition or tp(), segments, tuple(watermarks))


def evidence(
    segment: SegmentMetadata,
    objects: StoredObjects = StoredObjects.NONE,
    writer: OpenCopyWriter = OpenCopyWriter.ENDED,
) -> OpenCopyEvidence:
    return OpenCopyEvidence(segment.id, writer, objects)


def new_ids() -> Iterator[Uuid]:
    return (Uuid.of(7, number) for number in range(1, 2**31))


def plan_of(
    sources: Sequence[SourcePartition],
    *images: PartitionImage,
    rule: PlanRules | None = None,
    evidence: Iterable[OpenCopyEvidence] = (),
    ids: Iterable[Uuid] | None = None,
) -> CopyPlan:
    """Plan from *sources*, by default with rules and images that leave everything to copy."""
    known = metadata(*(images or (image(partition=one.partition) for one in sources)))
    return make_plan(rule or rules(), known, sources, evidence, ids or new_ids())


def planned(
    segments: Sequence[SourceSegment],
    *known: SegmentMetadata,
    evidence: Iterable[OpenCopyEvidence] = (),
    rule: PlanRules | None = None,
    watermarks: Iterable[tuple[int, int]] = (),
    **of_source: object,
) -> PartitionCopyPlan:
    """Plan one partition; the source of an adoption is tiered and its log starts with 0."""
    if rule is not None and rule.mode is CopyMode.ADOPT:
        of_source = {"is_tiered": True, "log_start": 0, **of_source}
    the_source = source(segments, **of_source)  # type: ignore[arg-type]
    images = image(*known, watermarks=watermarks)
    (found,) = plan_of([the_source], images, rule=rule, evidence=evidence).partitions
    return found


def ranges(plan: PartitionCopyPlan) -> list[tuple[str, int, int]]:
    return [(one.action.value, one.start_offset, one.last_offset + 1) for one in plan.copies]


def reasons(plan: PartitionCopyPlan) -> list[tuple[str, int, int | None]]:
    return [(one.reason.value, one.first_offset, one.next_offset) for one in plan.left_out]


def example_plan() -> CopyPlan:
    orders, logs, other = tp("orders", 0), tp("logs", 1), tp("other", 2)
    history: Epochs = ((0, 0), (3, 250))
    done = copied(segment_id("done", orders), 50, 100, FINISHED)
    whole = copied(segment_id("whole", orders), 100, 200, STARTED)
    foreign = copied(segment_id("foreign", orders), 0, 90, STARTED, broker_id=9)
    wrong = copied(segment_id("wrong", orders), 200, 290, STARTED, custom=b"\1\xff")
    return make_plan(
        rules(filters=SegmentSelection(without_topics=("oth*",), age_ms_min=1000), prefix="tier/"),
        metadata(
            image(done, whole, foreign, wrong, partition=orders),
            image(partition=logs),
            image(partition=other),
        ),
        [
            source(
                cut(100, 200, 300, 400, history=history, is_active=True),
                partition=orders,
                history=history,
                retention_ms=10_000,
            ),
            source(cut(0, 10, 20), partition=logs),
            source(cut(5, 6), partition=other),
        ],
        [
            evidence(whole, StoredObjects.WHOLE),
            evidence(wrong, StoredObjects.PARTIAL),
            evidence(foreign, writer=OpenCopyWriter.FOREIGN),
        ],
        new_ids(),
    )
