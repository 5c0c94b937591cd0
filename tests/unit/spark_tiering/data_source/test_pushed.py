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


OFFSET, TIMESTAMP = ("offset",), ("timestamp",)
ANY_OFFSET, ANY_TIME = (0, INT64_MAX), (INT64_MIN, INT64_MAX)


@pytest.mark.parametrize(
    ("filters", "offsets"),
    [
        ([EqualTo(OFFSET, 7)], (7, 7)),
        ([EqualNullSafe(OFFSET, 7)], (7, 7)),
        ([In(OFFSET, (9, 3, 5))], (3, 9)),
        ([GreaterThanOrEqual(OFFSET, 5), LessThanOrEqual(OFFSET, 8)], (5, 8)),
        ([GreaterThanOrEqual(OFFSET, 5), GreaterThanOrEqual(OFFSET, 6)], (6, INT64_MAX)),
        ([GreaterThan(OFFSET, 5)], (5, INT64_MAX)),
        ([LessThan(OFFSET, 5)], (0, 5)),
        ([EqualTo(OFFSET, 7), LessThan(OFFSET, 3)], (7, 3)),
        ([EqualTo(OFFSET, 7.5)], ANY_OFFSET),
        ([EqualTo(OFFSET, True)], ANY_OFFSET),
        ([In(OFFSET, (3, None))], ANY_OFFSET),
        ([In(OFFSET, ())], ANY_OFFSET),
        ([Not(EqualTo(OFFSET, 7))], ANY_OFFSET),
        ([IsNotNull(OFFSET)], ANY_OFFSET),
        ([EqualTo(("offset", "x"), 7)], ANY_OFFSET),
    ],
)
def test_offsets_when_filtered_keep_matches(filters: list[Any], offsets: tuple[int, int]) -> None:
    """Pushed filters keep all matching offsets, and an unsupported filter bounds nothing."""
    found = pushed(*filters)
    assert (found.first_offset, found.last_offset) == offsets


@pytest.mark.parametrize(
    ("one", "times_ms"),
    [
        (GreaterThanOrEqual(TIMESTAMP, T), (T_MS + 1, INT64_MAX)),
        (GreaterThan(TIMESTAMP, T), (T_MS, INT64_MAX)),
        (LessThanOrEqual(TIMESTAMP, T), (INT64_MIN, T_MS)),
        (LessThan(TIMESTAMP, T), (INT64_MIN, T_MS + 1)),
        (EqualTo(TIMESTAMP, T.replace(microsecond=123_000)), (T_MS, T_MS)),
        (EqualTo(TIMESTAMP, "2023"), ANY_TIME),
        (LessThanOrEqual(TIMESTAMP, T.astimezone(timezone(timedelta(hours=5)))), (INT64_MIN, T_MS)),
        (LessThanOrEqual(TIMESTAMP, T.replace(tzinfo=None)), (INT64_MIN, T_MS)),
    ],
)
def test_times_when_filters_have_microseconds_or_a_zone_then_no_matching_millisecond_is_left_out(
    one: Any, times_ms: tuple[int, int]
) -> None:
    """A filter means its moment, without a zone in UTC, rounded so that all matches stay."""
    found = pushed(one)
    assert (found.first_time_ms, found.last_time_ms) == times_ms


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
def test_partitions_when_named_are_read(filters: list[Any], wanted: list[tuple[str, int]]) -> None:
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


@pytest.mark.parametrize(
    ("bounds", "disorder_ms", "kept"),
    [
        (PushedFilters(first_time_ms=1_501), None, [100, 300, 400]),
        (PushedFilters(first_time_ms=1_500), None, [100, 200, 300, 400]),
        (PushedFilters(last_time_ms=1_200), None, [0, 100, 200, 300, 400]),
        (PushedFilters(last_time_ms=1_200), 500, [0, 100]),
        (PushedFilters(last_time_ms=1_200), 800, [0, 100, 200, 300]),
        (PushedFilters(last_time_ms=1_200), 5_000, [0, 100, 200, 300, 400]),
    ],
)
def test_prune_when_times_are_bounded_then_known_segments_outside_are_left_out(
    bounds: PushedFilters, disorder_ms: int | None, kept: list[int]
) -> None:
    """Known older segments are pruned; an end, as later records may be early, by disorder."""
    assert [one.first_offset for one in prune(EXTENTS, bounds, disorder_ms)] == kept


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
