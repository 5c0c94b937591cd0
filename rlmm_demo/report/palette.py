"""The colours, in light and in dark, and how the parts of a picture are drawn. Pure."""

from __future__ import annotations

from typing import Final

# Warm is what brokers pay for, cool is what lies in the tier: a pair that is told apart by
# whoever sees no red or no green. Contrast of ink and muted text on paper and card is above 4.5.
LIGHT: Final = {
    "paper": "#f6f5f1",
    "card": "#ffffff",
    "sunk": "#f3f2ee",
    "ink": "#1b232c",
    "muted": "#5c6670",
    "line": "#e1dfd8",
    "disk": "#e0901f",
    "disk-soft": "#fbe9cc",
    "tier": "#2f66c4",
    "tier-ink": "#2455a8",
    "rest": "#8a939c",
    "rest-ink": "#5c6670",
    "warn-ink": "#96590a",
    "bad": "#c2243c",
    "good": "#1b7a4b",
    "good-soft": "#e2f3e9",
    "bad-soft": "#fbe4e7",
}
DARK: Final = {
    "paper": "#0e1318",
    "card": "#161d24",
    "sunk": "#0f151b",
    "ink": "#e8ecef",
    "muted": "#9aa6b1",
    "line": "#2a343e",
    "disk": "#f0aa45",
    "disk-soft": "#46351b",
    "tier": "#6fa3f5",
    "tier-ink": "#8db7fa",
    "rest": "#7c8894",
    "rest-ink": "#a3aeb9",
    "warn-ink": "#f0b45c",
    "bad": "#ff7082",
    "good": "#5fd096",
    "good-soft": "#16321f",
    "bad-soft": "#40191f",
}

SANS: Final = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, "
    "'Liberation Sans', sans-serif"
)
MONO: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"

_PARTS: Final = """
text{font-family:SANS;font-size:12px;fill:var(--ink)}
.small{font-size:11px;fill:var(--muted)}
.name{font-size:12.5px;font-weight:600}
.moment{font-size:13.5px;font-weight:600}
.figure{font-variant-numeric:tabular-nums}
.end{text-anchor:end}
.middle{text-anchor:middle}
.halo{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.track{fill:var(--sunk)}
.rule{stroke:var(--line);stroke-width:1;fill:none}
.axis{stroke:var(--muted);stroke-width:1;fill:none}
.disk{fill:var(--disk)}
.tier{fill:var(--tier)}
.active{fill:var(--disk-soft);stroke:var(--disk);stroke-width:1}
.gap-line{stroke:var(--bad);stroke-width:2.2}
.gap-ground{fill:var(--bad-soft)}
.gap-edge{fill:none;stroke:var(--bad);stroke-width:1}
.curve{fill:none;stroke-width:2.4;stroke-linejoin:round}
.curve-0{stroke:var(--rest)}
.curve-1{stroke:var(--tier)}
.curve-2{stroke:var(--disk)}
.said-0{fill:var(--rest-ink);font-weight:600}
.said-1{fill:var(--tier-ink);font-weight:600}
.said-2{fill:var(--warn-ink);font-weight:600}
.dot-0{fill:var(--rest)}
.dot-1{fill:var(--tier)}
.dot-2{fill:var(--disk)}
.after{opacity:.35}
.drop{stroke-dasharray:2 4;stroke-width:1.4;fill:none}
.sample{stroke:var(--tier);stroke-width:3.4;stroke-linecap:round;fill:none;opacity:.55}
.busy{fill:var(--sunk)}
.p50{stroke:var(--rest);stroke-width:1.4}
.p99{stroke:var(--disk);stroke-width:1.4}
.max{stroke:var(--bad);stroke-width:1.4}
.said-p50{fill:var(--rest-ink);font-weight:600}
.said-p99{fill:var(--warn-ink);font-weight:600}
.said-max{fill:var(--bad);font-weight:600}
"""


def colours(scope: str) -> str:
    """The colours as properties of *scope*, light and, where that is asked for, dark."""
    return (
        f"{scope}{{{_properties(LIGHT)}}}\n"
        f"@media (prefers-color-scheme:dark){{{scope}{{{_properties(DARK)}}}}}\n"
    )


def picture_style(scope: str) -> str:
    """How the parts of pictures in *scope* are drawn."""
    lines = _PARTS.replace("SANS", SANS).strip().splitlines()
    return "".join(f"{scope} {line}\n" for line in lines)


def _properties(named: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in named.items())
