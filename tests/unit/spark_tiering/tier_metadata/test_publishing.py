"""What became of an event whose verdict was not heard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    AppendUncertain,
    AssignmentLost,
    EventRejected,
    LogUnavailable,
    NotReady,
    OutcomeUnknown,
    RlmmError,
    Stopped,
)
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.tier_metadata.lost_answers import ATTEMPTS_MAX, heard, publish_settled, settled
from spark_tiering.tier_metadata.protocol import PublishedEvent
from tests.support.builders import delete_finished, delete_started, finished, segment_id, started

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.metadata.events import SegmentUpdate
    from rlmm.metadata.ids import SegmentId

AT = (2, 40)
UNCERTAIN = AppendUncertain("no answer came")
UNKNOWN = OutcomeUnknown("no verdict came", stored_at=AT)
STARTED = started("one")
FINISHED = STARTED.updated(finished("one"))
DELETING = FINISHED.updated(delete_started("one"))
HAD = PublishedEvent(2, 55, "duplicate")
WAS_AT = PublishedEvent(*AT, "duplicate")

Answer = PublishedEvent | RlmmError
Found = SegmentMetadata | RlmmError | None


class Scripted:
    """Answers writes and looks as a test says."""

    def __init__(self, answers: list[Answer], found: list[Found]) -> None:
        self._answers = answers
        self._found = found
        self.at_least: list[Mapping[int, int]] = []

    def write(self, event: SegmentMetadata | SegmentUpdate) -> PublishedEvent:
        answer = self._answers.pop(0)
        if isinstance(answer, RlmmError):
            raise answer
        return answer

    def look(
        self, segment_id: SegmentId, at_least: Mapping[int, int]
    ) -> tuple[SegmentMetadata | None, int, int]:
        self.at_least.append(at_least)
        found = self._found.pop(0)
        if isinstance(found, RlmmError):
            raise found
        return found, 2, 55

    @property
    def is_used_up(self) -> bool:
        """Whether everything was asked for."""
        return not self._answers and not self._found


DONE = PublishedEvent(2, 60, "applied")
CASES: dict[str, tuple[SegmentMetadata | SegmentUpdate, list[Answer], list[Found], object]] = {
    "heard": (STARTED, [DONE], [], DONE),
    "start uncertain, there": (STARTED, [UNCERTAIN], [STARTED], HAD),
    "start uncertain, further on": (STARTED, [UNCERTAIN], [FINISHED], HAD),
    "start uncertain, not there": (STARTED, [UNCERTAIN, DONE], [None], DONE),
    "start unknown, there": (STARTED, [UNKNOWN], [STARTED], WAS_AT),
    "start unknown, not there": (STARTED, [UNKNOWN], [None], EventRejected),
    "finish uncertain, had": (finished("one"), [UNCERTAIN], [FINISHED], HAD),
    "finish uncertain, not yet": (finished("one"), [UNCERTAIN, DONE], [STARTED], DONE),
    "finish uncertain twice": (
        finished("one"), [UNCERTAIN, UNCERTAIN], [STARTED, FINISHED], HAD,
    ),
    "finish uncertain for ever": (
        finished("one"), [UNCERTAIN] * ATTEMPTS_MAX, [STARTED] * ATTEMPTS_MAX, UNCERTAIN,
    ),
    "finish uncertain, passed": (finished("one"), [UNCERTAIN], [DELETING], UNCERTAIN),
    "finish unknown, had": (finished("one"), [UNKNOWN], [FINISHED], WAS_AT),
    "finish unknown, had not": (finished("one"), [UNKNOWN], [STARTED], EventRejected),
    "finish unknown, passed": (finished("one"), [UNKNOWN], [DELETING], UNKNOWN),
    "finish unknown, gone": (finished("one"), [UNKNOWN], [None], UNKNOWN),
    "finish unknown, another's": (
        finished("one"), [UNKNOWN], [replace(FINISHED, custom_metadata=b"x")], UNKNOWN,
    ),
    "end begun, had": (delete_started("one"), [UNKNOWN], [DELETING], WAS_AT),
    "end uncertain, gone": (delete_finished("one"), [UNCERTAIN], [None], HAD),
    "end unknown, gone": (delete_finished("one"), [UNKNOWN], [None], WAS_AT),
    "end unknown, still there": (delete_finished("one"), [UNKNOWN], [DELETING], EventRejected),
    "rejected": (STARTED, [EventRejected("no")], [], EventRejected),
    "not stored": (STARTED, [LogUnavailable("away")], [], LogUnavailable),
    "stopped before": (STARTED, [Stopped("over")], [], Stopped),
    "stopped behind": (STARTED, [Stopped("over", stored_at=AT)], [STARTED], WAS_AT),
    "taken away": (STARTED, [AssignmentLost("gone", stored_at=AT)], [STARTED], WAS_AT),
    "nobody to look": (STARTED, [UNCERTAIN], [NotReady("replaying")], UNCERTAIN),
    "repeat meets another": (
        finished("one"), [UNCERTAIN, EventRejected("deleted")], [STARTED], UNCERTAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_event_when_its_verdict_is_not_heard_then_the_segment_decides_or_nobody_does(
    name: str,
) -> None:
    """A success is one; what is open stays open, under the error that left it so (F126)."""
    event, answers, found, expected = CASES[name]
    writes = Scripted(list(answers), list(found))
    if isinstance(expected, PublishedEvent):
        assert publish_settled(writes, event) == expected
    else:
        kind = expected if isinstance(expected, type) else type(expected)
        with pytest.raises(kind) as caught:
            publish_settled(writes, event)
        if not isinstance(expected, type):
            assert caught.value is expected
    assert writes.is_used_up


@pytest.mark.parametrize("name", CASES)
def test_event_when_it_was_stored_together_with_others_then_the_same_decides(name: str) -> None:
    """Its first attempt is not made again, and what would be raised is given."""
    event, answers, found, expected = CASES[name]
    writes = Scripted(answers[1:], list(found))
    told = settled(writes, event, answers[0])
    if isinstance(expected, type):
        assert isinstance(told, expected)
    else:
        assert told == expected
    assert writes.is_used_up


def test_event_when_it_is_stored_then_looked_for_behind_its_offset() -> None:
    """What is seen before the event was applied says nothing of it."""
    writes = Scripted([UNKNOWN], [STARTED])
    publish_settled(writes, STARTED)
    assert writes.at_least == [{2: 40}]


def test_event_when_it_had_no_effect_then_said_with_what_is_there() -> None:
    """Who reads it knows what to do."""
    with pytest.raises(EventRejected) as caught:
        publish_settled(Scripted([UNKNOWN], [STARTED]), finished("one"))
    assert caught.value.stored_at == AT
    assert caught.value.current == SegmentState.COPY_SEGMENT_STARTED.name
    assert caught.value.requested == SegmentState.COPY_SEGMENT_FINISHED.name


def test_verdict_when_nobody_knows_it_then_the_outcome_is_unknown() -> None:
    """An event that was stored where it is not assigned is not told as published."""
    assert heard(1, 2, "applied", STARTED) == (1, 2, "applied")
    assert heard(1, 2, "duplicate", STARTED) == (1, 2, "duplicate")
    with pytest.raises(OutcomeUnknown) as caught:
        heard(1, 2, "stored-not-assigned", STARTED)
    assert caught.value.stored_at == (1, 2)
    assert segment_id("one") == STARTED.id
