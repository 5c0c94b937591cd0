"""
Which segments of a partition may be copied at all, from what is known before any of them is read.
Pure.

A segment may be copied when it is rolled, when it ends at or below the last stable offset, and when
it is known which leader epoch wrote each of its offsets. What is not known is a reason against it,
never a guess. That its indexes are trimmed, and everything else about its bytes, is found when it
is read: an inspection never lets an untrimmed index through (`spark_tiering.segments`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from spark_tiering.segments.leader_epochs import Epochs, epochs_within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_tiering.segments.segment_listing import ListedSegment


class CandidateReason(StrEnum):
    """Why a segment may not be copied yet. The list is closed."""

    ACTIVE = "active"
    """It still grows."""
    STABILITY_UNKNOWN = "last-stable-offset-unknown"
    """Nobody could tell the last stable offset."""
    UNSTABLE = "above-last-stable-offset"
    """Some of it is not committed: it may be truncated, or belong to an open transaction."""
    EPOCH_UNKNOWN = "leader-epoch-unknown"
    """It is not known under which leader its first offsets were written."""


class Candidate(NamedTuple):
    """A segment that may be copied, with the leader epochs of its own offsets."""

    base_offset: int
    next_offset: int
    epochs: Epochs


class NotYet(NamedTuple):
    """A segment that may not be copied, and why; *detail* has the numbers."""

    segment: ListedSegment
    reason: CandidateReason
    detail: str


def judge_segments(
    segments: Iterable[ListedSegment], epochs: Epochs | None, last_stable_offset: int | None
) -> list[Candidate | NotYet]:
    """
    Say of each segment whether it may be copied.

    *epochs* is the partition's history of leaders; None for either of the two means unknown.
    """
    return [_judge(segment, epochs, last_stable_offset) for segment in segments]


def _judge(
    segment: ListedSegment, epochs: Epochs | None, last_stable_offset: int | None
) -> Candidate | NotYet:
    base_offset, next_offset = segment
    if next_offset is None:
        return NotYet(segment, CandidateReason.ACTIVE, f"no segment follows {base_offset}")
    if last_stable_offset is None:
        return NotYet(segment, CandidateReason.STABILITY_UNKNOWN, f"it ends at {next_offset - 1}")
    if next_offset > last_stable_offset:
        detail = f"it ends at {next_offset - 1}, stable is what lies below {last_stable_offset}"
        return NotYet(segment, CandidateReason.UNSTABLE, detail)
    own = None if epochs is None else epochs_within(epochs, base_offset, next_offset)
    if own is None:
        return NotYet(
            segment, CandidateReason.EPOCH_UNKNOWN, f"no epoch is known at offset {base_offset}"
        )
    return Candidate(base_offset, next_offset, own)
