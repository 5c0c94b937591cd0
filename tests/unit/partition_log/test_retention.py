"""Which segments have served their time."""

from __future__ import annotations

import pytest

from rlmm.partition_log.retention import ClosedSegment, expired_count

CLOSED = [
    ClosedSegment(next_offset=10, size=100, newest_ms=1_000),
    ClosedSegment(next_offset=20, size=100, newest_ms=2_000),
    ClosedSegment(next_offset=30, size=100, newest_ms=3_000),
]


@pytest.mark.parametrize(
    ("log_start", "now_ms", "retention_bytes", "retention_ms", "expected"),
    [
        pytest.param(0, 10**9, None, None, 0, id="off"),
        pytest.param(0, 3_500, None, 1_000, 2, id="by-age"),
        pytest.param(0, 2_000, None, 1_000, 0, id="just-not-too-old"),
        pytest.param(0, 10**9, None, 1_000, 3, id="all-closed-too-old"),
        pytest.param(0, 0, 350, None, 0, id="size-not-reached"),
        pytest.param(0, 0, 250, None, 1, id="by-size"),
        pytest.param(0, 0, 0, None, 3, id="nothing-to-keep"),
        pytest.param(20, 0, None, None, 2, id="below-log-start"),
        pytest.param(19, 0, None, None, 1, id="log-start-within-a-segment"),
    ],
)
def test_segments_when_a_limit_is_passed_then_go_from_the_front(
    log_start: int,
    now_ms: int,
    retention_bytes: int | None,
    retention_ms: int | None,
    expected: int,
) -> None:
    """Whole closed segments go, oldest first, and never more than a limit asks for."""
    count = expired_count(
        CLOSED,
        50,
        log_start=log_start,
        now_ms=now_ms,
        retention_bytes=retention_bytes,
        retention_ms=retention_ms,
    )
    assert count == expected


def test_segment_when_young_then_keeps_older_ones_behind_it() -> None:
    """Retention keeps every segment behind one that stays."""
    closed = [CLOSED[2], CLOSED[0]]
    assert expired_count(
        closed, 0, log_start=0, now_ms=3_500, retention_bytes=None, retention_ms=1_000
    ) == 0  # fmt: skip
