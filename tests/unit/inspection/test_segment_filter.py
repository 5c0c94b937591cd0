"""Which segments are meant, and in which order they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.inspection.moment import PartitionSummary
from rlmm.inspection.segment_search import ORDERS, STATES, SegmentFilter, SegmentTotals, sort_key
from rlmm.inspection.selectors import parse_topic_partitions
from rlmm.metadata.segment import SegmentState
from tests.support.builders import started, tp

SEGMENT = started(
    1, 0, 99, {4: 0, 5: 50}, broker_id=2, max_timestamp_ms=1_000, size_bytes=500,
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"states": frozenset({SegmentState.COPY_SEGMENT_STARTED})}, True),
        ({"states": frozenset({SegmentState.COPY_SEGMENT_FINISHED})}, False),
        ({"newest_from_ms": 1_000}, True),
        ({"newest_from_ms": 1_001}, False),
        ({"newest_to_ms": 1_000}, True),
        ({"newest_to_ms": 999}, False),
        ({"size_min": 500}, True),
        ({"size_min": 501}, False),
        ({"size_max": 500}, True),
        ({"size_max": 499}, False),
        ({"brokers": frozenset({1, 2})}, True),
        ({"brokers": frozenset({1})}, False),
        ({"epoch": 5}, True),
        ({"epoch": 6}, False),
        ({"has_custom_metadata": False}, True),
        ({"has_custom_metadata": True}, False),
    ],
)
def test_segment_when_a_condition_is_set_has_to_meet_it(
    condition: dict[str, Any], expected: bool
) -> None:
    """Each condition works alone on both sides of its inclusive bound."""
    assert SegmentFilter(**condition).allows(SEGMENT) is expected


def test_segment_when_it_does_not_say_its_time_meets_no_bound_of_time() -> None:
    """A segment with timestamp -1 meets no bound of time."""
    unknown = replace(SEGMENT, max_timestamp_ms=-1)
    assert SegmentFilter().allows(unknown)
    assert not SegmentFilter(newest_to_ms=5).allows(unknown)


def test_segment_with_custom_metadata_that_is_empty_has_some() -> None:
    """A segment with empty custom metadata counts as one that has some."""
    assert SegmentFilter(has_custom_metadata=True).allows(replace(SEGMENT, custom_metadata=b""))


def test_partition_when_it_cannot_hold_a_segment_that_is_meant_is_passed_over() -> None:
    """The filter excludes user partitions whose figures show no match."""
    summary = PartitionSummary(tp(), 0, started=1, finished=0, being_deleted=0, size_bytes=1)
    finished = frozenset({SegmentState.COPY_SEGMENT_FINISHED})
    assert SegmentFilter().may_hold(summary)
    assert not SegmentFilter(states=finished).may_hold(summary)
    assert not SegmentFilter(parse_topic_partitions("orders:1")).may_hold(summary)
    assert not SegmentFilter().may_hold(replace(summary, started=0))


@pytest.mark.parametrize(
    "ranges", [{"newest_from_ms": 2, "newest_to_ms": 1}, {"size_min": 2, "size_max": 1}]
)
def test_filter_when_a_range_is_empty_is_refused(ranges: dict[str, Any]) -> None:
    """The filter refuses a range whose end lies before its start."""
    with pytest.raises(InvalidArgument, match="between 2 and 1"):
        SegmentFilter(**ranges)


@pytest.mark.parametrize("order", ORDERS)
def test_order_when_named_sorts_by_what_it_says(order: str) -> None:
    """Every order is total, and a dash reverses it."""
    later = started(
        2, 100, 199, {6: 100}, broker_id=3, max_timestamp_ms=2_000, event_timestamp_ms=1,
        size_bytes=501, state=SegmentState.COPY_SEGMENT_FINISHED,
    )  # fmt: skip
    key, is_reversed = sort_key(order)
    first, second = sorted([later, SEGMENT], key=key, reverse=is_reversed)
    expected = (later, SEGMENT) if order.startswith("-") else (SEGMENT, later)
    assert (first, second) == expected


def test_totals_when_segments_are_added_count_by_state() -> None:
    """The totals name every possible state, also those without segments."""
    totals = SegmentTotals()
    totals.add(SEGMENT)
    totals.add(SEGMENT)
    assert (totals.segments, totals.size_bytes) == (2, 1_000)
    assert totals.by_state == {
        "COPY_SEGMENT_STARTED": 2, "COPY_SEGMENT_FINISHED": 0, "DELETE_SEGMENT_STARTED": 0,
    }  # fmt: skip
    assert len(STATES) == 3
