"""Covering: the extents of a query in a partition, and lost offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import DataLost
from spark_tiering.data_source.bounds import EARLIEST, LATEST, NoOffset, PartitionBound
from spark_tiering.data_source.extents import MissingOffsets
from spark_tiering.data_source.query_coverage import (
    EXPIRED,
    NOT_THERE_YET,
    OffsetRange,
    cover,
    offset_of_end,
    offset_of_start,
    require_nothing_lost,
    without,
)
from tests.support.datasource.extents import extent, held

if TYPE_CHECKING:
    from spark_tiering.data_source.extents import PartitionListing

PARTITION = held(extent(100, 200), extent(200, 300), extent(350, 400))


def never(_: PartitionListing, __: int) -> int | None:
    return None


GAP = "no segment of the tier has them"
COVERS = {
    "within": ((150, 250), [(150, 200), (200, 250)], []),
    "empty": ((150, 150), [], []),
    "empty at the begin": ((100, 100), [], []),
    "empty at the end": ((400, 400), [], []),
    "over a gap": ((250, 360), [(250, 300), (350, 360)], [(300, 350, GAP)]),
    "in a gap": ((320, 330), [], [(320, 330, GAP)]),
    "beyond both ends": (
        (50, 420),
        [(100, 200), (200, 300), (350, 400)],
        [(50, 100, EXPIRED), (300, 350, GAP), (400, 420, NOT_THERE_YET)],
    ),
    "behind everything": ((500, 400), [], [(400, 500, NOT_THERE_YET)]),
    "expired": ((10, 20), [], [(10, 20, EXPIRED)]),
}


@pytest.mark.parametrize(("asked", "extents", "lost"), COVERS.values(), ids=COVERS)
def test_cover_when_a_range_is_asked_for_then_extents_are_cut_and_each_loss_has_its_reason(
    asked: tuple[int, int], extents: list[tuple[int, int]], lost: list[tuple[int, int, str]]
) -> None:
    """Extents are cut to the range, and each lost part of it, no more, has its reason."""
    found = cover(OffsetRange(PARTITION, *asked), PARTITION.next_offset)
    assert [(one.first_offset, one.next_offset) for one in found.extents] == extents
    assert [(one.first_offset, one.next_offset, one.why) for one in found.lost] == lost


def test_without_when_something_in_the_middle_is_lost_as_well_then_both_sides_are_read() -> None:
    """Both sides of a lost part in the middle are read."""
    found = cover(OffsetRange(PARTITION, 100, 360), PARTITION.next_offset)
    left = without(found, [MissingOffsets(150, 160, "a"), MissingOffsets(190, 210, "b")])
    read = [(one.first_offset, one.next_offset) for one in left.extents]
    assert read == [(100, 150), (160, 190), (210, 300), (350, 360)]
    assert [one.first_offset for one in left.lost] == [150, 190, 300]


def test_require_nothing_lost_when_something_is_then_offsets_and_reason_are_named() -> None:
    """The error about lost offsets names offsets, reason and remedy."""
    with pytest.raises(DataLost) as lost:
        require_nothing_lost([cover(OffsetRange(PARTITION, 90, 310), 400)])
    told = str(lost.value)
    assert f"orders-0: no offsets 90 to 99: {EXPIRED}" in told
    assert "orders-0: no offsets 300 to 309" in told
    assert "failOnDataLoss=false" in told
    require_nothing_lost([cover(OffsetRange(PARTITION, 100, 300), 400)])


def test_require_nothing_lost_when_there_are_many_then_some_are_named_and_all_counted() -> None:
    """The error about many lost ranges names the first ones and counts all."""
    many = held(*(extent(10 * number, 10 * number + 5) for number in range(9)))
    with pytest.raises(DataLost, match="and 3 more ranges"):
        require_nothing_lost([cover(OffsetRange(many, 0, 85), 85)])


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        (PartitionBound(EARLIEST), 100, 100),
        (PartitionBound(LATEST), 380, 380),
        (PartitionBound(None), 380, 380),
        (PartitionBound(123), 123, 123),
        (PartitionBound(999), 999, 999),
    ],
)
def test_offsets_when_at_an_edge_are_the_ends(asked: PartitionBound, start: int, end: int) -> None:
    """The bounds earliest and latest are the ends of what can be read."""
    assert offset_of_start(PARTITION, 380, asked, never) == start
    assert offset_of_end(PARTITION, 380, asked, never) == end


def test_offsets_when_a_time_has_a_record_then_it_is_that_ones() -> None:
    """A time bound means the offset of its record, up to the end that can be read."""
    asked = PartitionBound(None, 5_000)
    assert offset_of_start(PARTITION, 380, asked, lambda _, __: 222) == 222
    assert offset_of_end(PARTITION, 380, asked, lambda _, __: 399) == 380


def test_offsets_when_no_record_is_as_late_then_a_start_fails_unless_told_otherwise() -> None:
    """A start time later than every record fails by default; an end time is the latest offset."""
    assert offset_of_end(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.ERROR), never) == 380
    assert (
        offset_of_start(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.LATEST), never) == 380
    )
    with pytest.raises(DataLost, match="no record is as late as 5000 ms"):
        offset_of_start(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.ERROR), never)
