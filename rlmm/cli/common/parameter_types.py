"""Parameter types of commands: sizes, times, moments, partitions, segments."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any

import click

from rlmm.errors import InvalidArgument
from rlmm.inspection.selectors import (
    parse_at,
    parse_partition,
    parse_position,
    parse_segment,
    parse_subject,
    parse_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIZES = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "PIB": 2**50,
}
_TIMES = {"MS": 1, "S": 1_000, "M": 60_000, "H": 3_600_000, "D": 86_400_000, "W": 604_800_000}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


class _Amount(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    """A number with a unit, converted to the smallest unit."""

    def __init__(self, name: str, units: Mapping[str, int], example: str, *, least: int) -> None:
        self.name = name
        self._units = units
        self._example = example
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Refuse a value without a unit, or with an unknown one."""
        if isinstance(value, int):
            return value
        found = _AMOUNT.fullmatch(str(value))
        unit = None if found is None else self._units.get(found[2].upper())
        if found is None or unit is None:
            self.fail(f"{value!r} is no {self.name}: {self._example} is one.", param, ctx)
        amount = float(found[1]) * unit
        if not (math.isfinite(amount) and self._least <= amount < 2**62):
            self.fail(f"{value!r} is too small, or too large.", param, ctx)
        return round(amount)


SIZE = _Amount("size", _SIZES, "500MB or 1.5GiB", least=0)
"""In bytes; decimal units count in thousands, those with an i in 1024s."""
POSITIVE_SIZE = _Amount("size", _SIZES, "500MB or 1.5GiB", least=1)
TIME = _Amount("time", _TIMES, "30s, 12h or 7d", least=0)
POSITIVE_TIME = _Amount("time", _TIMES, "30s, 12h or 7d", least=1)


class _Parsed(click.ParamType):  # type: ignore[type-arg]  # it takes none when it runs
    """A text that a function parses; its refusal is a usage error."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except InvalidArgument as error:
            self.fail(f"{error}.", param, ctx)


WHEN = _Parsed("time", lambda text: parse_time(text, time.time_ns() // 1_000_000))
"""A moment, in milliseconds since the epoch: ISO 8601, milliseconds, `-7d` or `now`."""
PARTITION = _Parsed("partition", parse_partition)
POSITION = _Parsed("position", parse_position)
SEGMENT = _Parsed("segment", parse_segment)
MOMENT = _Parsed("moment", lambda text: parse_at(text, time.time_ns() // 1_000_000))
SUBJECT = _Parsed("subject", parse_subject)
