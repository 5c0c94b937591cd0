"""Copy plans for any metadata and source, judged by a literal model of Kafka's cache."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from rlmm_conformance.model import CacheModel
from rlmm_conformance.steps import SegmentFields, UpdateFields
from spark_tiering.copy_plan.document import CopyPlanUnreadable, format_plan, parse_plan
from spark_tiering.copy_plan.inputs import (
    OpenCopyEvidence,
    OpenCopyWriter,
    PartitionImage,
    StoredObjects,
)
from spark_tiering.copy_plan.lineage import Coverage, spans_of
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason, SegmentAction
from spark_tiering.copy_plan.rules import OBJECTS_MAX, Budgets, SegmentSelection
from spark_tiering.copy_plan.staleness import why_stale
from spark_tiering.copy_plan.summary import summary
from tests.support.builders import tp
from tests.support.records.mutations import mutated
from tests.support.tier.copy_plans import (
    BROKER_ID,
    NOW_MS,
    copied,
    example_plan,
    metadata,
    new_ids,
    own_epochs,
    rules,
    segment,
    source,
)

if TYPE_CHECKING:
    from random import Random

    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import MetadataImage, SourcePartition
    from spark_tiering.copy_plan.plan import CopyPlan, PartitionCopyPlan
    from spark_tiering.copy_plan.rules import PlanRules
    from spark_tiering.segments.leader_epochs import Epochs

    World = tuple[PlanRules, MetadataImage, list[SourcePartition], list[OpenCopyEvidence]]

T = TypeVar("T")

STARTED, FINISHED, DELETING, _ = SegmentState
ENDED, ALIVE, FOREIGN = OpenCopyWriter
OFFSETS_MAX = 40
EXAMPLE = format_plan(example_plan())

HISTORIES = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 20)), max_size=2
).map(lambda steps: tuple(accumulate(steps, lambda at, by: (at[0] + by[0], at[1] + by[1]),
                                     initial=(0, 0))))  # fmt: skip


def seldom(draw: st.DrawFn, usual: T, *odd: T) -> T:
    return draw(st.sampled_from([usual] * 12 * len(odd) + list(odd)))


@st.composite
def images(
    draw: st.DrawFn, number: int, history: Epochs, bounds: list[int], *, is_tidy: bool
) -> PartitionImage:
    """Draw the metadata of one partition; in a tidy one the tier ends where a segment begins."""
    partition, segments = tp("orders", number), []
    ranges = draw(st.lists(ranges_near(bounds), max_size=5))
    tier_end = draw(st.sampled_from(bounds)) if bounds else 0
    if is_tidy and tier_end > 0:
        ranges = [(start, stop) for start, stop in ranges if start >= tier_end]
        ranges.insert(0, (0, tier_end))
    for at, (start, stop) in enumerate(ranges):
        lineage = seldom(draw, history, history[:1], ((5, 0),), ())
        epochs = own_epochs(lineage, start, stop) or ((draw(st.integers(-1, 4)), start),)
        states = [STARTED, DELETING] if is_tidy else [STARTED, FINISHED, FINISHED, DELETING]
        segments.append(
            copied(
                SegmentId(partition, Uuid.of(number + 1, at)),
                start,
                stop,
                FINISHED if is_tidy and at == 0 < tier_end else draw(st.sampled_from(states)),
                epochs,
                broker_id=seldom(draw, BROKER_ID, 9),
            )
        )
    watermarks = seldom(draw, [], [(history[-1][0], draw(st.integers(0, 60)))], [(4, 4)])
    return PartitionImage(partition, tuple(segments), tuple(watermarks))


def ranges_near(bounds: list[int]) -> st.SearchStrategy[tuple[int, int]]:
    anywhere = st.tuples(st.integers(0, OFFSETS_MAX), st.integers(1, 15)).map(
        lambda drawn: (drawn[0], drawn[0] + drawn[1])
    )
    return anywhere | st.sampled_from(list(pairwise(bounds))) if len(bounds) > 1 else anywhere


@st.composite
def sources(
    draw: st.DrawFn, number: int, history: Epochs, bounds: list[int], *, is_tiered: bool
) -> SourcePartition:
    segments = [
        segment(
            base,
            behind,
            seldom(draw, own_epochs(history, base, behind), ((3, base),)),
            size=seldom(draw, 1000, 0, 2**31),
            newest_ms=seldom(draw, base, NOW_MS - 5, -1),
            blockers=seldom(draw, (), ("log: torn\n\x1b[2J",)),
            is_inspected=seldom(draw, True, False),
        )
        for base, behind in pairwise(bounds)
    ]
    has_active = draw(st.booleans())
    if bounds and has_active:
        segments.append(segment(bounds[-1], None))
    return source(
        segments,
        partition=tp("orders", number),
        history=seldom(draw, history, history[1:], None),
        stable=seldom(draw, 10**6, 30, None),
        is_tiered=is_tiered,
        log_start=seldom(draw, 0, bounds[0] if bounds else 0, None),
        retention_ms=draw(st.sampled_from([None, 5])),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    mode = draw(st.sampled_from(CopyMode))
    parts = []
    for number in range(draw(st.integers(1, 3))):
        history = draw(HISTORIES)
        bounds = sorted(draw(st.sets(st.integers(0, OFFSETS_MAX + 20), max_size=6)))
        is_tidy = (mode is CopyMode.ADOPT) == seldom(draw, True, False)
        is_tiered = (mode is CopyMode.ADOPT) == seldom(draw, True, False)
        found = draw(sources(number, history, bounds, is_tiered=is_tiered))
        parts.append((draw(images(number, history, bounds, is_tidy=is_tidy)), found))
    evidence = [
        OpenCopyEvidence(
            known.id,
            seldom(draw, ENDED, FOREIGN, FOREIGN, ALIVE),
            draw(st.sampled_from(StoredObjects)),
        )
        for image, _ in parts
        for known in image.segments
        if seldom(draw, True, False)
    ]
    asked = rules(
        mode,
        filters=SegmentSelection(
            age_ms_min=draw(st.sampled_from([0, 0, 3, 10**6])),
            kept_local_bytes=draw(st.sampled_from([0, 0, 1500])),
        ),
        budgets=Budgets(
            draw(st.none() | st.integers(0, 6000)),
            draw(st.just(OBJECTS_MAX) | st.integers(0, 40)),
            draw(st.none() | st.integers(0, 100)),
        ),
    )
    are_known = [image for image, _ in parts if seldom(draw, True, False)]
    return asked, metadata(*are_known), [found for _, found in parts], evidence


def of_partition(world: MetadataImage, plan: PartitionCopyPlan) -> PartitionImage | None:
    return next((one for one in world.partitions if one.partition == plan.partition), None)


@given(worlds())
def test_any_plan_when_made_then_accounts_for_every_segment_and_open_copy(world: World) -> None:
    """Every segment and every open copy has an action or a reason."""
    asked, known, found, evidence = world
    plan = make_plan(asked, known, found, evidence, new_ids())
    for part, of_source in zip(
        plan.partitions, sorted(found, key=lambda one: one.partition.partition), strict=True
    ):
        copies = {(one.start_offset, one.last_offset + 1) for one in part.copies}
        listed = {tuple(one.listed) for one in of_source.segments}
        left = {
            tuple(one.listed)
            for one in of_source.segments
            for run in part.left_out
            if run.first_offset <= one.listed.base_offset
            and (run.next_offset is None or one.listed.base_offset < run.next_offset)
        }
        assert listed == (copies & listed) | left
        assert not copies & left
        assert sum(run.segments for run in part.left_out) == len(left)
        image = of_partition(known, part)
        opened = [] if image is None else image.segments
        ids = [one.uuid for one in part.copies if one.action is not SegmentAction.COPY]
        ids += [one.uuid for one in part.ends]
        ids += [one.uuid for one in part.left_open]
        assert sorted(ids) == sorted(
            one.id.uuid for one in opened if one.state in {STARTED, DELETING}
        )


@given(worlds())
def test_any_plan_when_made_then_leaves_no_gap_and_keeps_its_budgets(world: World) -> None:
    """Every segment below a copy is copied or covered, and costs stay within every limit."""
    asked, known, found, evidence = world
    plan = make_plan(asked, known, found, evidence, new_ids())
    for part in plan.partitions:
        highest = max((one.last_offset for one in part.copies), default=-1)
        below = [run for run in part.left_out if run.first_offset < highest]
        assert {run.reason for run in below} <= {NotCopiedReason.COVERED}
        for lower, upper in pairwise(part.copies):
            assert lower.last_offset < upper.start_offset
            assert lower.turn < upper.turn
            if asked.mode is CopyMode.ADOPT:
                assert lower.last_offset + 1 == upper.start_offset
    budgets, cost = asked.budgets, plan.cost
    for limit, spent in zip(
        (budgets.bytes_max, budgets.objects_max, budgets.requests_max), cost, strict=True
    ):
        assert limit is None or spent <= limit
    assert [copy.turn for _, copy in plan.in_turn()] == list(range(len(plan.in_turn())))


def model_of(image: PartitionImage, order: list[SegmentMetadata]) -> CacheModel:
    model = CacheModel()
    for epoch, highest in image.watermarks:
        model.epoch(epoch).highest = highest
    for one in order:
        finish(model, str(one.id.uuid), one.start_offset, one.last_offset, one.epochs)
    return model


def finish(model: CacheModel, label: str, start: int, last: int, epochs: Epochs) -> None:
    model.add(SegmentFields(label, start, last, epochs))
    model.update(UpdateFields(label, FINISHED))


def is_found(model: CacheModel, epoch: int, offset: int) -> bool:
    return model.get_from_slots(epoch, offset) is not None


@given(worlds(), st.randoms(use_true_random=False))
def test_any_plan_when_carried_out_then_brokers_find_it_all(world: World, random: Random) -> None:
    """Brokers find the same offsets as before plus the copied ones, along every line of leaders."""
    asked, known, found, evidence = world
    plan = make_plan(asked, known, found, evidence, new_ids())
    histories = {one.partition: one.history for one in found}
    for part in plan.partitions:
        image, history = of_partition(known, part), histories[part.partition]
        if image is None or not part.copies:
            continue
        done = [one for one in image.segments if one.state is FINISHED]
        model = model_of(image, random.sample(done, len(done)))
        lineage = [
            (span.epoch, offset)
            for span in spans_of(history or (), 0, 80)
            for offset in range(span.first_offset, span.next_offset)
        ]
        before = [one for one in lineage if is_found(model, *one)]
        coverage = Coverage(done)
        for copy in part.copies:
            start, behind = copy.start_offset, copy.last_offset + 1
            assert copy.lacking == coverage.lacks(copy.epochs, start, behind) != ()
            if asked.mode is CopyMode.ADOPT:
                assert copy.lacking == spans_of(copy.epochs, start, behind)
            finish(model, str(copy.uuid), start, copy.last_offset, copy.epochs)
        assert not [one for one in before if not is_found(model, *one)]
        copied_offsets = [
            (span.epoch, offset)
            for copy in part.copies
            for span in spans_of(copy.epochs, copy.start_offset, copy.last_offset + 1)
            for offset in range(span.first_offset, span.next_offset)
        ]
        assert not [one for one in copied_offsets if not is_found(model, *one)]


@given(worlds(), st.randoms(use_true_random=False))
def test_any_plan_when_read_back_is_the_same_and_not_stale(world: World, random: Random) -> None:
    """A plan reads back, is not stale, and does not depend on the order of its input."""
    asked, known, found, evidence = world
    plan = make_plan(asked, known, found, evidence, new_ids())
    content = format_plan(plan)
    assert parse_plan(content) == plan
    mixed = random.sample(found, len(found))
    again: CopyPlan = make_plan(
        asked, known, mixed, random.sample(evidence, len(evidence)), new_ids()
    )
    assert format_plan(again) == content
    assert why_stale(plan, known, found) == ()
    assert summary(plan).replace("\n", "").isprintable()


@given(st.randoms(use_true_random=False))
def test_any_bytes_when_read_as_a_plan_then_are_one_or_say_why_not(random: Random) -> None:
    """The reader gives a whole plan or names the damage."""
    found = parse_plan(mutated(random, EXAMPLE, [EXAMPLE]))
    if isinstance(found, CopyPlanUnreadable):
        assert 0 < len(found.detail) <= 600
    else:
        assert found == example_plan()
