"""The judge of an engine's claims finds every false one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentState
from tests.support.builders import started
from tests.support.engine.chosen import ChosenShard
from tests.support.engine.claims import (
    Answered,
    Claims,
    Question,
    Wrote,
    answer_from,
    check,
    judge,
    line_of,
    parse,
    user_partition,
)

if TYPE_CHECKING:
    from rlmm.metadata.events import Event

SEGMENT = SegmentId(user_partition(0, 0), Uuid.of(1, 1))
ADDED = started(SEGMENT, event_timestamp_ms=1)
COPIED = SegmentUpdate(SEGMENT, 1, 2, b"custom", SegmentState.COPY_SEGMENT_FINISHED)
DELETED = SegmentUpdate(SEGMENT, 1, 3, b"custom", SegmentState.DELETE_SEGMENT_STARTED)
GONE = SegmentUpdate(SEGMENT, 1, 4, b"custom", SegmentState.DELETE_SEGMENT_FINISHED)
EVENTS: tuple[Event, ...] = (ADDED, ADDED, COPIED)
SIZE = Question("segment_for", 0, 0, 0, 50)
WROTE = [Wrote(0, 0, 1, "applied"), Wrote(0, 1, 1, "duplicate"), Wrote(0, 2, 2, "applied")]


def answers() -> list[str]:
    shard = ChosenShard(0)
    found = [answer_from(shard, SIZE)]
    for offset, event in enumerate(EVENTS):
        shard.apply_event(event, offset)
        found.append(answer_from(shard, SIZE))
    return found


def at(position: int, digest: str, floor: int = 0) -> Answered:
    return Answered(0, position, floor, digest, SIZE)


def told(*more: Wrote | Answered) -> Claims:
    claims = Claims()
    for claim in (*WROTE, *more):
        claims.add_own(claim)
    return claims


def test_claims_when_all_are_true_then_pass() -> None:
    """Acknowledged events are stored, and each answer was right at its position."""
    claims = told(at(3, answers()[3]))
    for position, digest in enumerate(answers()):
        claims.add(at(position, digest))
    judgement = judge({0: list(enumerate(map(encode, EVENTS)))}, claims.answered)
    check(claims, judgement, repeats_max=2)
    assert judgement.events == 3


@pytest.mark.parametrize("claim", [*WROTE, at(7, "abc", 3)])
def test_claim_when_written_as_a_line_then_is_read_back(claim: Wrote | Answered) -> None:
    """A claim survives its text form."""
    assert parse(line_of(claim)) == claim


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        pytest.param(Wrote(0, 3, 3, "applied"), "acknowledged events are lost", id="lost"),
        pytest.param(Wrote(0, 2, 1, "applied"), "acknowledged events are lost", id="elsewhere"),
        pytest.param(Wrote(0, 0, 1, "duplicate"), "verdicts are wrong", id="wrong-verdict"),
        pytest.param(Wrote(0, 0, 1, "applied"), "acknowledged twice", id="acknowledged-twice"),
        pytest.param(at(2, answers()[2]), "answers are false", id="stale-answer"),
        pytest.param(at(3, answers()[2]), "answers are false", id="wrong-answer"),
        pytest.param(at(4, answers()[3]), "answers are false", id="answer-from-nowhere"),
    ],
)
def test_claim_when_false_then_is_found_out(claim: Wrote | Answered, message: str) -> None:
    """The check names one false claim among true ones."""
    claims = told(claim)
    judgement = judge({0: list(enumerate(map(encode, EVENTS)))}, claims.answered)
    with pytest.raises(AssertionError, match=message):
        check(claims, judgement, repeats_max=2)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        pytest.param((ADDED, ADDED, COPIED, ADDED, ADDED), "is stored at", id="stored-too-often"),
        pytest.param(
            (ADDED, ADDED, COPIED, DELETED, GONE, ADDED), "applied 2 times", id="applied-twice"
        ),
    ],
)
def test_log_when_an_event_repeats_then_found(events: tuple[Event, ...], message: str) -> None:
    """The check names an event that came back, or is stored more often than written."""
    stored = {0: list(enumerate(map(encode, events)))}
    with pytest.raises(AssertionError, match=message):
        check(told(), judge(stored, []), repeats_max=3 if len(events) == 6 else 2)
