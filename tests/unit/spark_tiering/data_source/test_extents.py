"""Extents of a frozen plan's segments."""

from __future__ import annotations

import pytest

from rlmm.metadata.ids import Uuid
from spark_tiering.data_source.extents import extent_of
from spark_tiering.read_plan.plan import EpochStart, FrozenSegment
from tests.support.datasource.extents import ORDERS, extent


def planned(read_last: int, epochs: tuple[tuple[int, int], ...]) -> FrozenSegment:
    uuid = Uuid(bytes(range(16)))
    starts = tuple(EpochStart(epoch, first) for epoch, first in epochs)
    return FrozenSegment(
        *(ORDERS.topic, ORDERS.topic_id, ORDERS.partition, uuid, 100, 199, 100, read_last),
        *(1_000, 77, None, True, starts, "l", "i", "m"),
    )


@pytest.mark.parametrize(
    ("read_last", "epochs", "history", "history_last"),
    [
        (199, ((4, 100),), ((4, 0),), 199),
        (149, ((4, 100),), ((4, 0),), 199),
        (149, ((4, 100),), ((4, 0), (6, 150)), 149),
        (120, ((4, 100),), ((4, 0), (6, 150)), 149),
        (149, ((4, 100), (6, 150)), ((4, 0), (6, 150)), 199),
        (149, ((4, 100), (5, 150)), ((4, 0), (6, 150)), 149),
        (149, ((4, 100), (5, 160)), ((4, 0), (6, 180)), 159),
    ],
)
def test_extent_when_leaders_were_replaced_then_it_says_up_to_where_the_segment_is_the_partitions(
    read_last: int,
    epochs: tuple[tuple[int, int], ...],
    history: tuple[tuple[int, int], ...],
    history_last: int,
) -> None:
    """A new leader ends the part of a segment that is the partition's; a plan's end does not."""
    found = extent_of(planned(read_last, epochs), history)
    assert (found.first_offset, found.last_offset) == (100, read_last)
    assert (found.history_last, found.has_end) == (history_last, history_last == 199)


def test_extent_when_a_part_of_it_is_wanted_then_bytes_are_counted_by_offsets() -> None:
    """The extent estimates the bytes of a partly wanted segment in proportion to its offsets."""
    whole = extent(100, 200, log_bytes=1_000)
    cut = whole.cut(150, 160)
    assert cut is not None
    assert (cut.offsets, cut.likely_bytes) == (10, 100)
    assert whole.cut(200, 300) is None
    assert whole.cut(50, 100) is None
