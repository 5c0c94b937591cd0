"""Times, and times that passed, as people say them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def duration_text(seconds: float) -> str:
    if seconds < 0:
        return f"-{duration_text(-seconds)}"
    if seconds < 10:
        return f"{seconds:.3g}s" if seconds else "0s"
    left = round(seconds)
    parts: list[tuple[int, str]] = []
    for name, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or parts:
            parts.append((count, name))
        if len(parts) == 2:
            break
    return " ".join(f"{count}{name}" for count, name in parts if count)


def moment_text(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms // 1_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"
