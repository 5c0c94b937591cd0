"""Cells: single values as people read them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.base.time_text import duration_text
from rlmm.base.visible_text import visible
from rlmm.cli.printing.answer import Column, ValueFormat
from rlmm.views.values import iso_time

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = "-"
RIGHT = frozenset({ValueFormat.NUMBER, ValueFormat.SIZE, ValueFormat.DURATION})

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def partition_label(item: Mapping[str, object]) -> str:
    """Return `orders-3` for an item with topic and partition."""
    return f"{item.get('topic')}-{item.get('partition')}"


PARTITION_COLUMNS = (
    Column("", "PARTITION", made_of=partition_label),
    Column("topic", "TOPIC", is_extra=True),
    Column("partition", "P", ValueFormat.NUMBER, is_extra=True),
    Column("topic_id", "TOPIC ID", is_extra=True),
)


def value_at(item: Mapping[str, object], key: str) -> object:
    """Return the value at *key* in *item*, where a dot leads into an object; None if absent."""
    found: object = item
    for name in key.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def cell(value: object, form: ValueFormat) -> str:
    """Return *value* in *form* on one line, without terminal control characters."""
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
    """Return a JSON value on one line, unformatted, for scripts that split columns."""
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


def state_text(state: str) -> str:
    """Return the name of a Kafka state without the part that its column repeats."""
    return state.replace("_SEGMENT", "", 1).replace("_PARTITION", "", 1)


def states_text(counts: Mapping[str, int]) -> str:
    """Return the count of each state that occurs: 3 COPY_STARTED, 17 COPY_FINISHED."""
    return ", ".join(f"{count:,} {state_text(state)}" for state, count in counts.items() if count)


def size_text(size: int) -> str:
    amount, unit = float(abs(size)), 0
    while amount >= 1_024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1_024, unit + 1
    sign = "-" if size < 0 else ""
    return f"{size} B" if unit == 0 else f"{sign}{amount:.1f} {_UNITS[unit]}"


def epochs_text(epochs: list[object]) -> str:
    """Return leader epochs with their first offsets: 0:0 1:50."""
    pairs = (one for one in epochs if isinstance(one, dict))
    return " ".join(f"{one.get('epoch')}:{one.get('start_offset')}" for one in pairs)
