"""How far copies are behind, and when disks are full: counted by hand."""

from __future__ import annotations

import pytest

from rlmm.inspection.cluster_facts import LogDir, PartitionOffsets
from rlmm.inspection.lag import disks, lag_of, local_sizes
from rlmm.metadata.segment import SegmentState
from tests.support.builders import started, tp

CF = SegmentState.COPY_SEGMENT_FINISHED
ENDS = PartitionOffsets(
    earliest=0, earliest_local=150, latest=400, last_stable=390, latest_tiered=199
)
WINDOW = (1_000, 11_000)
SEGMENTS = [
    started("a", 0, 99, size_bytes=700, max_timestamp_ms=1_000, state=CF),
    started("b", 100, 199, size_bytes=500, max_timestamp_ms=6_000, state=CF),
    started("c", 200, 299, size_bytes=900, max_timestamp_ms=9_000),
]


def test_lag_is_what_is_stable_and_in_no_finished_segment() -> None:
    """The lag counts stable records in no finished segment; the rate counts all."""
    lag = lag_of(tp(), SEGMENTS, ENDS, 1_000, WINDOW)
    assert lag.lag_offsets == 190
    assert (lag.tier_start, lag.tier_end, lag.open_copies) == (0, 199, 1)
    assert (lag.last_copied_ms, lag.rate_bytes_s) == (6_000, 130.0)
    assert lag.only_local_bytes == 800
    assert not lag.is_told_otherwise


@pytest.mark.parametrize(
    ("window", "local_bytes", "expected"),
    [
        ((1_000, 11_000), None, 50.0),
        # Nothing was copied in the window: what waits came evenly since the last that was.
        ((96_000, 106_000), 1_000, 8.0),
        ((0, 6_000), 1_000, (1_200 + 800) / 6),
    ],
)
def test_lag_when_copies_stand_still_then_what_waits_is_the_rate(
    window: tuple[int, int], local_bytes: int | None, expected: float
) -> None:
    """The rate counts waiting records even if copies stand still."""
    lag = lag_of(tp(), SEGMENTS, ENDS, local_bytes, window)
    assert lag.rate_bytes_s == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        # Nothing was produced since the last copy: an idle partition is not behind.
        (PartitionOffsets(earliest=0, latest=200, last_stable=200), 0),
        # One record more, and it is one.
        (PartitionOffsets(earliest=0, latest=201, last_stable=201), 1),
        # The log was cut behind the tier's end.
        (PartitionOffsets(earliest=0, latest=150, last_stable=150), 0),
        # The log begins behind it.
        (PartitionOffsets(earliest=250, latest=300, last_stable=300), 50),
        # Where transactions are not told the high watermark has to do.
        (PartitionOffsets(earliest=0, latest=230), 30),
        (PartitionOffsets(), None),
        (None, None),
    ],
)
def test_lag_of_idle_short_and_trimmed_partitions(
    ends: PartitionOffsets | None, expected: int | None
) -> None:
    """Single records and empty ends, where brokers' own figures have been wrong."""
    assert lag_of(tp(), SEGMENTS, ends, None, WINDOW).lag_offsets == expected


def test_lag_of_a_partition_without_a_copy_is_all_that_is_stable() -> None:
    """The lag counts from the log start up to the last stable offset."""
    lag = lag_of(tp(), [], PartitionOffsets(earliest=10, latest=50, last_stable=50), 7, WINDOW)
    assert (lag.lag_offsets, lag.tier_end, lag.last_copied_ms, lag.rate_bytes_s) == (
        40, None, None, 0.0
    )  # fmt: skip
    assert lag.only_local_bytes is None


@pytest.mark.parametrize(
    ("told", "differs"), [(199, False), (299, True), (-1, True), (None, False)]
)
def test_lag_when_the_leader_believes_in_another_end_then_says_so(
    told: int | None, differs: bool
) -> None:
    """The lag shows that the leader's tiered end differs from the metadata."""
    ends = PartitionOffsets(earliest=0, latest=400, latest_tiered=told)
    assert lag_of(tp(), SEGMENTS, ends, None, WINDOW).is_told_otherwise is differs


DIRS = [
    LogDir(1, "/a", 10_000, 1_000, {("orders", 7): 600, ("plain", 0): 50}),
    LogDir(2, "/b", None, None, {("orders", 7): 900}),
]


def test_disk_is_full_when_what_comes_in_has_used_up_what_is_free() -> None:
    """The time follows from all tiered partitions on the disk, else it is unknown."""
    one, two = disks(DIRS, {("orders", 7): 50.0})
    assert (one.tiered_bytes, one.rate_bytes_s, one.full_in_s) == (600, 50.0, 20.0)
    assert (two.usable_bytes, two.full_in_s) == (None, None)
    assert disks(DIRS, {})[0].full_in_s is None


def test_local_size_is_the_leaders_else_the_largest() -> None:
    """The local size is the leader's, or the largest replica's when the leader's is unknown."""
    key = ("orders", 7)
    assert local_sizes(DIRS, {key: 1})[key] == 600
    assert local_sizes(DIRS[::-1], {key: 1})[key] == 600
    assert local_sizes(DIRS, {})[key] == 900
