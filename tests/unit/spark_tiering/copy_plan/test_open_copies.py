"""Open copies that were started and not finished, decided by the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.copy_plan.inputs import OpenCopyEvidence, OpenCopyWriter, StoredObjects
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import Budgets, SegmentSelection
from tests.support.tier.copy_plans import (
    DELETING,
    FINISHED,
    NOW_MS,
    STARTED,
    copied,
    cut,
    evidence,
    image,
    plan_of,
    planned,
    ranges,
    reasons,
    rules,
    segment,
    source,
)

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata
    from spark_tiering.copy_plan.inputs import SourceSegment
    from spark_tiering.copy_plan.plan import PartitionCopyPlan

NONE, PARTIAL, WHOLE, DAMAGED, UNKNOWN = StoredObjects
SEGMENTS = cut(100, 200, 300)
OPEN = copied("open", 100, 200, STARTED)


def fate(known: SegmentMetadata, plan: PartitionCopyPlan) -> str:
    found = {one.uuid: one.action.value for one in plan.copies}
    found |= {one.uuid: f"ended: {one.reason}" for one in plan.ends}
    found |= {one.uuid: f"open: {one.reason}" for one in plan.left_open}
    return found[known.id.uuid]


@pytest.mark.parametrize(
    ("objects", "expected", "done"),
    [
        pytest.param(WHOLE, "complete", ("complete", 100, 200), id="F108 all there"),
        pytest.param(PARTIAL, "resume", ("resume", 100, 200), id="F121 no manifest"),
        pytest.param(NONE, "resume", ("resume", 100, 200), id="F102 nothing there"),
        pytest.param(DAMAGED, "ended: objects-damaged", ("copy", 100, 200), id="F128 damaged"),
    ],
)
def test_open_copy_of_ours_when_its_writer_has_ended_then_is_gone_on_with(
    objects: StoredObjects, expected: str, done: tuple[str, int, int]
) -> None:
    """A finished job's open copy continues under its id where it can; else it is copied anew."""
    plan = planned(SEGMENTS, OPEN, evidence=[evidence(OPEN, objects)])
    assert fate(OPEN, plan) == expected
    assert ranges(plan) == [done, ("copy", 200, 300)]
    assert not plan.left_out


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([], "evidence-missing", id="nothing known"),
        pytest.param(
            [evidence(OPEN, WHOLE, OpenCopyWriter.ALIVE)], "writer-alive", id="second job"
        ),
        pytest.param([evidence(OPEN, UNKNOWN)], "objects-unknown", id="F126 outcome unknown"),
    ],
)
def test_open_copy_when_unknown_blocks_range(found: list[OpenCopyEvidence], expected: str) -> None:
    """An open copy with unknown state stays open, and its range is not copied under another id."""
    plan = planned(SEGMENTS, OPEN, evidence=found)
    assert fate(OPEN, plan) == f"open: {expected}"
    assert reasons(plan) == [("open-copy-undecided", 100, 200), ("behind", 200, 300)]
    assert ranges(plan) == []


@pytest.mark.parametrize("objects", list(StoredObjects))
def test_f114_deletion_when_it_was_begun_then_is_finished(objects: StoredObjects) -> None:
    """A copy whose deletion its own ended job began is deleted, and its segment copied again."""
    going = replace(OPEN, state=DELETING)
    plan = planned(SEGMENTS, going, evidence=[evidence(going, objects)])
    assert [(one.state, one.reason.value) for one in plan.ends] == [(DELETING, "deletion-begun")]
    assert ranges(plan) == [("copy", 100, 200), ("copy", 200, 300)]
    for writer in (OpenCopyWriter.ALIVE, OpenCopyWriter.FOREIGN):
        assert not planned(SEGMENTS, going, evidence=[evidence(going, objects, writer)]).ends


def test_f104_copy_when_it_is_ended_then_its_custom_metadata_is_planned_too() -> None:
    """The plan has the custom metadata of a copy to end, for both events of the deletion."""
    ended = copied("open", 100, 200, STARTED, custom=b"\x01\x02")
    plan = plan_of([source(SEGMENTS)], image(ended), evidence=[evidence(ended, DAMAGED)])
    assert [one.custom_metadata for part in plan.partitions for one in part.ends] == [b"\x01\x02"]


CHANGED: dict[str, tuple[tuple[int, int], dict[str, Any], str]] = {
    "size": ((100, 200), {"size": 999}, "source-differs"),
    "timestamp": ((100, 200), {"newest_ms": 7}, "source-differs"),
    "txn": ((100, 200), {"txn_index_empty": False}, "source-differs"),
    "end": ((100, 190), {}, "source-differs"),
    "start": ((110, 200), {}, "source-differs"),
    "epochs": ((100, 200), {"epochs": ((0, 100), (1, 150))}, "other-lineage"),
    "broker": ((100, 200), {"broker_id": 2}, "other-broker-id"),
}


@pytest.mark.parametrize(("offsets", "fields", "expected"), CHANGED.values(), ids=CHANGED)
@pytest.mark.parametrize("objects", [NONE, PARTIAL, WHOLE])
def test_open_copy_when_it_is_not_what_the_source_has_then_is_ended_and_copied_anew(
    offsets: tuple[int, int], fields: dict[str, Any], expected: str, objects: StoredObjects
) -> None:
    """An open copy whose metadata differs from the source is ended and copied anew."""
    known = copied("open", *offsets, STARTED, **fields)
    plan = planned(SEGMENTS, known, evidence=[evidence(known, objects)])
    assert fate(known, plan) == f"ended: {expected}"
    assert ranges(plan) == [("copy", 100, 200), ("copy", 200, 300)]


@pytest.mark.parametrize("objects", list(StoredObjects))
def test_open_copy_when_another_finished_its_range_then_is_ended(objects: StoredObjects) -> None:
    """An open copy of a finished range is ended: its late finish would displace the other."""
    done = copied("done", 50, 300, FINISHED)
    plan = planned(SEGMENTS, done, OPEN, evidence=[evidence(OPEN, objects)])
    assert fate(OPEN, plan) == "ended: covered"
    assert ranges(plan) == []


def test_open_copy_when_its_finish_would_hide_another_then_is_ended() -> None:
    """An open copy within a finished one is ended: its finish would hide the other's end."""
    known = copied("open", 100, 160, STARTED)
    done = [copied("a", 110, 120, FINISHED), copied("b", 150, 300, FINISHED)]
    plan = planned(cut(100, 160), *done, known, evidence=[evidence(known, WHOLE)])
    assert fate(known, plan) == "ended: overlap-would-hide"
    assert reasons(plan) == [("overlap-would-hide", 100, 160)]


def test_open_copies_of_one_range_when_there_are_several_then_the_nearest_goes_on() -> None:
    """Of open copies of one range the nearest one is finished, the others ended top down."""
    second = copied("second", 100, 200, STARTED)
    others = [copied(label, 200, 300, STARTED) for label in ("third", "fourth")]
    states = [evidence(OPEN, PARTIAL), evidence(second, WHOLE)]
    states += [evidence(other, DAMAGED) for other in others]
    plan = planned(SEGMENTS, OPEN, second, *others, evidence=states)
    assert fate(OPEN, plan) == "ended: duplicate"
    assert fate(second, plan) == "complete"
    assert [one.start_offset for one in plan.ends] == [200, 200, 100]
    assert ranges(plan) == [("complete", 100, 200), ("copy", 200, 300)]


def test_whole_copy_when_the_source_has_it_no_more_then_is_completed() -> None:
    """A whole open copy is completed although retention removed its source."""
    known = copied("open", 20, 100, STARTED)
    plan = planned(SEGMENTS, known, evidence=[evidence(known, WHOLE)])
    assert ranges(plan) == [("complete", 20, 100), ("copy", 100, 200), ("copy", 200, 300)]
    assert [(one.first_offset, one.next_offset) for one in plan.gaps] == [(0, 20)]


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(copied("open", 20, 150, STARTED), id="reaches into the source"),
        pytest.param(copied("open", 20, 100, STARTED, broker_id=2), id="another broker's"),
        pytest.param(copied("open", 20, 100, STARTED, ((-1, 20),)), id="no such epoch"),
    ],
)
def test_whole_copy_when_it_is_the_last_and_unfit_then_stays_open(known: SegmentMetadata) -> None:
    """A whole last copy that does not fit waits for an operator; new copies go on."""
    plan = planned(SEGMENTS, known, evidence=[evidence(known, WHOLE)], history=((0, 100),))
    assert fate(known, plan) == "open: last-copy"
    assert ranges(plan) == [("copy", 100, 200), ("copy", 200, 300)]


@pytest.mark.parametrize(
    ("of_source", "expected"),
    [({"stable": None}, "last-stable-offset-unknown"), ({"stable": 199}, "above-last-stable")],
)
@pytest.mark.parametrize("objects", [PARTIAL, WHOLE])
def test_open_copy_when_it_is_not_known_to_be_stable_then_stays(
    of_source: dict[str, Any], expected: str, objects: StoredObjects
) -> None:
    """An open copy whose offsets are not known to be stable is neither finished nor deleted."""
    plan = planned(SEGMENTS, OPEN, evidence=[evidence(OPEN, objects)], **of_source)
    assert fate(OPEN, plan).startswith(f"open: {expected}")
    assert ranges(plan) == []


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (segment(100, 200, is_inspected=False), "not-inspected"),
        (segment(100, 200, blockers=("log: torn",)), "blocked"),
    ],
)
def test_open_copy_when_its_source_is_unread_stays(one: SourceSegment, expected: str) -> None:
    """An open copy with an unread or broken source stays; the plan names it to inspect."""
    plan = planned([one], OPEN, evidence=[evidence(OPEN, PARTIAL)])
    assert (fate(OPEN, plan), reasons(plan)) == (f"open: {expected}", [(expected, 100, 200)])


def test_whole_copy_when_its_segment_was_not_read_then_is_completed() -> None:
    """A whole open copy is completed without a read of its segment."""
    plan = planned(cut(100, 200, is_inspected=False), OPEN, evidence=[evidence(OPEN, WHOLE)])
    assert ranges(plan) == [("complete", 100, 200)]
    (copy,) = plan.copies
    assert (copy.cost.bytes, copy.cost.objects, copy.cost.requests) == (0, 0, 4)


@pytest.mark.parametrize(("objects", "action"), [(WHOLE, "complete"), (PARTIAL, "resume")])
def test_open_copy_goes_on_when_filters_refuse_it(objects: StoredObjects, action: str) -> None:
    """An open copy is finished although the filters would not start it now."""
    rule = rules(filters=SegmentSelection(age_ms_min=NOW_MS, kept_local_bytes=10**6))
    plan = planned(SEGMENTS, OPEN, rule=rule, evidence=[evidence(OPEN, objects)])
    assert ranges(plan) == [(action, 100, 200)]


@pytest.mark.parametrize("objects", [PARTIAL, WHOLE])
@pytest.mark.parametrize(
    ("mode", "expected"), [(CopyMode.ARCHIVE, "open: behind"), (CopyMode.ADOPT, "ended: behind")]
)
def test_open_copy_above_a_gap_waits(objects: StoredObjects, mode: CopyMode, expected: str) -> None:
    """An open copy above a left-out segment is not finished, or ended in an adoption."""
    above = copied("open", 200, 300, STARTED)
    segments = [segment(100, 200, blockers=("log: torn",)), *cut(200, 300)]
    plan = planned(
        segments, above, evidence=[evidence(above, objects)], rule=rules(mode), log_start=100
    )
    assert fate(above, plan) == expected
    assert ranges(plan) == []


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        (3, ("open: budget", "open: budget")),
        (4, ("open: budget", "ended: source-differs")),
        (9, ("open: budget", "ended: source-differs")),
        (10, ("resume", "ended: source-differs")),
    ],
)
def test_budget_when_used_up_makes_copies_wait(requests: int, expected: tuple[str, str]) -> None:
    """The budget pays for ended copies first, then for copies by turn, for none in part."""
    other = copied("wrong", 200, 250, STARTED)
    plan = plan_of(
        [source(SEGMENTS)],
        image(OPEN, other),
        rule=rules(budgets=Budgets(requests_max=requests)),
        evidence=[evidence(OPEN, PARTIAL), evidence(other, PARTIAL)],
    )
    (part,) = plan.partitions
    assert (fate(OPEN, part), fate(other, part)) == expected
    assert plan.cost.requests <= requests
