"""Durations as Spark's settings say them. Pure."""

from __future__ import annotations

import re

KILL_TIMEOUT = "spark.python.task.killTimeout"
"""How long a Python worker may go on whose task Spark knows to be over; 2 s where nobody said."""

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")


def seconds_of(text: str) -> float:
    """`2s`, `1500ms`; milliseconds where no unit is said. 0 for what is none: Spark refuses it."""
    found = _FORM.fullmatch(text.lower())
    return 0.0 if found is None else int(found[1]) * _UNITS_S.get(found[2], 0)
