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
