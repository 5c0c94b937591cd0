"""Durations as Spark's settings say them."""

from __future__ import annotations

import pytest

from spark_tiering.execution.settings import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2s", 2.0),
        ("1500ms", 1.5),
        ("250", 0.25),
        (" 3 MIN ", 180.0),
        ("1h", 3_600.0),
        ("2 weeks", 0.0),
        ("soon", 0.0),
    ],
)
def test_duration_when_it_is_said_in_a_unit_then_is_in_seconds(text: str, seconds: float) -> None:
    """Spark's durations are read in seconds, and a number without unit is milliseconds."""
    assert seconds_of(text) == pytest.approx(seconds)
