"""Questions for a plan, and contradicting ones."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import InvalidArgument
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from tests.support.tier.read_plans import ORDERS


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (Question(), {"orders", "logs-1"}),
        (Question(("logs-*",)), {"logs-1"}),
        (Question(("logs-*", "__own")), {"logs-1", "__own"}),
        (Question(without_topics=("logs-?",)), {"orders"}),
        (Question(pattern="(orders|__own)"), {"orders", "__own"}),
        (Question(pattern="order"), set()),
        (Question(assigned=(("orders", (3,)),)), {"orders"}),
        (Question(assigned=(("orders", (0,)),)), set()),
    ],
)
def test_question_when_topics_are_said_then_wants_these(said: Question, wanted: set[str]) -> None:
    """A question selects topics by name and pattern, and internal topics only by name."""
    assert {one for one in ("orders", "logs-1", "__own") if said.wants(one, 3)} == wanted


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        (Question, {"topics": ("a",), "pattern": "a"}, "one of them"),
        (Question, {"topics": ("a b",)}, "no topic"),
        (Question, {"without_topics": ("",)}, "no topic"),
        (Question, {"pattern": "("}, "no regular expression"),
        (Question, {"pattern": "a" * 2_000}, "2000 characters"),
        (RecordBounds, {"from_offset": 1, "from_time_ms": 1}, "say one"),
        (RecordBounds, {"to_offset": 1, "to_time_ms": 1}, "say one"),
        (RecordBounds, {"from_offset": 2, "to_offset": 1}, "before the beginning"),
        (RecordBounds, {"from_time_ms": 2, "to_time_ms": 1}, "before the beginning"),
        (RecordBounds, {"from_offset": -1}, "no whole number"),
        (RecordBounds, {"to_offset": 2**63}, "no whole number"),
        (RecordBounds, {"to_offset": True}, "no whole number"),
        (QuestionFacts, {"histories": {ORDERS: ((1, 0), (0, 5))}}, "do not rise"),
        (QuestionFacts, {"histories": {ORDERS: ((0, 5), (1, 5))}}, "do not rise"),
    ],
)
def test_question_when_it_cannot_be_meant_then_is_refused(kind: Any, fields: Any, why: str) -> None:
    """A question, bounds or facts that contradict themselves are refused with a message."""
    with pytest.raises(InvalidArgument, match=why):
        kind(**fields)


def test_bounds_when_they_are_equal_then_are_an_empty_range() -> None:
    """Equal bounds are an empty range."""
    assert RecordBounds(1, 1).to_offset == 1
