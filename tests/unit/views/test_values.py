"""Single values, as they are shown."""

from __future__ import annotations

from rlmm.views.values import in_milliseconds


def test_times_when_there_are_no_fractions_then_are_told_in_milliseconds() -> None:
    """Seconds become whole milliseconds under another name, at any depth, and other values stay."""
    shown = {
        "age_s": 0.0476,
        "never_s": None,
        "places": [{"age_s": 2.0, "size_bytes": 3, "is_open": True}],
        "words": "as they are",
    }
    assert in_milliseconds(shown) == {
        "age_ms": 48,
        "never_ms": None,
        "places": [{"age_ms": 2_000, "size_bytes": 3, "is_open": True}],
        "words": "as they are",
    }
