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
