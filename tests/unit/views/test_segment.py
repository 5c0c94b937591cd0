"""Segments as they are shown."""

from __future__ import annotations

import json

import pytest

from rlmm.metadata.ids import INT64_MAX
from rlmm.metadata.segment import SegmentState
from rlmm.views.segment import segment_view
from rlmm.views.values import in_milliseconds, iso_time, plain
from tests.support.builders import segment_id, started, tp


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-1, None),
        (253_402_300_800_000, None),
        (INT64_MAX, None),
        (None, None),
    ],
)
def test_time_when_it_can_be_said_then_it_is_iso(ms: int | None, text: str | None) -> None:
    """A timestamp is ISO if it can be, and any other value is no error."""
    assert iso_time(ms) == text


def test_segment_when_shown_then_nothing_is_lost() -> None:
    """Offsets are exact, epochs are named, and empty custom metadata differs from none."""
    segment = started(
        segment_id("a", tp("orders", 3)), 5, INT64_MAX, {0: 5, 2: 7}, custom_metadata=b"",
        max_timestamp_ms=-1, state=SegmentState.COPY_SEGMENT_STARTED,
    )  # fmt: skip
    shown = json.loads(json.dumps(plain(segment_view(segment))))
    assert shown["last_offset"] == INT64_MAX
    assert shown["epochs"] == [{"epoch": 0, "start_offset": 5}, {"epoch": 2, "start_offset": 7}]
    assert (shown["custom_metadata"], shown["custom_metadata_bytes"]) == ("", 0)
    assert (shown["max_timestamp_ms"], shown["max_timestamp"]) == (-1, None)
    assert shown["state"] == "COPY_SEGMENT_STARTED"
    without = segment_view(started(segment_id("b")))
    assert (without.custom_metadata, without.custom_metadata_bytes) == (None, None)


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
