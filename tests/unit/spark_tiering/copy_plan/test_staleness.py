"""When a plan may still be carried out, and the reasons when it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.metadata.ids import Uuid
from spark_tiering.copy_plan.inputs import StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.staleness import why_stale
from tests.support.builders import tp
from tests.support.tier.copy_plans import (
    FINISHED,
    STARTED,
    copied,
    cut,
    evidence,
    image,
    metadata,
    plan_of,
    rules,
    segment,
    source,
)

if TYPE_CHECKING:
    from spark_tiering.copy_plan.inputs import MetadataImage, SourcePartition

KNOWN = copied("a", 0, 100, FINISHED)
METADATA = metadata(image(KNOWN))
SOURCE = source(cut(0, 100, 200, 300), stable=300)
PLAN = plan_of([SOURCE], image(KNOWN))


def changed(**of_source: Any) -> list[SourcePartition]:
    segments = of_source.pop("segments", SOURCE.segments)
    return [source(segments, **{"stable": 300, **of_source})]


@pytest.mark.parametrize(
    ("now", "sources"),
    [
        pytest.param(METADATA, [SOURCE], id="nothing happened"),
        pytest.param(metadata(image(KNOWN), position=99), [SOURCE], id="other partitions' events"),
        pytest.param(
            METADATA,
            changed(segments=cut(0, 100, 200, 300, 400, is_active=True), stable=400),
            id="the source has grown",
        ),
        pytest.param(
            METADATA, changed(segments=cut(100, 200, 300)), id="what was copied before is gone"
        ),
        pytest.param(
            METADATA, changed(segments=cut(0, 100, 200, 300, is_inspected=False)), id="not read"
        ),
        pytest.param(METADATA, changed(history=((0, 0), (1, 300))), id="a new leader"),
        pytest.param(METADATA, changed(log_start=5), id="an archive's log starts elsewhere"),
    ],
)
def test_plan_when_what_it_stands_on_is_as_it_was_then_is_not_stale(
    now: MetadataImage, sources: list[SourcePartition]
) -> None:
    """A plan is not stale when segments were only added or when other partitions changed."""
    assert why_stale(PLAN, now, sources) == ()


@pytest.mark.parametrize(
    ("now", "sources", "expected"),
    [
        pytest.param(
            metadata(image(KNOWN), cluster_id="c2"), [SOURCE], ["other-log"], id="cluster"
        ),
        pytest.param(
            replace(METADATA, topic_id=Uuid.of(0, 9)), [SOURCE], ["other-log"], id="recreated"
        ),
        pytest.param(metadata(), [SOURCE], ["metadata-absent"], id="F106 not ready"),
        pytest.param(
            metadata(image(KNOWN), position=9), [SOURCE], ["metadata-behind"], id="behind"
        ),
        pytest.param(
            metadata(image(KNOWN, copied("b", 100, 200, STARTED)), position=11),
            [SOURCE],
            ["metadata-changed"],
            id="F113 another job began",
        ),
        pytest.param(metadata(image()), [SOURCE], ["metadata-changed"], id="F120 deleted"),
        pytest.param(METADATA, [], ["source-absent"], id="source away"),
        pytest.param(
            METADATA, changed(segments=cut(200, 300)), ["segment-gone"], id="F120 retention"
        ),
        pytest.param(
            METADATA,
            changed(segments=cut(0, 100, 150, 200, 300)),
            ["segment-changed"],
            id="F103 rolled elsewhere",
        ),
        pytest.param(
            METADATA,
            changed(segments=[*cut(0, 100, 200), segment(200, 300, size=5)]),
            ["segment-changed"],
            id="size",
        ),
        pytest.param(METADATA, changed(stable=299), ["above-last-stable-offset"], id="truncated"),
        pytest.param(METADATA, changed(stable=None), ["above-last-stable-offset"] * 2, id="lso"),
        pytest.param(
            METADATA, changed(history=((0, 0), (1, 250))), ["leader-epochs-changed"], id="epochs"
        ),
        pytest.param(METADATA, changed(history=None), ["leader-epochs-changed"] * 2, id="history"),
        pytest.param(METADATA, changed(is_tiered=True), ["tiering-changed"], id="tiered now"),
    ],
)
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
