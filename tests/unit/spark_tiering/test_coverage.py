"""Coverage of the tier by leader epoch and offset."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_plan.lineage import Coverage, EpochSpan, spans_of
from tests.support.builders import started

if TYPE_CHECKING:
    from rlmm.metadata.segment import SegmentMetadata

CS, CF, DS, DF = SegmentState


def copied(
    start: int, next_offset: int, epochs: dict[int, int] | None = None, *, state: SegmentState = CF
) -> SegmentMetadata:
    """Return the metadata of a copy of [start, next_offset), finished by default."""
    name = f"{start}-{next_offset}-{epochs}"
    return started(name, start, next_offset - 1, epochs, state=state)


def test_spans_when_epochs_change_within_then_each_ends_where_the_next_begins() -> None:
    """A span ends at the next one's start; offsets before the first epoch belong to none."""
    assert spans_of(((4, 0), (6, 200)), 120, 251) == (
        EpochSpan(4, 120, 200),
        EpochSpan(6, 200, 251),
    )
    assert spans_of(((4, 130),), 120, 251) == (EpochSpan(4, 130, 251),)
    assert spans_of(((4, 0), (5, 120), (6, 251)), 120, 251) == (EpochSpan(5, 120, 251),)
    assert spans_of((), 120, 251) == ()


@pytest.mark.parametrize("state", [CS, DS, DF])
def test_f102_copy_when_it_is_not_finished_then_covers_nothing(state: SegmentState) -> None:
    """A copy that is not finished covers nothing, and its range is copied under another id."""
    epochs = ((0, 0),)
    assert Coverage([copied(0, 100, state=state)]).lacks(epochs, 0, 100) == (EpochSpan(0, 0, 100),)
    both = Coverage([copied(0, 100, state=state), copied(0, 100)])
    assert both.lacks(epochs, 0, 100) == ()


def test_f103_coverage_when_leaders_rolled_elsewhere_then_goes_by_offsets() -> None:
    """Coverage goes by offsets: 200 to 209 are missing although base offset 100 is tiered."""
    coverage = Coverage([copied(0, 100), copied(100, 200)])
    epochs = ((0, 0),)
    assert coverage.lacks(epochs, 0, 90) == ()
    assert coverage.lacks(epochs, 90, 210) == (EpochSpan(0, 200, 210),)
    assert coverage.lacks(epochs, 210, 300) == (EpochSpan(0, 210, 300),)


RANGES = st.tuples(st.integers(0, 40), st.integers(1, 15), st.integers(0, 2)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
)


@given(st.lists(RANGES, max_size=8), RANGES)
def test_f103_coverage_of_any_copies_when_asked_then_lacks_what_none_of_them_has(
    copies: list[tuple[int, int, int]], asked: tuple[int, int, int]
) -> None:
    """Coverage lacks exactly the offsets that no finished copy of the epoch holds."""
    coverage = Coverage([copied(start, stop, {epoch: start}) for start, stop, epoch in copies])
    first, behind, epoch = asked
    lacking = coverage.lacks(((epoch, first),), first, behind)
    assert all(one.next_offset < other.first_offset for one, other in pairwise(lacking))
    offsets = [n for span in lacking for n in range(span.first_offset, span.next_offset)]
    assert offsets == [
        n
        for n in range(first, behind)
        if not any(start <= n < stop and epoch == other for start, stop, other in copies)
    ]
