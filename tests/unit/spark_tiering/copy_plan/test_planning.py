"""Planning: candidates, the segments that are copied, their order, and why others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import PartitionDeleteState
from spark_tiering.copy_plan.inputs import (
    MetadataImage,
    OpenCopyEvidence,
    OpenCopyWriter,
    PartitionImage,
    StoredObjects,
    details_of,
)
from spark_tiering.copy_plan.planner import make_plan
from spark_tiering.copy_plan.reasons import CopyMode, NotCopiedReason
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import parse_object_key
from tests.support.builders import TOPIC_ID, tp
from tests.support.partitions.segments import example_partition, inspect_all
from tests.support.tier.copy_plans import (
    DELETING,
    FINISHED,
    NOW_MS,
    STARTED,
    copied,
    cut,
    image,
    metadata,
    new_ids,
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

    from rlmm.metadata.segment import SegmentState
    from spark_tiering.copy_plan.inputs import SourceSegment


def test_copies_when_nothing_is_in_the_tier_then_rise_without_a_gap() -> None:
    """Every rolled segment is copied from the lowest on, and the active segment is named."""
    plan = planned(cut(0, 10, 25, 30, is_active=True))
    assert ranges(plan) == [("copy", 0, 10), ("copy", 10, 25), ("copy", 25, 30)]
    assert reasons(plan) == [("active", 30, None)]
    assert "30" in plan.left_out[0].detail
    assert [one.turn for one in plan.copies] == [0, 1, 2]
    assert not plan.gaps


def test_f107_plan_when_everything_was_copied_then_copies_nothing() -> None:
    """A second plan over the same source copies nothing and says why."""
    segments = cut(0, 10, 25, 30)
    first = plan_of([source(segments)])
    done = [
        replace(first.started_event(part.partition, one, 5), state=FINISHED)
        for part, one in first.in_turn()
    ]
    second = planned(segments, *done)
    assert ranges(second) == []
    assert reasons(second) == [("covered", 0, 30)]


def test_f107_keys_when_they_are_made_then_depend_on_the_segment_alone() -> None:
    """Keys depend on topic, topic id, partition, start offset and segment id alone."""
    plan = plan_of([source(cut(5, 9))], rule=rules(prefix="t/"))
    ((part, copy),) = plan.in_turn()
    keys = list(plan.keys(part.partition, copy).values())
    names = [parse_object_key(key, "t/") for key in keys]
    assert [name.kind for name in names if name] == ["log", "indexes", "rsm-manifest"]
    assert {(name.start_offset, name.segment_id.uuid) for name in names if name} == {(5, copy.uuid)}


@pytest.mark.parametrize("state", [STARTED, DELETING])
def test_f102_range_when_its_copy_was_not_finished_then_is_copied_anew(state: SegmentState) -> None:
    """A range with an unfinished copy, also a broker's, is copied again."""
    known = copied("open", 0, 10, state, broker_id=9)
    found = OpenCopyEvidence(known.id, OpenCopyWriter.FOREIGN, StoredObjects.UNKNOWN)
    plan = planned(cut(0, 10), known, evidence=[found])
    assert ranges(plan) == [("copy", 0, 10)]
    assert plan.copies[0].uuid != known.id.uuid
    assert [one.reason.value for one in plan.left_open] == ["not-ours"]


def test_f106_partition_when_its_metadata_is_not_ready_then_nothing_is_written() -> None:
    """A partition whose metadata is not ready gets no copy, and none of its copies is ended."""
    plan = make_plan(rules(), metadata(), [source(cut(0, 10, 20))], [], new_ids())
    (part,) = plan.partitions
    assert plan.is_empty
    assert reasons(part) == [("metadata-absent", 0, 20)]
    assert (part.image_digest, part.metadata_partition) == (None, None)


UNFIT: dict[str, tuple[dict[str, Any], str, str]] = {
    "stability unknown": ({"stable": None}, "last-stable-offset-unknown", "250"),
    "last record open": ({"stable": 250}, "above-last-stable-offset", "below 250"),
    "all open": ({"stable": 0}, "above-last-stable-offset", "below 0"),
    "no history": ({"history": None}, "leader-epoch-unknown", "offset 120"),
    "empty history": ({"history": ()}, "leader-epoch-unknown", "offset 120"),
    "history begins above": ({"history": ((1, 200),)}, "leader-epoch-unknown", "offset 120"),
    "another history": ({"history": ((1, 0),)}, "leader-epochs-disagree", ""),
    "a broker tiers it": ({"is_tiered": True}, "broker-copies", ""),
}


@pytest.mark.parametrize(("of_source", "reason", "text"), UNFIT.values(), ids=UNFIT)
def test_f109_unfit_segment_is_left_out(of_source: dict[str, Any], reason: str, text: str) -> None:
    """A segment that is not stable, or whose leader epoch is unknown, is left out with a reason."""
    plan = planned(cut(120, 251), **of_source)
    assert (ranges(plan), reasons(plan)) == ([], [(reason, 120, 251)])
    assert text in plan.left_out[0].detail
    assert ranges(planned(cut(120, 251), stable=251)) == [("copy", 120, 251)]


@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        pytest.param(segment(10, 20, is_inspected=False), "not-inspected", id="unread"),
        pytest.param(segment(10, 20, blockers=("log: torn",)), "blocked", id="torn"),
        pytest.param(segment(10, 20, size=2**31), "too-large", id="two gigabytes"),
        pytest.param(segment(10, 20, newest_ms=NOW_MS - 10), "too-young", id="young"),
        pytest.param(segment(10, 20, ((1, 10),)), "leader-epochs-disagree", id="epochs"),
    ],
)
def test_segment_above_a_left_out_one_is_left_out_too(middle: SourceSegment, expected: str) -> None:
    """A segment above one that is left out waits and names it, so that no copy leaves a gap."""
    segments = [*cut(0, 10), middle, *cut(20, 30, 40)]
    plan = planned(segments, rule=rules(filters=SegmentSelection(age_ms_min=100)))
    assert ranges(plan) == [("copy", 0, 10)]
    assert reasons(plan) == [(expected, 10, 20), ("behind", 20, 40)]
    assert plan.left_out[1].detail == f"10 is left out: {expected}"


def test_segments_when_none_was_read_then_those_to_inspect_are_named() -> None:
    """A first plan names the segments to inspect, but not covered, unstable or local ones."""
    segments = cut(0, 10, 20, 30, 40, 50, is_inspected=False)
    rule = rules(filters=SegmentSelection(kept_local_bytes=1000))
    plan = planned(segments, copied("a", 0, 10, FINISHED), rule=rule, stable=49)
    assert reasons(plan) == [
        ("covered", 0, 10),
        ("not-inspected", 10, 40),
        ("above-last-stable-offset", 40, 50),
    ]


def test_ids_when_given_then_the_usable_ones_are_used_in_turn() -> None:
    """Given ids are used in turn, except for reserved, duplicate and existing ones."""
    taken, good, other = Uuid.of(3, 3), Uuid.of(3, 4), Uuid.of(3, 5)
    dashed = Uuid(b"\xf8" + bytes(15))
    assert str(dashed).startswith("-")
    given = [Uuid.of(0, 0), Uuid.of(0, 1), dashed, taken, good, good, other, Uuid.of(3, 6)]
    known = copied(SegmentId(tp(), taken), 0, 10, FINISHED)
    segments = [source(cut(0, 10, 20, 30))]
    plan = plan_of(segments, image(known), ids=given)
    assert [one.uuid for _, one in plan.in_turn()] == [good, other]
    with pytest.raises(InvalidArgument, match="ids"):
        plan_of(segments, image(known), ids=given[:6])


def test_partition_when_it_is_being_deleted_then_nothing_is_copied() -> None:
    """No copy is planned for a partition that is being deleted."""
    state = PartitionDeleteState.DELETE_PARTITION_MARKED
    going = PartitionImage(tp(), (copied("a", 0, 10, STARTED),), (), state)
    (part,) = plan_of([source(cut(0, 10))], going).partitions
    assert reasons(part) == [("partition-being-deleted", 0, 10)]
    assert [one.reason.value for one in part.left_open] == ["partition-left-out"]


def test_f113_source_when_the_metadata_knows_a_newer_leader_then_is_not_copied() -> None:
    """A source of an older leader epoch is not copied: its log may be truncated."""
    newer = copied("a", 0, 10, FINISHED, ((4, 0),))
    assert reasons(planned(cut(0, 10, 20), newer)) == [("source-outdated", 0, 20)]
    assert reasons(planned(cut(0, 10), watermarks=[(4, 3)])) == [("source-outdated", 0, 10)]


@pytest.mark.parametrize(
    ("positions", "images", "text"),
    [
        pytest.param({}, (image(),), "position", id="no position"),
        pytest.param(dict.fromkeys(range(5), -1), (image(),), "position", id="position below 0"),
        pytest.param(dict.fromkeys(range(5), 1), (image(), image()), "twice", id="twice"),
    ],
)
def test_f113_metadata_when_it_is_not_of_one_moment_then_is_refused(
    positions: dict[int, int], images: tuple[PartitionImage, ...], text: str
) -> None:
    """Metadata without its position, or with one partition at two positions, is refused."""
    with pytest.raises(InvalidArgument, match=text):
        MetadataImage("c", TOPIC_ID, 5, positions, images)


A, B = copied("a", 0, 10, STARTED), copied("b", 10, 20, FINISHED)
TWO_WRITERS = [
    OpenCopyEvidence(A.id, writer, StoredObjects.NONE)
    for writer in (OpenCopyWriter.ENDED, OpenCopyWriter.ALIVE)
]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: source([segment(0, 10), segment(11, 20)]), "follows"),
        (lambda: source([segment(0, None), segment(11, 20)]), "follows"),
        (lambda: source([segment(10, 10)]), "bytes"),
        (lambda: source([], history=((1, 0), (1, 5))), "epoch"),
        (lambda: source([], partition=tp("a/b")), "a topic name is"),
        (lambda: image(A, A), "twice"),
        (lambda: image(A, partition=tp("other")), "another"),
        (lambda: plan_of([source([]), source([])], image()), "twice"),
        (lambda: plan_of([], image(A), evidence=TWO_WRITERS), "contradicts"),
    ],
)
def test_inputs_when_they_contradict_are_refused(make: Callable[[], object], text: str) -> None:
    """Gaps between segments, epochs that do not rise and invalid names are refused."""
    with pytest.raises(InvalidArgument, match=text):
        make()


def test_digest_of_metadata_when_said_in_another_order_then_is_the_same() -> None:
    """The digest of metadata does not depend on order and changes with every field."""
    digest = image(A, B, watermarks=[(0, 9), (1, 3)]).digest
    assert image(B, A, watermarks=[(1, 3), (0, 9)]).digest == digest
    assert image(A, B, watermarks=[(0, 9)]).digest != digest
    assert image(replace(A, event_timestamp_ms=3), B).digest != image(A, B).digest


@pytest.mark.parametrize(
    ("known", "watermarks", "gaps"),
    [
        pytest.param([], [], [(0, 50, False)], id="first archive"),
        pytest.param([(0, 20)], [], [(20, 50, True)], id="lost since"),
        pytest.param([(10, 20), (30, 40)], [], [(0, 10, False), (20, 30, True), (40, 50, True)],
                     id="lost twice"),
        pytest.param([], [(0, 29)], [(0, 30, False), (30, 50, True)], id="tier has expired"),
        pytest.param([(0, 20), (10, 50)], [], [], id="none"),
        pytest.param([(0, 20), (20, 70)], [], [], id="reaches into the source"),
    ],
)  # fmt: skip
def test_gap_when_the_source_begins_above_the_tier_then_is_named(
    known: list[tuple[int, int]], watermarks: list[tuple[int, int]], gaps: list[Any]
) -> None:
    """The plan names records that were deleted before their copy and copies the rest."""
    finished = [copied(f"{start}", start, stop, FINISHED) for start, stop in known]
    plan = planned(cut(50, 60, 80), *finished, watermarks=watermarks)
    assert [(one.first_offset, one.next_offset, one.is_lost) for one in plan.gaps] == gaps
    assert plan.copies[-1].last_offset == 79


def test_details_when_taken_from_inspections_then_make_a_plan_of_real_segments() -> None:
    """A plan of real inspections holds the metadata's values, and counts all parts."""
    reports = inspect_all(example_partition())
    segments = [
        replace(segment(*one.segment), size_bytes=one.size_bytes, details=details_of(one))
        for one in reports
    ]
    plan = planned(segments, history=reports[-1].after.epochs)
    assert len(plan.copies) == len(reports)
    for copy, report in zip(plan.copies, reports, strict=True):
        assert copy.epochs == report.epochs
        assert copy.txn_index_empty == report.txn_index_empty
        assert copy.size_bytes == report.size_bytes
        assert copy.indexes_bytes > 0


@pytest.mark.parametrize("mode", CopyMode)
@pytest.mark.parametrize("is_wanted", [False, True])
def test_compacted_topic_is_copied_on_request_only(mode: CopyMode, is_wanted: bool) -> None:
    """A compacted topic is copied only on request, as brokers tier no such topic."""
    kept = source(cut(0, 10, 20), is_tiered=mode is CopyMode.ADOPT, log_start=0)
    rule = rules(mode, filters=SegmentSelection(with_compacted=is_wanted))
    (found,) = plan_of([replace(kept, is_compacted=True)], rule=rule).partitions
    reasons_of = {run.reason: run.detail for run in found.left_out}
    if is_wanted and mode is CopyMode.ARCHIVE:
        assert found.copies
        assert NotCopiedReason.COMPACTED not in reasons_of
    else:
        assert not found.copies
        assert "cleanup.policy has compact" in reasons_of[NotCopiedReason.COMPACTED]


@pytest.mark.parametrize(("is_compacted", "copies"), [(True, [10]), (False, [0, 10])])
def test_segment_when_empty_and_compacted_is_skipped(is_compacted: bool, copies: list[int]) -> None:
    """An empty segment is skipped in a compacted topic, and a gap to look at otherwise."""
    first, second = cut(0, 10, 20)
    emptied = replace(source([replace(first, size_bytes=0), second]), is_compacted=is_compacted)
    rule = rules(filters=SegmentSelection(with_compacted=True))
    (found,) = plan_of([emptied], rule=rule).partitions
    assert [one.start_offset for one in found.copies] == copies
    assert (NotCopiedReason.EMPTY in [run.reason for run in found.left_out]) is is_compacted
