"""The settings of log lines."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import ConfigError
from rlmm.telemetry.settings import LoggingSettings, LogLevel

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
