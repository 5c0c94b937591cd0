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


def covered(first: int, behind: int) -> tuple[list[tuple[int, int]], list[tuple[int, int, str]]]:
    found = cover(OffsetRange(PARTITION, first, behind), PARTITION.next_offset)
    return (
        [(one.first_offset, one.next_offset) for one in found.extents],
        [(one.first_offset, one.next_offset, one.why) for one in found.lost],
    )


def test_cover_when_a_range_lies_within_then_extents_are_cut_to_it() -> None:
    """A range from the middle of one extent to the middle of another is cut to both."""
    assert covered(150, 250) == ([(150, 200), (200, 250)], [])


@pytest.mark.parametrize("edge", [(150, 150), (100, 100), (400, 400)])
def test_cover_when_a_range_is_empty_then_nothing_is_read_or_lost(edge: tuple[int, int]) -> None:
    """An empty range reads nothing and loses nothing, also at either end."""
    assert covered(*edge) == ([], [])


def test_cover_when_a_gap_lies_in_it_then_the_gap_is_lost_and_no_more() -> None:
    """Only the gap within a range is lost, with the listing's reason."""
    why = "no segment of the tier has them"
    assert covered(250, 360) == ([(250, 300), (350, 360)], [(300, 350, why)])
    assert covered(320, 330) == ([], [(320, 330, why)])


def test_cover_when_it_reaches_beyond_both_ends_then_each_is_named_for_what_it_is() -> None:
    """A range beyond both ends has an expired part and a part not tiered yet."""
    read, lost = covered(50, 420)
    assert read == [(100, 200), (200, 300), (350, 400)]
    assert [one for one in lost if one[0] != 300] == [
        (50, 100, EXPIRED),
        (400, 420, NOT_THERE_YET),
    ]


def test_cover_when_a_start_lies_behind_everything_then_that_is_told() -> None:
    """A start behind all offsets reads nothing and names the missing offsets up to it."""
    assert covered(500, 400) == ([], [(400, 500, NOT_THERE_YET)])


def test_cover_when_all_of_it_is_expired_then_no_more_than_it_is_lost() -> None:
    """A cover that is fully expired lists as lost only the wanted offsets."""
    assert covered(10, 20) == ([], [(10, 20, EXPIRED)])


def test_without_when_something_in_the_middle_is_lost_as_well_then_both_sides_are_read() -> None:
    """Both sides of a lost part in the middle are read."""
    found = cover(OffsetRange(PARTITION, 100, 360), PARTITION.next_offset)
    left = without(found, [MissingOffsets(150, 160, "a"), MissingOffsets(190, 210, "b")])
    assert [(one.first_offset, one.next_offset) for one in left.extents] == [
        (100, 150),
        (160, 190),
        (210, 300),
        (350, 360),
    ]
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
def test_offsets_when_a_bound_is_one_then_edges_are_of_what_can_be_read(
    asked: PartitionBound, start: int, end: int
) -> None:
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
