"""The settings of a log."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError
from rlmm.partition_log.settings import LogSettings


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
