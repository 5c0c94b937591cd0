"""The sizing figures of the sidecar in `docs/operating.md`: those of the recorded run, rounded."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "bench" / "results" / "sidecar.json"
LOOKUPS = 16
"""In one frame of the benchmark."""


def sidecar_sizing() -> str:
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    found = {figure["name"]: figure["value"] for figure in document["figures"]}
    single_us = found["server CPU per look-up, rlmm"]
    many_us = found[f"one frame of {LOOKUPS} look-ups, server CPU, 64 clients"] / LOOKUPS
    rows = [
        (
            f"memory of the process for an idle connection, of {document['sizes']['idle']:,}",
            f"{found['memory of the server'] / 1_000:.1f} kB",
        ),
        ("`segment_for` by the socket, 64 clients: a core of the service", _per_core(single_us)),
        (f"look-ups in frames of {LOOKUPS} (`segments_for`): the same", _per_core(many_us)),
        ("these 64 clients ask without a pause, on the same machine", _within(found, "rlmm")),
        ("the same beside the idle connections", _within(found, "beside them")),
    ]
    if "answered within, during a replay, p99" in found:
        rows.append(("the same while it replays at full speed", _within(found, "during a replay")))
    table = "".join(f"| {what} | {figure} |\n" for what, figure in rows)
    return f"| | figure |\n| --- | --- |\n{table}"


def _per_core(cpu_us: float) -> str:
    return f"{round(1e6 / cpu_us, -3):,.0f} in a second, {cpu_us:.1f} µs each"


def _within(found: dict[str, float], who: str) -> str:
    median_ms, most_ms = (
        found[f"answered within, {who}, {share}"] / 1_000 for share in ("p50", "p99")
    )
    return f"median {median_ms:.1f} ms, 99 of 100 within {most_ms:.1f} ms"
