"""Objects against metadata, one user partition at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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

ONE = whole_segment(1)


def read(segment: SegmentMetadata, modified_ms: int = 0) -> ReadSet:
    return ReadSet(segment.id, segment.start_offset, modified_ms, segment)


CS, CF, DS, DF = SegmentState
FATE = RebuildFate
BROKEN = ReadSet(ONE.id, 0, 0, None, INCOMPLETE_SET.code, "log without a manifest")
INNER, LONGER = whole_segment(2, 10, 60), whole_segment(3, 50, 150)
MARKED = "DELETE_PARTITION_MARKED"
CASES: dict[str, tuple[list[ReadSet], list[SegmentMetadata], dict[str, Any], list[RebuildFate]]] = {
    "nothing known": ([read(ONE)], [], {}, [FATE.MISSING]),
    "the same": ([read(ONE)], [ONE], {}, [FATE.EQUAL]),
    "finisher": ([read(ONE)], [replace(ONE, event_timestamp_ms=9, broker_id=7)], {}, [FATE.EQUAL]),
    "no flag": ([read(ONE)], [replace(ONE, txn_index_empty=False)], {}, [FATE.EQUAL]),
    "size": ([read(ONE)], [replace(ONE, size_bytes=41)], {}, [FATE.DIFFERENT]),
    "custom": ([read(ONE)], [replace(ONE, custom_metadata=b"\0")], {}, [FATE.DIFFERENT]),
    "open copy": ([read(ONE)], [replace(ONE, state=CS)], {}, [FATE.OPEN]),
    "deletion": ([read(ONE)], [replace(ONE, state=DS)], {}, [FATE.DELETED]),
    # Readers would find expired records otherwise.
    "begun in the past": ([read(ONE)], [], {"past": {ONE.id: DS}}, [FATE.DELETED]),
    "ended in the past": ([read(ONE)], [], {"past": {ONE.id: DF}}, [FATE.DELETED]),
    "only copied in the past": ([read(ONE)], [], {"past": {ONE.id: CF}}, [FATE.MISSING]),
    "deleted partition": ([read(ONE)], [], {"deletion": MARKED}, [FATE.DELETED]),
    "broken": ([BROKEN], [], {}, [FATE.BROKEN]),
    "broken and deleted": ([BROKEN], [], {"past": {ONE.id: DS}}, [FATE.DELETED]),
    "no objects": ([], [ONE], {}, [FATE.LOST]),
    "no objects of an open copy": ([], [replace(ONE, state=CS)], {}, []),
    "no objects of a deletion": ([], [replace(ONE, state=DS)], {}, []),
    # Its late finish would displace or cut the present one.
    "within a present one": ([read(INNER)], [ONE], {}, [FATE.LOST, FATE.SUPERSEDED]),
    "within one being deleted": ([read(INNER)], [replace(ONE, state=DS)], {}, [FATE.MISSING]),
    "beyond a present one": ([read(LONGER)], [ONE], {}, [FATE.MISSING, FATE.LOST]),
    "unknown topic": ([read(ONE)], [], {"is_topic_known": False}, [FATE.UNKNOWN]),
    "known of an unknown topic": ([read(ONE)], [ONE], {"is_topic_known": False}, [FATE.EQUAL]),
}


@pytest.mark.parametrize(("found", "present", "said", "fates"), CASES.values(), ids=CASES)
def test_decide_when_a_set_is_listed_then_metadata_and_history_say_what_it_is(
    found: list[ReadSet],
    present: list[SegmentMetadata],
    said: dict[str, Any],
    fates: list[RebuildFate],
) -> None:
    """Metadata and any history decide what a set is; broker, event time and flag do not count."""
    known = {one.id: one for one in present}
    decided = decide(tp(), found, known, **({"past": {}} | said)).decided
    assert [one.fate for one in decided] == fates


def test_decide_when_a_set_is_not_brought_back_then_says_why() -> None:
    """A decision names the deletion that it goes by, or the code of an incomplete set."""
    for state in (DS, DF):
        (found,) = decide(tp(), [read(ONE)], {}, {ONE.id: state}).decided
        assert found.detail == state.name
    (found,) = decide(tp(), [read(ONE)], {}, {}, MARKED).decided
    assert f"all of the partition: {MARKED}" in found.detail
    (found,) = decide(tp(), [BROKEN], {}, {}).decided
    assert found.code == INCOMPLETE_SET.code


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
