"""The tables of `docs/performance.md`: the recorded runs of `bench native` and `bench broker`."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

from tools.documents import table

RESULTS = Path(__file__).parent.parent / "bench" / "results"
SECTIONS = {
    "N1": "decode + apply",
    "N2": "memory",
    "N3": "look-ups in one process",
    "N4": "state images",
    "N5": "start of `rlmm serve`",
    "N6": "broker to queryable",
    "N7": "look-ups by the frame server",
    "N8": "growth",
    "N9": "the event loop",
}
_QUIET = 1.0
"""Load of the machine before a run, above which its times are those of a busy machine."""
_WHOLE = 2_444_444
PAIRS = ("look-up p", "processor time of the broker")
"""Figures of the broker's benchmark that stand there for each manager, without a ratio."""


def _recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def performance_machine() -> str:
    run = _recorded("native.json")
    machine, sizes = run["machine"], run["sizes"]
    before, after = run["load_average_before_and_after"]
    lines = [
        f"Recorded with version {run['version']} on {machine['cores']} cores "
        f"({machine['processor']}), {machine['memory_gib']} GiB, {machine['python']}; "
        f"{sizes['events']:,} events of {sizes['user_partitions']:,} user partitions, rounds of "
        f"each comparison: {sizes['rounds']}; load of the machine before the run {before}, "
        f"behind it {after}."
    ]
    if before > _QUIET:
        lines.append("**The machine had other work: wall times and tails are of a busy one.**")
    if sizes["events"] < _WHOLE:
        lines.append(
            f"**{sizes['events']:,} events, where the limits are for {_WHOLE:,}: no row below "
            "proves or refutes a limit.**"
        )
    missing = [number for number in SECTIONS if number not in run["sections"]]
    if missing:
        lines.append(f"**Not run: {', '.join(missing)}.**")
    lines += [f"Not measured: {note}." for note in run.get("notes", [])]
    return "  \n".join(lines) + "\n"


def performance_asked() -> str:
    """Return everything that is asked, section by section, with what was measured."""
    rows = [
        (*_row(figure), _limit(figure), "met" if figure["met"] else "**missed**")
        for figure in _recorded("native.json")["figures"]
        if "met" in figure
    ]
    return table(("", "figure", "measured", "asked", ""), sorted(rows, key=itemgetter(0)))


def performance_measured() -> str:
    """Return every other figure, section by section."""
    figures = _recorded("native.json")["figures"]
    parts = []
    for number, title in SECTIONS.items():
        rows = [
            _row(figure)[1:]
            for figure in figures
            if "met" not in figure and _split(figure)[0] == number
        ]
        if rows:
            parts.append(f"### {number}: {title}\n\n{table(('figure', 'measured'), rows)}")
    return "\n".join(parts)


def kafka_ahead() -> str:
    """Return the comparisons with Kafka in which it is ahead: ratios below 1, of native to it."""
    rows = [
        _row(figure)
        for figure in _recorded("native.json")["figures"]
        if figure["unit"] == "times"
        and " / " in figure["name"]
        and "Kafka's" in figure["name"]
        and _is_ahead(figure)
    ]
    if not rows:
        return "In no comparison that was run Kafka's own classes are ahead.\n"
    return table(("", "comparison in which Kafka's side is ahead", "measured"), rows)


def _is_ahead(figure: dict[str, Any]) -> bool:
    """Of memory less is better, of everything else more."""
    is_memory = figure["name"].startswith("N2:")
    return bool(figure["value"] > 1 if is_memory else figure["value"] < 1)


def _split(figure: dict[str, Any]) -> tuple[str, str]:
    number, _, name = figure["name"].partition(": ")
    return number, name


def _row(figure: dict[str, Any]) -> tuple[str, str, str]:
    number, name = _split(figure)
    return number, name, f"{_rounded(figure['value'])} {figure['unit']}"


def _rounded(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _limit(figure: dict[str, Any]) -> str:
    if "asked_at_least" in figure:
        return f">= {figure['asked_at_least']:g}"
    return f"<= {figure['asked_at_most']:.3g}"


def broker_ahead() -> str:
    """Return what the recorded run of `bench broker` has against rlmm, beside Kafka's manager."""
    figures = _recorded("broker.json")["figures"]
    units = {figure["name"]: figure["unit"] for figure in figures}
    found = {figure["name"]: figure["value"] for figure in figures}
    rows = [
        (name, f"{_rounded(value)} times")
        for name, value in found.items()
        if " / " in name and "Kafka's manager" in name and _is_against_us(name, value)
    ]
    for name, theirs in found.items():
        ours = found.get(name.replace("Kafka's manager", "rlmm"))
        if name.startswith(PAIRS) and ours is not None and ours > theirs:
            unit = units[name]
            rows.append((name.replace("Kafka's manager", "rlmm beside Kafka's manager"),
                         f"{_rounded(ours)} {unit} beside {_rounded(theirs)} {unit}"))  # fmt: skip
    return table(("comparison in which Kafka's manager is ahead", "measured"), rows)


def _is_against_us(name: str, value: float) -> bool:
    """Speeds of reading are better when higher; times, memory and processor time when lower."""
    return value < 1 if name.startswith("tier read") else value > 1
