"""Where indexes lie in their object: one after another, in the plugin's order."""

from __future__ import annotations

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.layout.segment_indexes import IndexPlace, lay_out_indexes
from spark_tiering.segments.findings import SegmentPart
from tests.support.stores.recorded_manifests import PART_SIZES


def test_indexes_when_laid_out_follow_one_another() -> None:
    """Index positions are running sums, and an absent index takes no place."""
    places = lay_out_indexes(PART_SIZES)
    assert list(places) == [(0, 2400), (2400, 3612), (6012, 10), (6022, 12), None]
    assert (places.size_bytes, places.is_gapless) == (6034, True)
    assert places.place(SegmentPart.LEADER_EPOCHS) == (6022, 12)
    assert places.place(SegmentPart.TXN_INDEX) is None


def test_transaction_index_when_there_is_one_is_last() -> None:
    """The transaction index is the last index in the object, as in the plugin's order."""
    places = lay_out_indexes({SegmentPart.TXN_INDEX: 34} | PART_SIZES)
    assert places.transaction == (6034, 34)


def test_empty_indexes_when_laid_out_have_a_place() -> None:
    """An empty index has a place of no bytes."""
    places = lay_out_indexes(PART_SIZES | {SegmentPart.OFFSET_INDEX: 0, SegmentPart.TIME_INDEX: 0})
    assert places[:3] == ((0, 0), (0, 0), (0, 10))


@pytest.mark.parametrize("part", PART_SIZES)
def test_segment_that_lacks_an_index_when_laid_out_is_refused(part: SegmentPart) -> None:
    """A segment that lacks another index than the transaction index is refused."""
    sizes = {other: size for other, size in PART_SIZES.items() if other is not part}
    with pytest.raises(InvalidArgument, match=part):
        lay_out_indexes(sizes)


@pytest.mark.parametrize("size_bytes", [-1, 2**31 - 2400])
def test_index_of_a_size_that_cannot_be_when_laid_out_is_refused(size_bytes: int) -> None:
    """An index whose place or size exceeds Java's int is refused."""
    with pytest.raises(InvalidArgument, match=str(size_bytes)):
        lay_out_indexes(PART_SIZES | {SegmentPart.TIME_INDEX: size_bytes})


def test_places_with_a_gap_or_an_overlap_when_asked_are_not_gapless() -> None:
    """Indexes with a gap or an overlap between them are not gapless."""
    places = lay_out_indexes(PART_SIZES)
    assert not places._replace(leader_epoch=IndexPlace(6023, 12)).is_gapless
    assert not places._replace(transaction=IndexPlace(6033, 34)).is_gapless


def test_place_of_the_log_when_asked_for_is_refused() -> None:
    """The place of the log among the indexes is refused, as it has an object of its own."""
    with pytest.raises(InvalidArgument, match="log"):
        lay_out_indexes(PART_SIZES).place(SegmentPart.LOG)
