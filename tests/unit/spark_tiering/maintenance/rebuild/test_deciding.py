"""Objects against metadata, one user partition at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.findings.tier_findings import INCOMPLETE_SET
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.maintenance.rebuild.decision import (
    PartitionDifference,
    ReadableCover,
    RebuildFate,
    SegmentDecision,
    decide,
    differences,
    overlaps,
)
from spark_tiering.maintenance.rebuild.manifests import ReadSet
from tests.support.builders import tp
from tests.support.stores.segment_objects import whole_segment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.ids import SegmentId

ONE = whole_segment(1)


def read(segment: SegmentMetadata, modified_ms: int = 0) -> ReadSet:
    return ReadSet(segment.id, segment.start_offset, modified_ms, segment)


def decided(
    *found: ReadSet,
    present: tuple[SegmentMetadata, ...] = (),
    past: Mapping[SegmentId, SegmentState] | None = None,
    **said: Any,
) -> list[SegmentDecision]:
    known = {one.id: one for one in present}
    return decide(tp(), found, known, past or {}, **said).decided


@pytest.mark.parametrize(
    ("present", "fate"),
    [
        pytest.param((), RebuildFate.MISSING, id="nothing known"),
        pytest.param((ONE,), RebuildFate.EQUAL, id="the same"),
        pytest.param(
            (replace(ONE, event_timestamp_ms=9, broker_id=7),), RebuildFate.EQUAL, id="finisher"
        ),
        pytest.param((replace(ONE, txn_index_empty=False),), RebuildFate.EQUAL, id="nobody said"),
        pytest.param((replace(ONE, size_bytes=41),), RebuildFate.DIFFERENT, id="size"),
        pytest.param((replace(ONE, custom_metadata=b"\0"),), RebuildFate.DIFFERENT, id="custom"),
        pytest.param(
            (replace(ONE, state=SegmentState.COPY_SEGMENT_STARTED),),
            RebuildFate.OPEN,
            id="open copy",
        ),
        pytest.param(
            (replace(ONE, state=SegmentState.DELETE_SEGMENT_STARTED),),
            RebuildFate.DELETED,
            id="deletion",
        ),
    ],
)
def test_decide_when_a_set_is_whole_then_the_metadata_says_what_it_is(
    present: tuple[SegmentMetadata, ...], fate: RebuildFate
) -> None:
    """The metadata decides what a whole set is; broker, event time and flag do not count."""
    assert [one.fate for one in decided(read(ONE), present=present)] == [fate]


def test_decide_when_its_deletion_is_known_from_elsewhere_then_it_stays_deleted() -> None:
    """A deletion from any history stays: readers would find expired records otherwise."""
    for state in (SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED):
        (found,) = decided(read(ONE), past={ONE.id: state})
        assert (found.fate, found.detail) == (RebuildFate.DELETED, state.name)
    (found,) = decided(read(ONE), deletion="DELETE_PARTITION_MARKED")
    assert found.fate is RebuildFate.DELETED
    assert "all of the partition: DELETE_PARTITION_MARKED" in found.detail
    (found,) = decided(read(ONE), past={ONE.id: SegmentState.COPY_SEGMENT_FINISHED})
    assert found.fate is RebuildFate.MISSING


def test_decide_when_a_set_is_not_whole_then_nothing_is_invented() -> None:
    """An incomplete set keeps its error code, and a known deletion comes first."""
    broken = ReadSet(ONE.id, 0, 0, None, INCOMPLETE_SET.code, "log without a manifest")
    (found,) = decided(broken)
    assert (found.fate, found.code) == (RebuildFate.BROKEN, INCOMPLETE_SET.code)
    (found,) = decided(broken, past={ONE.id: SegmentState.DELETE_SEGMENT_STARTED})
    assert found.fate is RebuildFate.DELETED


def test_decide_when_the_store_has_no_objects_then_the_segment_is_lost() -> None:
    """A segment without objects is lost, unless its copy is open or its deletion began."""
    assert [one.fate for one in decided(present=(ONE,))] == [RebuildFate.LOST]
    for state in (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED):
        assert decided(present=(replace(ONE, state=state),)) == []


def test_decide_when_another_segment_holds_its_offsets_then_it_is_not_brought_back() -> None:
    """A segment within a present one is not restored: its late finish would cut that one."""
    inner = whole_segment(2, 10, 60)
    found = decided(read(inner), read(ONE), present=(ONE,))
    assert {one.segment_id: one.fate for one in found} == {
        ONE.id: RebuildFate.EQUAL,
        inner.id: RebuildFate.SUPERSEDED,
    }
    being_deleted = replace(ONE, state=SegmentState.DELETE_SEGMENT_STARTED)
    assert [one.fate for one in decided(read(inner), present=(being_deleted,))] == [
        RebuildFate.MISSING
    ]
    longer = whole_segment(3, 50, 150)
    assert decided(read(longer), present=(ONE,))[0].fate is RebuildFate.MISSING


def test_decide_when_the_cluster_has_no_such_topic_then_it_is_named() -> None:
    """A topic that the cluster lacks is named, as its deletion may have stopped half-way."""
    (found,) = decided(read(ONE), is_topic_known=False)
    assert found.fate is RebuildFate.UNKNOWN
    (found,) = decided(read(ONE), present=(ONE,), is_topic_known=False)
    assert found.fate is RebuildFate.EQUAL


def test_decide_when_several_are_missing_then_their_events_have_the_order_of_their_times() -> None:
    """Missing segments are ordered by event time: look-ups find the last one begun."""
    older, newer = (
        whole_segment("older", event_timestamp_ms=5),
        whole_segment("newer", event_timestamp_ms=6),
    )
    found = decide(tp(), [read(newer), read(ONE), read(older)], {}, {})
    assert [one.event_timestamp_ms for one in found.missing] == [0, 5, 6]


def test_differences_when_fields_differ_then_each_is_named_with_both_values() -> None:
    """Each differing field is named with both values."""
    known = replace(ONE, last_offset=98, epochs=((1, 0),), max_timestamp_ms=7, txn_index_empty=True)
    said = differences(replace(ONE, txn_index_empty=False), known)
    assert [one.split()[0] for one in said] == ["last_offset", "epochs", "max_timestamp_ms", "a"]
    assert "99, the metadata has 98" in said[0]


def test_covers_when_several_reach_far_then_any_that_has_all_is_enough() -> None:
    """Any single segment that has the whole range covers it, and two halves do not."""
    first, second = whole_segment(1, 0, 49), whole_segment(2, 50, 120)
    both = ReadableCover([second, first])
    assert both.holder(whole_segment(3, 10, 90)) is None
    assert both.holder(whole_segment(3, 60, 120)) == second
    assert ReadableCover([]).holder(first) is None
    wide = whole_segment(4, 5, 200)
    assert ReadableCover([first, wide, second]).holder(whole_segment(3, 60, 120)) == wide


def test_overlaps_when_segments_hold_the_same_offsets_then_neighbours_are_told() -> None:
    """Overlapping neighbours are reported, with a doubt by the times of their manifests."""
    events = [
        SegmentDecision(RebuildFate.MISSING, one.id, one.start_offset, one, modified_ms=modified_ms)
        for one, modified_ms in (
            (whole_segment("a", 0, 99), 50),
            (whole_segment("b", 0, 99), 40),
            (whole_segment("c", 100, 199), 0),
            (whole_segment("d", 120, 150), 0),
            (whole_segment("e", 160, 170), 0),
        )
    ]
    found = overlaps(PartitionDifference(tp(), events))
    named = [(one.first.segment, one.second.segment) for one in found]
    assert named == [
        (events[0].segment, events[1].segment),
        (events[2].segment, events[3].segment),
        (events[2].segment, events[4].segment),
    ]
    assert [one.is_order_doubtful for one in found] == [True, False, False]
