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
    ("said", "why"),
    [
        ({"topics": ("a",), "pattern": "a"}, "one of them"),
        ({"topics": ("a b",)}, "no topic"),
        ({"without_topics": ("",)}, "no topic"),
        ({"pattern": "("}, "no regular expression"),
        ({"pattern": "a" * 2_000}, "2000 characters"),
    ],
)
def test_question_when_it_cannot_be_meant_then_is_refused(said: Any, why: str) -> None:
    """A question that contradicts itself is refused with a readable message."""
    with pytest.raises(InvalidArgument, match=why):
        Question(**said)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"from_offset": 1, "from_time_ms": 1}, "say one"),
        ({"to_offset": 1, "to_time_ms": 1}, "say one"),
        ({"from_offset": 2, "to_offset": 1}, "before the beginning"),
        ({"from_time_ms": 2, "to_time_ms": 1}, "before the beginning"),
        ({"from_offset": -1}, "no whole number"),
        ({"to_offset": 2**63}, "no whole number"),
        ({"to_offset": True}, "no whole number"),
    ],
)
def test_bounds_when_they_cannot_be_meant_then_are_refused(said: Any, why: str) -> None:
    """Contradicting bounds are refused, and equal ones are an empty range."""
    with pytest.raises(InvalidArgument, match=why):
        RecordBounds(**said)
    assert RecordBounds(1, 1).to_offset == 1


def test_facts_when_leader_epochs_do_not_rise_then_are_refused() -> None:
    """Leader epochs that do not rise are refused."""
    with pytest.raises(InvalidArgument, match="do not rise"):
        QuestionFacts(histories={ORDERS: ((1, 0), (0, 5))})
    with pytest.raises(InvalidArgument, match="do not rise"):
        QuestionFacts(histories={ORDERS: ((0, 5), (1, 5))})
