"""A secret of the settings: it is kept apart from all that is shown."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Secret:
    """A text that no log line, traceback or support bundle may show."""

    value: str = field(repr=False)

    def __repr__(self) -> str:
        return "***"
