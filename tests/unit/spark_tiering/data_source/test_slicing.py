"""Extents cut and joined into shares."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_tiering.data_source.piece_reading import PieceReading
from spark_tiering.data_source.segment_opening import SegmentStorage
from spark_tiering.data_source.source import TaskShare
from spark_tiering.data_source.task_splits import REQUEST_BYTES, SplitLimits, shares
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.datasource.extents import extent

if TYPE_CHECKING:
    from spark_tiering.data_source.extents import ReadExtent
    from spark_tiering.data_source.task_splits import SegmentPiece

MIB = 1024 * 1024


def shape(found: list[tuple[SegmentPiece, ...]]) -> list[list[tuple[int, int, int, int]]]:
    return [
        [(one.extent.first_offset, one.extent.next_offset, one.number, one.count) for one in share]
        for share in found
    ]


def test_shares_when_segments_are_small_then_neighbours_are_joined() -> None:
    """Small neighbouring segments form one share in order of offset."""
    small = [extent(n * 10, n * 10 + 10, log_bytes=MIB) for n in range(5)]
    found = shares(small, SplitLimits(3 * (MIB + REQUEST_BYTES)))
    assert [len(share) for share in found] == [3, 2]
    assert [piece.extent for share in found for piece in share] == small


def test_shares_when_a_segment_is_large_then_it_is_cut_into_slices() -> None:
    """A segment is cut into as many slices as keep each within the wanted size."""
    found = shares([extent(0, 1000, log_bytes=10 * MIB)], SplitLimits(4 * MIB))
    assert shape(found) == [[(0, 1000, n, 3)] for n in range(3)]


def test_shares_when_little_of_a_segment_is_wanted_then_only_that_counts() -> None:
    """A partly wanted segment counts in proportion to its wanted offsets."""
    part = extent(0, 100, segment=(0, 1000), log_bytes=10 * MIB)
    assert len(shares([part], SplitLimits(4 * MIB))) == 1


def test_shares_when_records_are_limited_then_offsets_are_cut_evenly() -> None:
    """Shares with a limit of records are even, never empty and within the limit."""
    found = shares([extent(0, 10), extent(10, 12)], SplitLimits(MIB * 100, records_max=4))
    assert shape(found) == [
        [(0, 3, 0, 1)],
        [(3, 6, 0, 1)],
        [(6, 10, 0, 1)],
        [(10, 12, 0, 1)],
    ]


@pytest.mark.parametrize("least", [1, 2, 7, 40])
def test_shares_when_a_number_is_asked_for_then_there_are_as_many_at_least(least: int) -> None:
    """There are at least as many shares as requested, however large a share may be."""
    extents = [extent(n * 100, n * 100 + 100, log_bytes=10_000) for n in range(3)]
    assert len(shares(extents, SplitLimits(MIB, least=least))) >= least


def test_shares_when_nothing_is_read_then_there_are_none() -> None:
    """Without extents there are no shares."""
    assert shares([], SplitLimits(MIB, least=4)) == []


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


def test_share_when_it_travels_then_it_is_small_and_has_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
