"""Numbers as people read them, and the ticks of an axis. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

UNKNOWN = "\N{EN DASH}"
"""Where there is no number."""


def number_text(value: float) -> str:
    """A number with as many digits as say something: 200,000, 41.2, 0.0813; no 4.10."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(digits, 9)}f}"
    return text.rstrip("0").removesuffix(".")


def short_text(value: float) -> str:
    """A number for a tick: 40k, 1.5M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:,g}"


def amount_text(value: float, unit: str) -> str:
    """A number and its unit, which do not part at the end of a line; many bytes are MB."""
    if unit == "B" and 10_000 <= value < math.inf:
        return bytes_text(round(value))
    return f"{number_text(value)}\N{NO-BREAK SPACE}{unit}" if unit else number_text(value)


def bytes_text(size: int) -> str:
    """A size in the unit that makes it short: 512 B, 41.2 MB."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1_000**power:
            return amount_text(float(f"{size / 1_000**power:.3g}"), unit)
    return f"{size}\N{NO-BREAK SPACE}B"


def ticks(low: float, high: float, count: int) -> tuple[float, ...]:
    """Round values from *low* to *high*, about *count* of them, at steps of 1, 2 or 5."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return (low,)
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Rounded, as 3 * 0.1 is not 0.3.
    return tuple(round(step * number, 12) for number in range(first, last + 1))


def decades(low: float, high: float) -> tuple[float, ...]:
    """The powers of ten from the one at or below *low* to the one at or above *high*."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    return tuple(10.0**power for power in range(first, max(last, first + 1) + 1))


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a value stands on an axis that goes from *start* to *end*, in pixels."""

    low: float
    high: float
    start: float
    end: float
    is_logarithmic: bool = False

    def at(self, value: float) -> float:
        """Its place; what lies outside of the axis stands at its end."""
        kept = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.is_logarithmic:
            kept, low, high = math.log10(kept), math.log10(low), math.log10(high)
        share = (kept - low) / (high - low) if high > low else 0.0
        return self.start + share * (self.end - self.start)
