"""The extents of a query, lost offsets, and aborted transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import DataLost
from rlmm.metadata.ids import Uuid
from spark_tiering.data_source.bounds import EARLIEST, LATEST, NoOffset, PartitionBound
from spark_tiering.data_source.extents import MissingOffsets, extent_of
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
from spark_tiering.data_source.transaction_search import decide, of_piece, stable_end
from spark_tiering.decoding import AbortedTransaction
from spark_tiering.read_plan.plan import EpochStart, FrozenSegment
from tests.support.datasource.extents import ORDERS, extent, held

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spark_tiering.data_source.extents import PartitionListing, ReadExtent


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
    """The error about lost offsets names the first ones with reason and remedy, and counts all."""
    with pytest.raises(DataLost) as lost:
        require_nothing_lost([cover(OffsetRange(PARTITION, 90, 310), 400)])
    told = str(lost.value)
    assert f"orders-0: no offsets 90 to 99: {EXPIRED}" in told
    assert "orders-0: no offsets 300 to 309" in told
    assert "failOnDataLoss=false" in told
    require_nothing_lost([cover(OffsetRange(PARTITION, 100, 300), 400)])
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


def test_offsets_when_no_record_is_as_late_then_a_start_fails_unless_told_otherwise() -> None:
    """A time is its record's offset; a later start fails by default, a later end is the latest."""
    asked = PartitionBound(None, 5_000)
    assert offset_of_start(PARTITION, 380, asked, lambda _, __: 222) == 222
    assert offset_of_end(PARTITION, 380, asked, lambda _, __: 399) == 380
    assert offset_of_end(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.ERROR), never) == 380
    assert (
        offset_of_start(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.LATEST), never) == 380
    )
    with pytest.raises(DataLost, match="no record is as late as 5000 ms"):
        offset_of_start(PARTITION, 380, PartitionBound(None, 5_000, NoOffset.ERROR), never)


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


class State:
    """The state by segments' first offsets; *read* lists what was read: a0 or o0."""

    def __init__(
        self,
        aborted: Mapping[int, Sequence[AbortedTransaction]] | None = None,
        open_firsts: Mapping[int, set[int]] | None = None,
    ) -> None:
        self._aborted = aborted or {}
        self._open = open_firsts or {}
        self.read: list[str] = []

    def aborted(self, one: ReadExtent) -> Sequence[AbortedTransaction]:
        self.read.append(f"a{one.segment_first}")
        return self._aborted.get(one.segment_first, ())

    def open_firsts(self, one: ReadExtent) -> frozenset[int]:
        self.read.append(f"o{one.segment_first}")
        return frozenset(self._open.get(one.segment_first, set()))


def aborted(first: int, last: int, stable: int | None = None) -> AbortedTransaction:
    return AbortedTransaction(9, first, last, last + 1 if stable is None else stable)


def three(*, no_aborts: bool = True, stable: int | None = None) -> PartitionListing:
    extents = (extent(first, first + 100, no_aborts=no_aborts) for first in (0, 100, 200))
    return held(*extents, stable=stable)


WITH_ABORTS = three(no_aborts=False)
PARTLY = extent(0, 60, segment=(0, 100), no_aborts=False)
REPLACED = extent(0, 60, segment=(0, 100), history_behind=60, no_aborts=False)
LATE, EARLY, CUT = aborted(50, 250), aborted(50, 120), aborted(40, 80)

DECIDED = {
    "nothing open at the end": (three(), (10, 90), State(), (), "o0"),
    "a marker in a later segment": (
        WITH_ABORTS, (0, 100), State({200: [LATE]}, {0: {50}, 100: {50}}), (LATE,),
        "a0 o0 a100 o100 a200",
    ),
    "metadata without aborts": (three(), (0, 100), State({}, {0: {50}}), (), "o0 o100"),
    "an entry that decides all": (
        WITH_ABORTS, (0, 100), State({100: [EARLY]}, {0: {50}, 100: {110}}), (EARLY,), "a0 o0 a100",
    ),
    "a marker in another history": (
        held(REPLACED, extent(60, 200, no_aborts=False)), (0, 200), State({0: [CUT]}), (),
        "a0 a60 o60",
    ),
    "a segment read in part": (held(PARTLY), (0, 60), State({0: [CUT]}), (CUT,), "a0"),
    "all known to be decided": (
        three(no_aborts=False, stable=260), (0, 260),
        State({200: [LATE]}, {0: {50}, 100: {50}, 200: {50}}), (LATE,), "a0 a100 a200",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("partition", "asked", "state", "transactions", "read"), DECIDED.values(), ids=DECIDED
)
def test_decide_when_all_can_be_known_then_no_more_is_read_than_that_takes(
    partition: PartitionListing,
    asked: tuple[int, int],
    state: State,
    transactions: tuple[AbortedTransaction, ...],
    read: str,
) -> None:
    """Markers of the same history decide a range, from as few indexes and states as needed."""
    assert decide(partition, *asked, state) == (transactions, ())
    assert state.read == read.split()


def test_decide_when_a_transaction_is_open_at_the_tiers_end_then_it_ends_before_it() -> None:
    """Committed rows end before a transaction that is open at the end of the tier."""
    state = State({}, {0: {50}, 100: {50}, 200: {50, 260}})
    found = decide(three(), 0, 300, state)
    assert found.undecided == ((50, 300),)
    assert stable_end(three(), state) == 50


def test_decide_when_offsets_are_missing_then_it_is_unknown_from_where_one_was_open() -> None:
    """Rows from a transaction open at a gap up to the gap are undecided."""
    partition = held(extent(0, 100), extent(200, 300))
    state = State({}, {0: {50}, 200: set()})
    assert decide(partition, 0, 300, state).undecided == ((50, 100),)
    assert decide(partition, 60, 90, state).undecided == ((60, 90),)
    assert not decide(partition, 0, 40, state).undecided
    assert not decide(partition, 200, 300, state).undecided


def test_stable_end_when_another_history_cuts_the_last_segment_then_it_lies_before() -> None:
    """The stable end lies before a segment that another history cuts; a known one is not read."""
    last = extent(100, 150, segment=(100, 200), history_behind=150)
    state = State({}, {0: {80}})
    assert stable_end(held(extent(0, 100), last), state) == 80
    assert stable_end(held(last), state) == 100
    unread = State()
    assert stable_end(three(stable=222), unread) == 222
    assert stable_end(three(stable=999), unread) == 300
    assert not unread.read


def test_piece_when_transactions_lie_outside_of_it_then_it_is_not_sent_them() -> None:
    """A task gets only the transactions that overlap its piece."""
    several = (aborted(10, 20), aborted(30, 90), aborted(95, 110))
    assert of_piece(several, 25, 95) == (several[1],)
    assert of_piece(several, 20, 96) == several
