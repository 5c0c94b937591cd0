"""Reads cut by pushed filters and index entries, and joined into shares."""

from __future__ import annotations

import pickle
import struct
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from spark_tiering.data_source.index_places import IndexPosition, OffsetPlaces, TimePlaces, fits
from spark_tiering.data_source.piece_reading import PieceReading
from spark_tiering.data_source.pushed_filters import EVERYTHING, PushedFilters, prune
from spark_tiering.data_source.segment_opening import SegmentStorage
from spark_tiering.data_source.source import TaskShare
from spark_tiering.data_source.task_splits import REQUEST_BYTES, SplitLimits, shares
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.datasource.extents import extent

if TYPE_CHECKING:
    from spark_tiering.data_source.extents import ReadExtent


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
def test_times_when_filtered_then_keep_all_matches(one: Any, times_ms: tuple[int, int]) -> None:
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


LOG_BYTES = 1_000


def offsets(*entries: tuple[int, int], base: int = 500) -> OffsetPlaces:
    content = b"".join(struct.pack(">ii", offset - base, at) for offset, at in entries)
    return OffsetPlaces.read(content, base, LOG_BYTES)


def times(*entries: tuple[int, int], base: int = 500) -> TimePlaces:
    content = b"".join(struct.pack(">qi", at_ms, offset - base) for at_ms, offset in entries)
    return TimePlaces.read(content, base)


INDEX = offsets((519, 200), (539, 400), (559, 600), (579, 800))


@pytest.mark.parametrize(
    ("offset", "place"),
    [
        (500, IndexPosition(0, 500)),
        (518, IndexPosition(0, 500)),
        (519, IndexPosition(200, 519)),
        (538, IndexPosition(200, 519)),
        (579, IndexPosition(800, 579)),
        (900, IndexPosition(800, 579)),
    ],
)
def test_start_when_looked_up_is_at_or_below_the_offset(offset: int, place: IndexPosition) -> None:
    """A read begins at the last entry at or below its offset, or the start of the log."""
    assert INDEX.start_of(offset) == place


@pytest.mark.parametrize(
    ("last", "stop"), [(500, 400), (519, 600), (540, 800), (559, LOG_BYTES), (999, LOG_BYTES)]
)
def test_stop_when_an_offset_is_the_last_then_the_next_entry_is_in(last: int, stop: int) -> None:
    """A read includes the batch at the entry behind its last offset."""
    assert INDEX.likely_stop(last) == stop


def test_slices_when_a_range_is_cut_then_they_meet_at_entries_and_cover_it() -> None:
    """Slices begin and end at index entries and cover the range without a gap."""
    for count in (1, 2, 3, 4, 9):
        slices = [INDEX.slice_of(500, 999, number, count) for number in range(count)]
        assert slices[0].start == IndexPosition(0, 500)
        assert slices[-1].stop == LOG_BYTES
        assert [one.is_last for one in slices] == [False] * (count - 1) + [True]
        for one, following in pairwise(slices):
            assert one.stop == following.start.position
        inner = {one.start.position for one in slices[1:]}
        assert inner <= {200, 400, 600, 800, LOG_BYTES}


def test_slices_when_there_are_no_entries_then_the_first_has_everything() -> None:
    """Without index entries the first slice holds the whole segment."""
    empty = offsets()
    slices = [empty.slice_of(500, 999, number, 3) for number in range(3)]
    assert [(one.start.position, one.stop) for one in slices] == [(0, 1000), *[(1000, 1000)] * 2]
    assert [one.is_empty for one in slices] == [False, True, True]


@pytest.mark.parametrize(
    "entry", [(518, 400), (539, 200), (539, 100), (499, 400), (0, 0), (539, 1_000), (539, 5_000)]
)
def test_offset_index_when_entries_fall_or_lie_outside_then_it_ends(entry: tuple[int, int]) -> None:
    """An offset index ends before its first entry that falls or lies outside the log."""
    assert offsets((519, 200), entry).positions.tolist() == [200]


def test_offset_index_when_it_is_torn_or_zero_then_whole_entries_count() -> None:
    """The whole entries before a torn or zero part of an offset index count."""
    torn = struct.pack(">ii", 19, 200) + b"\0\0\0"
    assert OffsetPlaces.read(torn, 500, LOG_BYTES).positions.tolist() == [200]
    assert OffsetPlaces.read(bytes(80), 500, LOG_BYTES).positions.tolist() == []


def test_time_index_when_looked_up_then_bounds_are_safe_and_falling_entries_end_it() -> None:
    """Before a start by time all is older, at an end a later record lies, if there is any."""
    index = times((1_000, 519), (2_000, 539), (3_000, 539))
    firsts = [index.first_offset(time_ms) for time_ms in (900, 1_000, 1_001, 9_000)]
    assert firsts == [None, None, 520, 540]
    lasts = [index.last_offset(time_ms) for time_ms in (999, 1_000, 2_000, 3_000)]
    assert lasts == [519, 539, 539, None]
    for falling in ((1_000, 539), (2_000, 510)):
        assert times((1_000, 519), falling).times_ms.tolist() == [1_000]


def test_fits_when_a_batch_begins_above_what_an_index_says_then_it_does_not() -> None:
    """A batch above an index entry's offset does not fit, except at the start of a log."""
    place = IndexPosition(200, 519)
    batches = [struct.pack(">q", offset) for offset in (510, 519, 520, -1)]
    assert [fits(place, batch) for batch in batches] == [True, True, False, False]
    assert fits(IndexPosition(0, 500), struct.pack(">q", 700))


MIB = 1024 * 1024


SMALL = [extent(n * 10, n * 10 + 10, log_bytes=MIB) for n in range(5)]
LARGE = extent(0, 1000, log_bytes=10 * MIB)
PART = extent(0, 100, segment=(0, 1000), log_bytes=10 * MIB)
SHARES = {
    "neighbours joined": (
        SMALL,
        SplitLimits(3 * (MIB + REQUEST_BYTES)),
        [[(0, 10, 0, 1), (10, 20, 0, 1), (20, 30, 0, 1)], [(30, 40, 0, 1), (40, 50, 0, 1)]],
    ),
    "a large one in slices": (
        [LARGE], SplitLimits(4 * MIB), [[(0, 1000, 0, 3)], [(0, 1000, 1, 3)], [(0, 1000, 2, 3)]],
    ),
    "a little of a large one": ([PART], SplitLimits(4 * MIB), [[(0, 100, 0, 1)]]),
    "records limited": (
        [extent(0, 10), extent(10, 12)],
        SplitLimits(MIB * 100, records_max=4),
        [[(0, 3, 0, 1)], [(3, 6, 0, 1)], [(6, 10, 0, 1)], [(10, 12, 0, 1)]],
    ),
    "nothing": ([], SplitLimits(MIB, least=4), []),
}  # fmt: skip


@pytest.mark.parametrize(("extents", "limits", "expected"), SHARES.values(), ids=SHARES)
def test_shares_when_limits_are_given_then_extents_are_cut_or_joined_in_order(
    extents: list[ReadExtent], limits: SplitLimits, expected: list[list[tuple[int, int, int, int]]]
) -> None:
    """Large segments are cut evenly, small neighbours joined, and only wanted offsets count."""
    assert [
        [(one.extent.first_offset, one.extent.next_offset, one.number, one.count) for one in share]
        for share in shares(extents, limits)
    ] == expected


@pytest.mark.parametrize("least", [1, 2, 7, 40])
def test_shares_when_a_number_is_asked_for_then_there_are_as_many_at_least(least: int) -> None:
    """There are at least as many shares as requested, however large a share may be."""
    extents = [extent(n * 100, n * 100 + 100, log_bytes=10_000) for n in range(3)]
    assert len(shares(extents, SplitLimits(MIB, least=least))) >= least


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 50_000)), min_size=1, max_size=8),
    st.integers(1, 60_000),
    st.one_of(st.none(), st.integers(1, 400)),
    st.one_of(st.none(), st.integers(1, 50)),
)
def test_shares_when_cut_in_any_way_then_each_offset_and_slice_is_there_once(
    sizes: list[tuple[int, int]], bytes_max: int, records_max: int | None, least: int | None
) -> None:
    """Each offset and slice lies in exactly one share, for any cut."""
    extents: list[ReadExtent] = []
    at = 0
    for offsets, log_bytes in sizes:
        extents.append(extent(at, at + offsets, log_bytes=log_bytes))
        at += offsets
    found = shares(extents, SplitLimits(bytes_max, records_max, least))
    slices: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for share in found:
        assert share
        for piece in share:
            part = (piece.extent.first_offset, piece.extent.next_offset)
            slices.setdefault(part, []).append((piece.number, piece.count))
            if records_max is not None:
                assert piece.extent.offsets <= records_max
    parts = list(slices)
    assert [first for first, _ in parts] == [0, *(behind for _, behind in parts[:-1])]
    assert parts[-1][1] == at
    for numbered in slices.values():
        assert numbered == [(number, len(numbered)) for number in range(len(numbered))]


def test_share_when_pickled_is_small_without_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share pickles to few bytes of places and numbers, without a secret."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access-hunter2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-hunter2")
    small = [extent(n * 10, n * 10 + 10, log_bytes=MIB) for n in range(100)]
    (pieces,) = shares(small, SplitLimits(1024 * MIB))
    store = S3Settings("bucket", endpoint="http://host", profile="p")
    reading = PieceReading(SegmentStorage(store, "/ring.json"), ("key", "value"), 4 * MIB)
    sent = pickle.dumps(TaskShare(pieces, reading))
    assert b"hunter2" not in sent
    assert len(sent) < 400 * len(pieces)
    back = pickle.loads(sent)
    assert (back.pieces, back.reading) == (pieces, reading)
