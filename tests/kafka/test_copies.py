"""Repeated and unfinished copies, from events that the tests write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.copies import copied_again, cut_short, finished
from tests.kafka.tiered import MetadataEvent
from tests.support.builders import finished as ended
from tests.support.builders import segment_id, started, tp

if TYPE_CHECKING:
    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import SegmentId
    from rlmm.metadata.segment import SegmentMetadata

ONE, TWO, THREE = (segment_id(number, tp()) for number in (1, 2, 3))


def stored(*events: SegmentMetadata | SegmentUpdate) -> list[MetadataEvent]:
    return [MetadataEvent(0, at, 0, b"", event) for at, event in enumerate(events)]


def begun(one: SegmentId, first: int, last: int) -> SegmentMetadata:
    return started(one, first, last, {0: first})


def test_copied_again_when_a_segment_has_nothing_of_its_own_names_it() -> None:
    """A segment whose offsets were all copied before is named, an overlapping one is not."""
    first, again, further = begun(ONE, 0, 9), begun(TWO, 2, 9), begun(THREE, 5, 14)
    events = stored(first, ended(ONE), again, ended(TWO), further, ended(THREE))
    assert copied_again(events) == [again]
    assert finished(events) == [first, again, further]


def test_cut_short_when_a_copy_has_no_end_names_it() -> None:
    """`cut_short` names a copy that was only started; a new copy of its offsets is no repeat."""
    cut, anew = begun(ONE, 0, 9), begun(TWO, 0, 9)
    events = stored(cut, anew, ended(TWO))
    assert cut_short(events) == [cut]
    assert copied_again(events) == []
