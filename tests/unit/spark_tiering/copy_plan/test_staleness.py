"""Filters, budgets and turns of partitions, and when a plan is stale."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import Budgets, RequestCosts, SegmentSelection
from spark_tiering.copy_plan.staleness import why_stale
from tests.support.builders import tp
from tests.support.tier.copy_plans import (
    FINISHED,
    NOW_MS,
    STARTED,
    copied,
    cut,
    evidence,
    image,
    metadata,
    plan_of,
    planned,
    ranges,
    reasons,
    rules,
    segment,
    source,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_tiering.copy_plan.inputs import MetadataImage, SourcePartition


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        pytest.param(SegmentSelection(), ["a.x", "a.y", "b"], id="all but Kafka's own"),
        pytest.param(SegmentSelection(("a.*",)), ["a.x", "a.y"], id="pattern"),
        pytest.param(SegmentSelection(("a.*", "b"), ("*.y",)), ["a.x", "b"], id="without"),
        pytest.param(SegmentSelection(("[!a]*",)), ["b"], id="class"),
        pytest.param(SegmentSelection(("__offsets", "b")), ["__offsets", "b"], id="named"),
        pytest.param(SegmentSelection(("__*",)), [], id="Kafka's own by pattern"),
        pytest.param(SegmentSelection(("A.X",)), [], id="letters count"),
    ],
)
def test_topics_when_filtered_are_the_wanted(filters: SegmentSelection, wanted: list[str]) -> None:
    """Filters by name and pattern select topics, and internal topics only by name."""
    partitions = [tp(name, 0) for name in ("__offsets", "a.x", "a.y", "b")]
    sources = [source(cut(0, 10), partition=one) for one in partitions]
    plan = plan_of(sources, rule=rules(filters=filters))
    assert [one.partition.topic for one in plan.partitions if one.copies] == wanted
    others = [one for one in plan.partitions if not one.copies]
    assert all(reasons(one) == [("topic-not-wanted", 0, 10)] for one in others)


@pytest.mark.parametrize(
    ("kept_bytes", "until"), [(0, 40), (1000, 40), (1001, 30), (2000, 30), (3000, 20), (4001, 0)]
)
def test_bytes_kept_local_when_set_then_whole_segments_suffice(kept_bytes: int, until: int) -> None:
    """A segment is copied when the log above it has the bytes kept local."""
    rule = rules(filters=SegmentSelection(kept_local_bytes=kept_bytes))
    plan = planned(cut(0, 10, 20, 30, 40, is_active=True), rule=rule)
    assert ranges(plan) == [("copy", at, at + 10) for at in range(0, until, 10)]
    kept = [("kept-local", until, 40)] if until < 40 else []
    assert reasons(plan) == [*kept, ("active", 40, None)]


@pytest.mark.parametrize(("age_ms", "count"), [(0, 3), (1, 2), (5, 1), (100, 0)])
def test_age_when_asked_then_a_segment_with_a_younger_record_waits(age_ms: int, count: int) -> None:
    """A segment whose newest record is younger than the minimum age, or of the future, waits."""
    segments = [
        segment(0, 10, newest_ms=NOW_MS - 5),
        segment(10, 20, newest_ms=NOW_MS - 1),
        segment(20, 30, newest_ms=NOW_MS + 9),
    ]
    rule = rules(filters=SegmentSelection(age_ms_min=age_ms))
    assert len(planned(segments, rule=rule).copies) == count


@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        pytest.param(Budgets(bytes_max=2200), "budget-bytes", id="bytes"),
        pytest.param(Budgets(objects_max=8), "budget-objects", id="objects"),
        pytest.param(Budgets(requests_max=17), "budget-requests", id="requests"),
    ],
)
def test_budget_when_used_up_makes_the_rest_wait(budgets: Budgets, reason: str) -> None:
    """The budget takes the lowest segments that fit; the rest is left out for that reason."""
    plan = planned(cut(0, 10, 20, 30, 40), rule=rules(budgets=budgets))
    assert ranges(plan) == [("copy", 0, 10), ("copy", 10, 20)]
    assert reasons(plan) == [(reason, 20, 40)]
    assert "are left" in plan.left_out[0].detail


def test_budget_when_a_large_segment_does_not_fit_then_smaller_ones_elsewhere_do() -> None:
    """A segment larger than the budget does not hold up other partitions."""
    large = source([segment(0, 10, size=5000)], partition=tp("a", 0))
    small = source(cut(0, 10, 20), partition=tp("b", 0))
    plan = plan_of([large, small], rule=rules(budgets=Budgets(bytes_max=1100)))
    assert [ranges(one) for one in plan.partitions] == [[], [("copy", 0, 10)]]


@pytest.mark.parametrize(
    ("log_bytes", "requests"), [(0, 6), (99 * 2**20, 6), (100 * 2**20, 6 + 4), (2**31 - 1, 6 + 43)]
)
def test_requests_when_a_log_has_parts_are_an_upper_bound(log_bytes: int, requests: int) -> None:
    """The plan counts at most one request for the begin, each part and the end."""
    costs = RequestCosts(multipart_above_bytes=100 * 2**20, part_bytes=50 * 2**20)
    plan = plan_of([source([segment(0, 9, size=log_bytes)])], rule=rules(costs=costs))
    assert plan.cost.requests == requests


def test_order_when_brokers_delete_then_what_expires_first_comes_first() -> None:
    """Copies go by expiry over all partitions, then by age, and by offset in each partition."""
    never = source(cut(0, 10, 20), partition=tp("x", 0))
    later = source(cut(100, 110), partition=tp("y", 0), retention_ms=900)
    segments = [segment(5, 9, newest_ms=50), segment(9, 12, newest_ms=2000)]
    soon = source(segments, partition=tp("z", 0), retention_ms=800)
    turns = [
        (part.partition.topic, one.start_offset, one.expires_at_ms)
        for part, one in plan_of([never, later, soon]).in_turn()
    ]
    assert turns == [
        *(("z", 5, 850), ("y", 100, 1000), ("z", 9, 2800)),
        *(("x", 0, None), ("x", 10, None)),
    ]


@pytest.mark.parametrize("retention_ms", [-1, 2**63 - 1])
def test_expiry_when_brokers_keep_for_ever_then_is_unknown(retention_ms: int) -> None:
    """A retention of -1, or a time beyond the range, gives no expiry."""
    plan = planned(cut(5, 10), retention_ms=retention_ms)
    assert plan.copies[0].expires_at_ms is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: SegmentSelection(("a/b",)),
        lambda: SegmentSelection((), ("",)),
        lambda: SegmentSelection(age_ms_min=-1),
        lambda: SegmentSelection(kept_local_bytes=-1),
        lambda: Budgets(bytes_max=-1),
        lambda: Budgets(objects_max=10**6),
        lambda: Budgets(requests_max=-1),
        lambda: RequestCosts(part_bytes=0),
        lambda: RequestCosts(multipart_above_bytes=-1),
        lambda: RequestCosts(checks_of_object=-1),
        lambda: rules(prefix="a\nb"),
        lambda: rules(prefix="a" * 501),
    ],
)
def test_rules_when_nobody_can_mean_them_then_are_refused(make: Callable[[], object]) -> None:
    """Negative numbers, impossible patterns and prefixes with line breaks are refused."""
    with pytest.raises(InvalidArgument):
        make()


KNOWN = copied("a", 0, 100, FINISHED)
METADATA = metadata(image(KNOWN))
SOURCE = source(cut(0, 100, 200, 300), stable=300)
PLAN = plan_of([SOURCE], image(KNOWN))


def changed(**of_source: Any) -> list[SourcePartition]:
    segments = of_source.pop("segments", SOURCE.segments)
    return [source(segments, **{"stable": 300, **of_source})]


GROWN = changed(segments=cut(0, 100, 200, 300, 400, is_active=True), stable=400)
SAME = {
    "nothing happened": (METADATA, [SOURCE]),
    "other partitions' events": (metadata(image(KNOWN), position=99), [SOURCE]),
    "the source has grown": (METADATA, GROWN),
    "what was copied before is gone": (METADATA, changed(segments=cut(100, 200, 300))),
    "not read": (METADATA, changed(segments=cut(0, 100, 200, 300, is_inspected=False))),
    "a new leader": (METADATA, changed(history=((0, 0), (1, 300)))),
    "an archive's log starts elsewhere": (METADATA, changed(log_start=5)),
}


@pytest.mark.parametrize(("now", "sources"), SAME.values(), ids=SAME)
def test_plan_unchanged_is_not_stale(now: MetadataImage, sources: list[SourcePartition]) -> None:
    """A plan is not stale when segments were only added or when other partitions changed."""
    assert why_stale(PLAN, now, sources) == ()


BEGUN = metadata(image(KNOWN, copied("b", 100, 200, STARTED)), position=11)
OTHER_SIZE = [*cut(0, 100, 200), segment(200, 300, size=5)]
OTHERS: dict[str, tuple[MetadataImage, list[SourcePartition], list[str]]] = {
    "cluster": (metadata(image(KNOWN), cluster_id="c2"), [SOURCE], ["other-log"]),
    "recreated": (replace(METADATA, topic_id=Uuid.of(0, 9)), [SOURCE], ["other-log"]),
    "F106 not ready": (metadata(), [SOURCE], ["metadata-absent"]),
    "behind": (metadata(image(KNOWN), position=9), [SOURCE], ["metadata-behind"]),
    "F113 another job began": (BEGUN, [SOURCE], ["metadata-changed"]),
    "F120 deleted": (metadata(image()), [SOURCE], ["metadata-changed"]),
    "source away": (METADATA, [], ["source-absent"]),
    "F120 retention": (METADATA, changed(segments=cut(200, 300)), ["segment-gone"]),
    "F103 rolled elsewhere": (
        METADATA, changed(segments=cut(0, 100, 150, 200, 300)), ["segment-changed"],
    ),
    "size": (METADATA, changed(segments=OTHER_SIZE), ["segment-changed"]),
    "truncated": (METADATA, changed(stable=299), ["above-last-stable-offset"]),
    "lso": (METADATA, changed(stable=None), ["above-last-stable-offset"] * 2),
    "epochs": (METADATA, changed(history=((0, 0), (1, 250))), ["leader-epochs-changed"]),
    "history": (METADATA, changed(history=None), ["leader-epochs-changed"] * 2),
    "tiered now": (METADATA, changed(is_tiered=True), ["tiering-changed"]),
}  # fmt: skip


@pytest.mark.parametrize(("now", "sources", "expected"), OTHERS.values(), ids=OTHERS)
def test_plan_when_what_it_stands_on_has_changed_then_is_stale_by_name(
    now: MetadataImage, sources: list[SourcePartition], expected: list[str]
) -> None:
    """Each change that makes a plan stale is named with its place."""
    found = why_stale(PLAN, now, sources)
    assert [one.reason.value for one in found] == expected
    assert all(one.detail and one.reason.value in str(one) for one in found)


def test_adoption_when_the_log_start_moved_then_is_stale() -> None:
    """An adoption is stale when the log start offset moved: a window has no retention."""
    start = source(cut(0, 100), is_tiered=True, log_start=0)
    plan = plan_of([start], rule=rules(CopyMode.ADOPT))
    assert why_stale(plan, metadata(image()), [start]) == ()
    moved = replace(start, log_start=50)
    (found,) = why_stale(plan, metadata(image()), [moved])
    assert found.reason.value == "log-start-moved"


def test_completion_when_its_source_is_gone_then_is_not_stale() -> None:
    """A completion stays valid without its source, because it needs only objects and an event."""
    known = copied("open", 20, 100, STARTED)
    whole = evidence(known, StoredObjects.WHOLE)
    plan = plan_of([source(cut(20, 100, 200))], image(known), evidence=[whole])
    now = source(cut(100, 200), history=((0, 100),))
    assert why_stale(plan, metadata(image(known)), [now]) == ()


def test_partition_when_nothing_is_planned_in_it_then_makes_nothing_stale() -> None:
    """A partition in which the plan copies nothing makes it never stale."""
    other = source([segment(0, None)], partition=tp("other", 3))
    plan = plan_of([SOURCE, other], image(KNOWN), image(partition=other.partition))
    assert why_stale(plan, METADATA, [SOURCE]) == ()
