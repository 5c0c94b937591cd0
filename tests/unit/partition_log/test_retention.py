"""Retention, and the other settings of a log."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import ConfigError
from rlmm.partition_log.retention import ClosedSegment, expired_count
from rlmm.partition_log.settings import LogSettings

CLOSED = [
    ClosedSegment(next_offset=10, size=100, newest_ms=1_000),
    ClosedSegment(next_offset=20, size=100, newest_ms=2_000),
    ClosedSegment(next_offset=30, size=100, newest_ms=3_000),
]


LIMITS: tuple[Any, ...] = ("log_start", "now_ms", "retention_bytes", "retention_ms")


@pytest.mark.parametrize(
    ("closed", "limits", "expected"),
    [
        pytest.param(CLOSED, (0, 10**9, None, None), 0, id="off"),
        pytest.param(CLOSED, (0, 3_500, None, 1_000), 2, id="by-age"),
        pytest.param(CLOSED, (0, 2_000, None, 1_000), 0, id="just-not-too-old"),
        pytest.param(CLOSED, (0, 10**9, None, 1_000), 3, id="all-closed-too-old"),
        pytest.param(CLOSED, (0, 0, 350, None), 0, id="size-not-reached"),
        pytest.param(CLOSED, (0, 0, 250, None), 1, id="by-size"),
        pytest.param(CLOSED, (0, 0, 0, None), 3, id="nothing-to-keep"),
        pytest.param(CLOSED, (20, 0, None, None), 2, id="below-log-start"),
        pytest.param(CLOSED, (19, 0, None, None), 1, id="log-start-within-a-segment"),
        pytest.param([CLOSED[2], CLOSED[0]], (0, 3_500, None, 1_000), 0, id="behind-a-young-one"),
    ],
)
def test_segments_when_a_limit_is_passed_then_go_from_the_front(
    closed: list[ClosedSegment], limits: tuple[int | None, ...], expected: int
) -> None:
    """Whole closed segments go, oldest first, and never more than a limit asks for."""
    assert expired_count(closed, 50, **dict(zip(LIMITS, limits, strict=True))) == expected


def test_settings_when_nothing_is_said_then_nothing_is_ever_deleted() -> None:
    """Retention is off by default, by size and by time."""
    settings = LogSettings()
    assert settings.retention_bytes is None
    assert settings.retention_ms is None


@pytest.mark.parametrize(
    "changes",
    [
        {"segment_bytes": 0},
        {"segment_bytes": 2**31},
        {"segment_ms": 0},
        {"index_interval_bytes": 0},
        {"batch_bytes_max": 0},
        {"sync_interval_ms": 0},
        {"checkpoint_interval_ms": 0},
        {"tick_interval_ms": 0},
        {"retention_bytes": -1},
        {"retention_ms": -1},
        {"open_files_max": 0},
    ],
    ids=str,
)
def test_setting_when_it_cannot_work_then_is_refused_by_name(changes: dict[str, int]) -> None:
    """A value that no log can be run with is named at once."""
    with pytest.raises(ConfigError, match=next(iter(changes))):
        LogSettings(**changes)  # type: ignore[arg-type]  # the names are chosen above
