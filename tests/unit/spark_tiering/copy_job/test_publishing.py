"""Events published, and every way in which that can fail, as values."""

from __future__ import annotations

import pytest

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    EventRejected,
    LogUnavailable,
    NotAssigned,
    NotPermitted,
    NotPublishable,
    NotReady,
    OutcomeUnknown,
    RlmmError,
    SidecarUnavailable,
)
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentState
from spark_tiering.copy_job.publishing import CopyEventPublisher, PublishFailure, PublishRefusal
from tests.support.builders import started, tp
from tests.support.tier.job_parts import NOW_MS, HeldMetadata

SEGMENTS = [started(label, 10 * label, 10 * label + 9) for label in range(5)]


def publisher(metadata: HeldMetadata) -> CopyEventPublisher:
    return CopyEventPublisher(metadata, 7, lambda: NOW_MS, 5.0)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (EventRejected("no", current=None, requested="x"), PublishFailure.REJECTED),
        (AppendUncertain("who knows"), PublishFailure.UNKNOWN),
        (OutcomeUnknown("who knows", stored_at=(0, 1)), PublishFailure.UNKNOWN),
        (NotPublishable("no broker could read it"), PublishFailure.REFUSED),
        (NotPermitted("you may not"), PublishFailure.REFUSED),
        (AppendRefused("no leader"), PublishFailure.NOT_STORED),
        (LogUnavailable("away"), PublishFailure.NOT_STORED),
        (NotReady("behind"), PublishFailure.NOT_STORED),
        (NotAssigned("not ours"), PublishFailure.NOT_STORED),
        (SidecarUnavailable("away"), PublishFailure.NOT_STORED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RlmmError) else "",
)
def test_failed_event_says_if_it_may_be_stored(error: RlmmError, failure: PublishFailure) -> None:
    """A failed event's result says whether it may be stored, and never excludes it wrongly."""
    (told,) = publisher(HeldMetadata(error=error)).start_all(SEGMENTS[:1])
    assert isinstance(told, PublishRefusal)
    assert told.failure is failure
    assert told.detail.startswith(f"{error.code}: ")


def test_event_that_moves_a_segment_when_published_then_says_who_when_and_what() -> None:
    """A moving event carries the job's broker id, the time and the custom metadata."""
    metadata = HeldMetadata()
    finished = [(SEGMENTS[0].id.uuid, b"custom")]
    told = publisher(metadata).move_all(tp(), SegmentState.COPY_SEGMENT_FINISHED, finished)
    assert told == [(0, 0, "applied")]
    assert metadata.published == [
        SegmentUpdate(SEGMENTS[0].id, 7, NOW_MS, b"custom", SegmentState.COPY_SEGMENT_FINISHED)
    ]


def test_state_when_asked_for_then_is_that_of_now_or_why_nobody_can_say() -> None:
    """The state of a segment is the present one, or the reason why it is unknown."""
    metadata = HeldMetadata([SEGMENTS[0]])
    told = publisher(metadata)
    assert told.state(tp(), SEGMENTS[0].id.uuid) is SegmentState.COPY_SEGMENT_STARTED
    assert told.state(tp(), SEGMENTS[1].id.uuid) is None
    metadata.error = NotReady("behind")
    failed = told.state(tp(), SEGMENTS[0].id.uuid)
    assert failed == PublishRefusal(PublishFailure.NOT_STORED, "not-ready: behind")
