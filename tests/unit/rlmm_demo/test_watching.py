"""How long look-ups took beside a replay: which of them count."""

from __future__ import annotations

import pytest

from rlmm_demo.screens.watching import stalls_of


@pytest.mark.parametrize(
    ("asked_s", "took_ms", "points"),
    [
        (11.0, 5.0, ((1.0, 5.0),)),
        (9.9, 500.0, ((0.0, 500.0),)),
        (11.9, 4_000.0, ((1.9, 4_000.0),)),
        (9.0, 5.0, None),
        (12.1, 5.0, None),
    ],
    ids=["within", "begun-before", "answered-after", "before", "after"],
)
def test_stalls_when_any_part_of_the_replay_falls_into_a_look_up_then_it_counts(
    asked_s: float, took_ms: float, points: tuple[tuple[float, float], ...] | None
) -> None:
    """A look-up counts when any part of the replay falls into it."""
    found = stalls_of([(asked_s, took_ms)], 10.0, 2.0)
    assert (found and [(round(at_s, 3), ms) for at_s, ms in found.points]) == (
        points and list(points)
    )
