"""Repeated log lines, and the settings of log lines."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from rlmm.errors import ConfigError
from rlmm.telemetry.repeats import KINDS_MAX, PLACES_MAX, LineKind, RepeatCount, RepeatedLines
from rlmm.telemetry.settings import LoggingSettings, LogLevel

AWAY = LineKind("rlmm.pump", logging.WARNING, "broker %d is away")


def test_line_when_repeated_then_so_many_are_written_and_the_rest_counted() -> None:
    """The first lines are written, and one count of the others follows at the end of the window."""
    repeats = RepeatedLines(repeats_max=2, window_ms=100)
    assert [repeats.admits(AWAY, None, now_ms) for now_ms in (0, 1, 2, 99)] == [
        True,
        True,
        False,
        False,
    ]
    assert repeats.due(99) == []
    assert repeats.due(100) == [RepeatCount(AWAY, suppressed=2, window_ms=100)]
    assert repeats.due(100) == []


def test_line_when_its_window_is_over_then_is_written_again() -> None:
    """A window begins with the first line in it."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    assert repeats.admits(AWAY, None, 50)
    assert not repeats.admits(AWAY, None, 149)
    assert repeats.due(150)
    assert repeats.admits(AWAY, None, 150)


def test_lines_when_cluster_logger_level_or_template_differ_then_are_no_repeats() -> None:
    """Only lines of one cluster, logger, level and template are repeats."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    assert repeats.admits(AWAY, None, 0)
    assert repeats.admits(replace(AWAY, logger="rlmm.gate"), None, 0)
    assert repeats.admits(replace(AWAY, level=logging.ERROR), None, 0)
    assert repeats.admits(replace(AWAY, template="another"), None, 0)
    assert repeats.admits(replace(AWAY, cluster="west"), None, 0)
    assert not repeats.admits(AWAY, None, 0)


def test_window_when_nothing_was_held_back_then_is_not_told() -> None:
    """The end of a window without repeats writes no line."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    assert repeats.admits(AWAY, None, 0)
    assert repeats.due(1_000) == []


def test_lines_when_too_many_differ_then_are_written_uncounted() -> None:
    """The memory of templates is bounded, and further lines are written uncounted."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    for number in range(KINDS_MAX):
        assert repeats.admits(LineKind("x", 0, str(number)), None, 0)
    assert all(repeats.admits(AWAY, None, 0) for _ in range(3))
    assert not repeats.admits(LineKind("x", 0, "1"), None, 0)


def test_counts_when_it_ends_then_are_all_told() -> None:
    """The last lines of a process do not hide how many there were."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    for _ in range(3):
        repeats.admits(AWAY, None, 0)
    assert repeats.due(None) == [RepeatCount(AWAY, suppressed=2, window_ms=100)]


def test_lines_when_of_many_partitions_then_each_has_its_first_and_they_share_the_rest() -> None:
    """Each partition has its first lines, and further ones of all share a limit."""
    repeats = RepeatedLines(repeats_max=3, window_ms=100)
    assert [repeats.admits(AWAY, 7, 0) for _ in range(5)] == [True, True, True, False, False]
    assert [repeats.admits(AWAY, place, 1) for place in (7, 8, 9, 8, 9)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert repeats.due(100) == [RepeatCount(AWAY, suppressed=5, window_ms=100)]
    assert repeats.admits(AWAY, 8, 100)


def test_lines_when_of_too_many_metadata_partitions_then_are_held_back() -> None:
    """The memory of partitions is bounded, and lines of further ones are suppressed and counted."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    admitted = [repeats.admits(AWAY, place, 0) for place in range(PLACES_MAX + 2)]
    assert admitted == [True] * PLACES_MAX + [False] * 2
    assert repeats.due(None) == [RepeatCount(AWAY, suppressed=2, window_ms=100)]


def test_limit_when_changed_then_holds_at_once_and_windows_keep_their_length() -> None:
    """A changed limit holds at once, and a new length from the next window on."""
    repeats = RepeatedLines(repeats_max=1, window_ms=100)
    assert repeats.admits(AWAY, None, 0)
    repeats.limit(2, 1_000)
    assert [repeats.admits(AWAY, None, 1) for _ in range(2)] == [True, False]
    assert repeats.due(100) == [RepeatCount(AWAY, suppressed=1, window_ms=100)]
    assert repeats.admits(AWAY, None, 100)
    assert repeats.due(1_099) == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no repeats": ({"repeats_max": 0}, "logging.repeats_max must be a whole number from 1"),
    "no window": ({"repeats_window_ms": 2**31}, "logging.repeats_window_ms must be a whole"),
    "no level": ({"levels": ("rlmm.pump",)}, "logging.levels must be MODULE=LEVEL"),
    "unknown level": ({"levels": ("rlmm=loud",)}, "debug, info, warning, error, got 'rlmm=loud'"),
    "no module": ({"levels": ("=debug",)}, "logging.levels must be MODULE=LEVEL"),
    "no name": ({"levels": ("rlmm..pump=debug",)}, "logging.levels must be MODULE=LEVEL"),
}


@pytest.mark.parametrize(("wrong", "said"), WRONG.values(), ids=WRONG)
def test_f97_logging_setting_when_wrong_then_by_its_key(wrong: dict[str, Any], said: str) -> None:
    """Failure scenario F97: the error names the key and the possible values at once."""
    with pytest.raises(ConfigError, match=said):
        LoggingSettings(**wrong)


def test_levels_when_said_then_are_known_by_module() -> None:
    """Levels are set by module, whatever the white space, and the later of two counts."""
    settings = LoggingSettings(levels=("rlmm.pump = debug", "aiokafka=info", "aiokafka=error"))
    assert settings.module_levels() == {"rlmm.pump": LogLevel.DEBUG, "aiokafka": LogLevel.ERROR}
