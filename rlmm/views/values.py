"""Single values as they are shown: times, bytes, ids. Pure."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

View = dict[str, object]
"""An object of JSON."""


def iso_time(ms: int | None) -> str | None:
    """A time in UTC as ISO 8601 writes it; `None` where there is none, or none that it can say."""
    if ms is None or ms < 0:
        return None
    try:
        at = datetime.fromtimestamp(ms // 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1_000:03d}Z" if at.year >= 1_000 else None


def base64_text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def age_s(since_s: float | None, now_s: float) -> float | None:
    """Seconds since then, to the millisecond."""
    return None if since_s is None else round(max(0.0, now_s - since_s), 3)


def age_ms_s(since_ms: int | None, now_ms: int) -> float | None:
    """Seconds since a time of the wall clock; 0 where that clock was set back."""
    return None if since_ms is None else max(0, now_ms - since_ms) / 1_000


def in_milliseconds(shown: object) -> object:
    """The same without fractions, which no frame carries: `age_s` of 0.25 is `age_ms` of 250."""
    if isinstance(shown, list):
        return [in_milliseconds(one) for one in shown]
    if not isinstance(shown, dict):
        return shown
    return dict(_in_milliseconds(name, value) for name, value in shown.items())


def _in_milliseconds(name: str, value: object) -> tuple[str, object]:
    if not name.endswith("_s"):
        return name, in_milliseconds(value)
    ms = round(value * 1_000) if isinstance(value, (int, float)) else None
    return f"{name[:-2]}_ms", ms
