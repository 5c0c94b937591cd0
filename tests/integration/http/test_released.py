"""Answers of released versions of the API: clients of those versions can read today's answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.server.released_http import ASKED, FILE, answers, shape

RELEASED = json.loads(FILE.read_text(encoding="utf-8"))
EXACT = [name for name, (_, more) in ASKED.items() if more is not None]
"""Questions about a partition: their answers depend on what is stored alone."""


def test_released_file_then_has_every_answer() -> None:
    """The released file has an answer for each question of this test."""
    assert list(RELEASED) == list(ASKED)
    assert all(RELEASED[name]["path"] == path for name, (path, _) in ASKED.items())


@pytest.mark.parametrize("name", ASKED)
async def test_released_answer_then_has_its_fields_in_todays(name: str) -> None:
    """A field may be added; none goes, or becomes another kind of value, but from or to null."""
    answer = (await answers())[name]
    assert answer.status == RELEASED[name]["status"]
    kept, today = shape(RELEASED[name]["shown"]), shape(answer.shown)
    for place, kind in kept.items():
        assert place in today, f"{place} is gone"
        assert "null" in {kind, today[place]} or today[place] == kind, place


@pytest.mark.parametrize("name", EXACT)
async def test_released_answer_about_a_partition_then_has_the_same_values(name: str) -> None:
    """A released answer and today's have the same values for the same state."""
    require_within((await answers())[name].shown, RELEASED[name]["shown"])


def require_within(today: Any, kept: Any) -> None:
    if isinstance(kept, dict):
        assert set(kept) <= set(today)
        for field, value in kept.items():
            require_within(today[field], value)
    elif isinstance(kept, list):
        assert len(today) == len(kept)
        for one, value in zip(today, kept, strict=True):
            require_within(one, value)
    else:
        assert today == kept
