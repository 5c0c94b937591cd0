"""Single values as people read them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlmm.base.time_text import duration_text
from rlmm.cli.printing.answer import ValueFormat
from rlmm.views.values import iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = "-"
"""Where there is no value."""
RIGHT = frozenset({ValueFormat.NUMBER, ValueFormat.SIZE, ValueFormat.DURATION})
"""Forms that stand to the right."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def partition_label(item: Mapping[str, object]) -> str:
    """`orders-3`, of an item that has a topic and a partition."""
    return f"{item.get('topic')}-{item.get('partition')}"


def value_at(item: Mapping[str, object], key: str) -> object:
    """What stands at *key* in *item*, a dot going into an object; None where nothing does."""
    found: object = item
    for name in key.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def cell(value: object, form: ValueFormat) -> str:
    """*value* in *form*, on one line, without anything that a terminal would obey."""
    if value is None:
        return NOTHING
    match form, value:
        case ValueFormat.SIZE, int():
            return size_text(value)
        case ValueFormat.TIME, int():
            return iso_time(value) or NOTHING
        case ValueFormat.DURATION, int() | float():
            return duration_text(value)
        case ValueFormat.EPOCHS, list():
            return epochs_text(value)
        case ValueFormat.HEX, bytes():
            return value.hex()
        case ValueFormat.STATE, str():
            return state_text(value)
    return visible(plain_text(value))


def plain_text(value: object) -> str:
    """A value of JSON on one line; the same for scripts that split columns."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(plain_text(one) for one in value)
        case dict():
            return ",".join(f"{name}={plain_text(one)}" for name, one in value.items())
    return str(value)


def visible(text: str) -> str:
    """The same with what cannot be seen written out: a name may hold anything."""
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def state_text(state: str) -> str:
    """A state of Kafka's without what is said by where it stands."""
    return state.replace("_SEGMENT", "", 1).replace("_PARTITION", "", 1)


def states_text(counts: Mapping[str, int]) -> str:
    """How many there are in each state: 3 COPY_STARTED, 17 COPY_FINISHED; not those without."""
    return ", ".join(f"{count:,} {state_text(state)}" for state, count in counts.items() if count)


def size_text(size: int) -> str:
    amount, unit = float(abs(size)), 0
    while amount >= 1_024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1_024, unit + 1
    sign = "-" if size < 0 else ""
    return f"{size} B" if unit == 0 else f"{sign}{amount:.1f} {_UNITS[unit]}"


def epochs_text(epochs: list[object]) -> str:
    """Leader epochs with their first offsets: 0:0 1:50."""
    pairs = (one for one in epochs if isinstance(one, dict))
    return " ".join(f"{one.get('epoch')}:{one.get('start_offset')}" for one in pairs)
