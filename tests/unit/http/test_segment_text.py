"""The text of a segment in a listing."""

from __future__ import annotations

import pytest

from rlmm.http.streaming import dumps, segment_text
from rlmm.metadata.ids import INT64_MAX
from rlmm.views.segment import segment_view
from tests.support.builders import segment_id, started, tp


@pytest.mark.parametrize(
    "topic", ["orders", "".join(map(chr, range(128))), "\u00fc\u2028\U0001f600", '"\\/'],
    ids=["plain", "ascii", "unicode", "quotes"],
)  # fmt: skip
def test_segment_when_it_is_listed_is_written_as_any_other_answer(topic: str) -> None:
    """Both writers of a segment give the same text for any topic name."""
    segment = started(
        segment_id("a", tp(topic, 3)), 5, INT64_MAX, {0: 5, 2: 7}, custom_metadata=b"\x00\xff"
    )
    assert segment_text(segment) == dumps(segment_view(segment))
