"""Pushed filters of Spark as bounds of a read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from rlmm.metadata.ids import INT64_MAX, INT64_MIN
from spark_tiering.data_source.pushed_filters import EVERYTHING, PushedFilters, prune
from tests.support.datasource.extents import extent

T = datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)
T_MS = 1_700_000_000_123


def pushed(*filters: Any) -> PushedFilters:
    found = EVERYTHING
    for one in filters:
        found = found.with_filter(one)
    return found


@pytest.mark.parametrize(
    ("filters", "first", "last"),
    [
        ([EqualTo(("offset",), 7)], 7, 7),
        ([EqualNullSafe(("offset",), 7)], 7, 7),
        ([In(("offset",), (9, 3, 5))], 3, 9),
        ([GreaterThanOrEqual(("offset",), 5), LessThanOrEqual(("offset",), 8)], 5, 8),
        ([GreaterThanOrEqual(("offset",), 5), GreaterThanOrEqual(("offset",), 6)], 6, INT64_MAX),
        ([EqualTo(("offset",), 7), LessThan(("offset",), 3)], 7, 3),
        ([EqualTo(("offset",), 7.5)], 0, INT64_MAX),
        ([EqualTo(("offset",), True)], 0, INT64_MAX),
        ([In(("offset",), (3, None))], 0, INT64_MAX),
        ([In(("offset",), ())], 0, INT64_MAX),
        ([Not(EqualTo(("offset",), 7))], 0, INT64_MAX),
        ([IsNotNull(("offset",))], 0, INT64_MAX),
        ([EqualTo(("offset", "x"), 7)], 0, INT64_MAX),
    ],
)
def test_offsets_when_filters_bound_them_then_nothing_that_matches_lies_outside(
    filters: list[Any], first: int, last: int
) -> None:
    """Pushed filters keep all matching offsets, and an unsupported filter bounds nothing."""
    found = pushed(*filters)
    assert (found.first_offset, found.last_offset) == (first, last)


@pytest.mark.parametrize(
    ("one", "matching"),
    [
        (GreaterThan(("offset",), 5), [6]),
        (LessThan(("offset",), 5), [4]),
    ],
)
def test_offsets_when_a_bound_is_exclusive_then_all_that_match_are_within(
    one: Any, matching: list[int]
) -> None:
    """An exclusive bound keeps every matching offset, and maybe one more for Spark to filter."""
    found = pushed(one)
    assert all(found.first_offset <= offset <= found.last_offset for offset in matching)
    assert found.last_offset - found.first_offset >= 4


@pytest.mark.parametrize(
    ("one", "first", "last"),
    [
        (GreaterThanOrEqual(("timestamp",), T), T_MS + 1, INT64_MAX),
        (GreaterThan(("timestamp",), T), T_MS, INT64_MAX),
        (LessThanOrEqual(("timestamp",), T), INT64_MIN, T_MS),
        (LessThan(("timestamp",), T), INT64_MIN, T_MS + 1),
        (EqualTo(("timestamp",), T.replace(microsecond=123_000)), T_MS, T_MS),
        (EqualTo(("timestamp",), "2023"), INT64_MIN, INT64_MAX),
    ],
)
def test_times_when_filters_have_microseconds_then_no_matching_millisecond_is_left_out(
    one: Any, first: int, last: int
) -> None:
    """A filter in microseconds is rounded so that all matching milliseconds stay."""
    found = pushed(one)
    assert (found.first_time_ms, found.last_time_ms) == (first, last)


def test_times_when_a_zone_is_another_one_then_the_moment_counts() -> None:
    """A filter with a time zone means its moment, and one without a zone means UTC."""
    there = T.astimezone(timezone(timedelta(hours=5)))
    assert pushed(LessThanOrEqual(("timestamp",), there)).last_time_ms == T_MS
    naive = T.replace(tzinfo=None)
    assert pushed(LessThanOrEqual(("timestamp",), naive)).last_time_ms == T_MS


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([EqualTo(("topic",), "a")], [("a", 0), ("a", 1)]),
        ([In(("topic",), ("a", "b", None)), EqualTo(("partition",), 0)], [("a", 0), ("b", 0)]),
        ([EqualTo(("topic",), "a"), EqualTo(("topic",), "b")], []),
        ([StringStartsWith(("topic",), "a")], [("a", 0), ("a", 1), ("b", 0)]),
        ([In(("partition",), (1,))], [("a", 1)]),
        ([EqualTo(("key",), b"k")], [("a", 0), ("a", 1), ("b", 0)]),
    ],
)
def test_partitions_when_filters_name_them_then_others_are_not_read(
    filters: list[Any], wanted: list[tuple[str, int]]
) -> None:
    """Filters of equality on topic and partition keep other partitions from being read."""
    every = [("a", 0), ("a", 1), ("b", 0)]
    assert [one for one in every if pushed(*filters).wants(*one)] == wanted


EXTENTS = (
    extent(0, 100, max_ms=1_000),
    extent(100, 200, max_ms=2_000),
    extent(200, 300, max_ms=1_500),
    extent(300, 400, max_ms=3_000),
    extent(400, 500),
)


def kept(given: PushedFilters, disorder_ms: int | None = None) -> list[int]:
    return [one.first_offset for one in prune(EXTENTS, given, disorder_ms)]


def test_prune_when_a_time_begins_then_segments_that_are_older_as_a_whole_are_left_out() -> None:
    """A start time prunes segments whose newest record is known and older."""
    assert kept(PushedFilters(first_time_ms=1_501)) == [100, 300, 400]
    assert kept(PushedFilters(first_time_ms=1_500)) == [100, 200, 300, 400]


def test_prune_when_a_time_ends_then_only_who_knows_the_disorder_may_stop() -> None:
    """An end time prunes only with a stated disorder: later records may be early again."""
    assert kept(PushedFilters(last_time_ms=1_200)) == [0, 100, 200, 300, 400]
    assert kept(PushedFilters(last_time_ms=1_200), 500) == [0, 100]
    assert kept(PushedFilters(last_time_ms=1_200), 800) == [0, 100, 200, 300]
    assert kept(PushedFilters(last_time_ms=1_200), 5_000) == [0, 100, 200, 300, 400]


def test_prune_when_offsets_are_bounded_then_extents_are_cut() -> None:
    """Pruned extents are cut to the offsets of the filter, both inclusive."""
    (cut,) = prune(EXTENTS, PushedFilters(first_offset=120, last_offset=130), None)
    assert (cut.first_offset, cut.last_offset) == (120, 130)


def test_prune_when_a_segment_has_more_than_is_read_of_it_then_its_times_end_nothing() -> None:
    """A partly read segment ends no read: its newest record may lie outside that part."""
    partly = (
        extent(0, 100, segment=(0, 150), history_behind=100, max_ms=9_000),
        extent(100, 200, max_ms=1_000),
    )
    assert len(prune(partly, PushedFilters(last_time_ms=1_000), 0)) == 2
