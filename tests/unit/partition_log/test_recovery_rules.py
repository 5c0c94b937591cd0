"""The decisions about damage at the opening of a log."""

from __future__ import annotations

import pytest

from rlmm.partition_log.recovery_rules import (
    LogCut,
    PartitionOffline,
    first_to_scan,
    judge_damage,
    judge_end,
    judge_gap,
    judge_holes,
    recovery_point_of,
)
from rlmm.partition_log.scan import OffsetGap


def test_recovery_point_when_not_noted_then_only_the_last_segment_is_doubted() -> None:
    """Segments are synced when they are closed, so a lost note does not put them in doubt."""
    assert recovery_point_of(7, [0, 10]) == 7
    assert recovery_point_of(None, [0, 10]) == 10
    assert recovery_point_of(None, []) == 0


@pytest.mark.parametrize(
    ("recovery_point", "expected"), [(0, 0), (9, 0), (10, 1), (25, 2), (99, 2)]
)
def test_scan_when_begun_then_starts_in_the_segment_of_the_recovery_point(
    recovery_point: int, expected: int
) -> None:
    """The scan starts in the segment of the recovery point, because earlier ones are synced."""
    assert first_to_scan([0, 10, 20], recovery_point) == expected


def test_damage_when_below_the_recovery_point_then_is_never_cut() -> None:
    """A torn tail was never acknowledged; damage of synced bytes takes the partition offline."""
    assert judge_damage("crc-mismatch", 10, 10) == LogCut()
    verdict = judge_damage("crc-mismatch", 9, 10)
    assert isinstance(verdict, PartitionOffline)
    assert "crc-mismatch" in verdict.fault
    assert "offset 9" in verdict.fault


@pytest.mark.parametrize(
    ("next_offset", "behind", "recovery_point", "expected"),
    [
        pytest.param(10, 10, 0, None, id="adjoining"),
        pytest.param(8, 10, 10, None, id="compaction"),
        pytest.param(8, 10, 8, LogCut, id="not-written-out"),
        pytest.param(12, 10, 0, PartitionOffline, id="overlapping"),
    ],
)
def test_gap_between_segments_when_found_then_is_judged_by_the_recovery_point(
    next_offset: int, behind: int, recovery_point: int, expected: type | None
) -> None:
    """A gap is compaction's below the recovery point, and a lost end above it."""
    verdict = judge_gap(next_offset, behind, recovery_point)
    assert verdict is None if expected is None else isinstance(verdict, expected)


def test_end_when_earlier_than_synced_then_is_a_fault() -> None:
    """A log that lost its synced end is not served as if it were whole."""
    assert judge_end(0, 10, 10) is None
    assert isinstance(judge_end(0, 9, 10), PartitionOffline)
    assert isinstance(judge_end(12, 11, 5), PartitionOffline)


@pytest.mark.parametrize(
    ("hole", "is_doubtful"),
    [
        pytest.param((0, 3, 7), False, id="below"),
        pytest.param((0, 3, 8), False, id="up-to-it"),
        pytest.param((0, 3, 9), True, id="across"),
        pytest.param((0, 8, 9), True, id="behind"),
    ],
)
def test_hole_when_it_reaches_behind_the_recovery_point_then_is_neither_cut_nor_believed(
    hole: tuple[int, int, int], is_doubtful: bool
) -> None:
    """A gap behind the recovery point is neither cut nor believed: no CRC covers offsets."""
    assert isinstance(judge_holes([OffsetGap(*hole)], 8), PartitionOffline) == is_doubtful
