"""Numbers as people read them. Pure."""

from __future__ import annotations

import math

UNKNOWN = "\N{EN DASH}"


def number_text(value: float) -> str:
    """Return at least three digits, and no zeros behind the last one: 200,000, 41.2, 0.0813."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(digits, 9)}f}"
    return text.rstrip("0").removesuffix(".")


def amount_text(value: float, unit: str) -> str:
    """Return a number and its unit, joined by a no-break space; many bytes as kB, MB ..."""
    if unit == "B" and 10_000 <= value < math.inf:
        return bytes_text(round(value))
    return f"{number_text(value)}\N{NO-BREAK SPACE}{unit}" if unit else number_text(value)


def bytes_text(size: int) -> str:
    """Return a size in its shortest unit: 512 B, 41.2 MB."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1_000**power:
            return amount_text(float(f"{size / 1_000**power:.3g}"), unit)
    return f"{size}\N{NO-BREAK SPACE}B"
