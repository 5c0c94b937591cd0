"""Settings of log lines, with the reason of each default. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from rlmm.base.whole_numbers import require_whole_numbers
from rlmm.errors import ConfigError

_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)


class LogFormat(StrEnum):
    AUTO = "auto"
    HUMAN = "human"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LoggingSettings:
    format: LogFormat = LogFormat.AUTO
    """`human`, `json` (one object per line), or `auto`: for people on a terminal, JSON elsewhere,
    because then a program reads it."""
    level: LogLevel = LogLevel.INFO
    """Least level of a line: `debug`, `info`, `warning` or `error`. At `info` a service that has
    nothing to tell is silent."""
    levels: tuple[str, ...] = ()
    """Levels of single modules with all below them, as `MODULE=LEVEL`: `rlmm.pump=debug`. A line
    names its module as `logger`. The longest name that fits counts. SIGHUP has a running service
    read this section again."""
    repeats_max: int = 10
    """Lines of one and the same message of a cluster that are written within a window; the rest
    are counted, so that a broker that is away does not fill the disk. The first one of each
    metadata partition is always written, so that none hides behind the others."""
    repeats_window_ms: int = 60_000
    """Length of that window; when it ends, the count of what was not written is."""

    def __post_init__(self) -> None:
        require_whole_numbers("logging.", self)
        self.module_levels()

    def module_levels(self) -> dict[str, LogLevel]:
        found = {}
        for text in self.levels:
            module, _, level = text.partition("=")
            module, level = module.strip(), level.strip()
            if not _MODULE.fullmatch(module) or level not in set(LogLevel):
                msg = (
                    "logging.levels must be MODULE=LEVEL with a level of "
                    f"{', '.join(LogLevel)}, got {text!r}"
                )
                raise ConfigError(msg)
            found[module] = LogLevel(level)
        return found
