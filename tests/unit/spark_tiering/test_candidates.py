"""Candidates for a copy, judged before any segment is read."""

from __future__ import annotations

import pytest

from spark_tiering.copy_plan.candidates import Candidate, NotYet, judge_segments
from spark_tiering.copy_plan.reasons import NotCopiedReason
from spark_tiering.segments.segment_listing import ListedSegment

SEGMENT = ListedSegment(120, 251)
EPOCHS = ((4, 0), (6, 200), (9, 251))


@pytest.mark.parametrize(
    ("segment", "epochs", "last_stable_offset", "reason", "text"),
    [
        pytest.param(
            ListedSegment(251, None), EPOCHS, 999, NotCopiedReason.ACTIVE, "251", id="active"
        ),
        pytest.param(SEGMENT, EPOCHS, None, NotCopiedReason.STABILITY_UNKNOWN, "250", id="unknown"),
        pytest.param(
            SEGMENT, EPOCHS, 250, NotCopiedReason.UNSTABLE, "below 250", id="last record open"
        ),
        pytest.param(SEGMENT, EPOCHS, 0, NotCopiedReason.UNSTABLE, "below 0", id="all open"),
        pytest.param(
            SEGMENT, None, 251, NotCopiedReason.EPOCH_UNKNOWN, "offset 120", id="no history"
        ),
        pytest.param(
            SEGMENT, (), 251, NotCopiedReason.EPOCH_UNKNOWN, "offset 120", id="empty history"
        ),
        pytest.param(
            SEGMENT,
            ((6, 200),),
            251,
            NotCopiedReason.EPOCH_UNKNOWN,
            "offset 120",
            id="begins too late",
        ),
    ],
)
def test_f109_segment_when_something_is_against_it_then_is_not_copied(
    segment: ListedSegment,
    epochs: tuple[tuple[int, int], ...] | None,
    last_stable_offset: int | None,
    reason: NotCopiedReason,
    text: str,
) -> None:
    """An active, unstable or unknown segment is not copied."""
    (found,) = judge_segments([segment], epochs, last_stable_offset)
    assert isinstance(found, NotYet)
    assert (found.segment, found.reason) == (segment, reason)
    assert text in found.detail


def test_segment_when_nothing_is_against_it_then_is_a_candidate_with_its_epochs() -> None:
    """A segment that ends at the last stable offset is a candidate, with its own epochs."""
    found = judge_segments([SEGMENT], EPOCHS, 251)
    assert found == [Candidate(120, 251, ((4, 120), (6, 200)))]
