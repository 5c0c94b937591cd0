"""Candidates for a copy, judged before any segment is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_tiering.copy_plan.candidates import Candidate, NotYet, judge_segments
from spark_tiering.copy_plan.reasons import NotCopiedReason
from spark_tiering.segments.segment_listing import ListedSegment

if TYPE_CHECKING:
    from spark_tiering.segments.leader_epochs import Epochs

SEGMENT = ListedSegment(120, 251)
EPOCHS = ((4, 0), (6, 200), (9, 251))


REASON = NotCopiedReason
AGAINST: dict[str, tuple[ListedSegment, Epochs | None, int | None, NotCopiedReason, str]] = {
    "active": (ListedSegment(251, None), EPOCHS, 999, REASON.ACTIVE, "251"),
    "unknown": (SEGMENT, EPOCHS, None, REASON.STABILITY_UNKNOWN, "250"),
    "last record open": (SEGMENT, EPOCHS, 250, REASON.UNSTABLE, "below 250"),
    "all open": (SEGMENT, EPOCHS, 0, REASON.UNSTABLE, "below 0"),
    "no history": (SEGMENT, None, 251, REASON.EPOCH_UNKNOWN, "offset 120"),
    "empty history": (SEGMENT, (), 251, REASON.EPOCH_UNKNOWN, "offset 120"),
    "begins too late": (SEGMENT, ((6, 200),), 251, REASON.EPOCH_UNKNOWN, "offset 120"),
}


@pytest.mark.parametrize(
    ("segment", "epochs", "last_stable_offset", "reason", "text"), AGAINST.values(), ids=AGAINST
)
def test_f109_segment_when_something_is_against_it_then_is_not_copied(
    segment: ListedSegment,
    epochs: Epochs | None,
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
