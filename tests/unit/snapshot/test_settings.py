"""The settings of snapshots."""

from __future__ import annotations

import pytest

from rlmm.errors import ConfigError
from rlmm.snapshot.settings import SnapshotSettings


def test_settings_when_nothing_is_said_then_two_generations_are_kept() -> None:
    """The default of two generations leaves one when a snapshot is damaged."""
    assert SnapshotSettings().generations >= 2


@pytest.mark.parametrize(
    "changes",
    [
        {"interval_ms": 0},
        {"interval_ms": 2**31},
        {"interval_ms": 1.5},
        {"generations": 1},
        {"generations": True},
        {"free_bytes_min": -1},
        {"niceness": -1},
        {"niceness": 20},
    ],
    ids=str,
)
def test_setting_when_it_cannot_work_then_is_refused_by_name(changes: dict[str, int]) -> None:
    """A value that no snapshot can be written with is named at once."""
    with pytest.raises(ConfigError, match=next(iter(changes))):
        SnapshotSettings(**changes)
