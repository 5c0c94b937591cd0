"""
Answer of a command, in the form that every printer takes. Each kind has a version and a JSON schema
(`rlmm.cli.answer_schemas`): names are an interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence

    from rlmm.views.values import View, ViewObject


class ValueFormat(StrEnum):
    """Tells how a table shows a value; other outputs print it unchanged."""

    TEXT = "text"
    NUMBER = "number"
    SIZE = "size"
    TIME = "time"
    """Milliseconds since the epoch: 2026-01-01T00:00:00.000Z."""
    DURATION = "duration"
    """Seconds are shown as `2h 5m`."""
    EPOCHS = "epochs"
    """A list of {epoch, start_offset}: 0:0 1:50."""
    HEX = "hex"
    STATE = "state"
    """A state of Kafka's: COPY_SEGMENT_FINISHED is COPY_FINISHED."""


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    """Where the value stands in an item; a dot goes into an object."""
    title: str
    """As people read it, in capitals: START."""
    form: ValueFormat = ValueFormat.TEXT
    is_extra: bool = False
    """Only for CSV, TSV and wide tables: what has no room in 80 columns."""
    made_of: Callable[[View], object] | None = None
    """Makes the cell from the whole item, in tables alone; CSV and TSV have its parts."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """One answer. Items may be produced one by one; the foot is complete after the last item."""

    kind: str
    """Names the schema: `segments`."""
    columns: Sequence[Column]
    items: Iterable[ViewObject | View] | AsyncIterable[ViewObject | View]
    head: ViewObject | Mapping[str, object] = field(default_factory=dict)
    foot: Callable[[], ViewObject | View] | None = None
    text: Callable[[View], Iterable[str]] | None = None
    """One screen for people in place of a table, made of the whole document (head, items, foot)."""
    summary: Callable[[View], Iterable[str]] | None = None
    """Lines for people below a table, made of head and foot: totals in words."""
    exit_code: Callable[[], int] | int = 0
    """0, or 1 where something was found; asked when all is printed."""
    version: int = 1
    told: Sequence[str] = ()
    """Notes that standard error has already: documents repeat them, tables do not."""

    def head_fields(self) -> View:
        fields: View = plain(self.head)
        return fields

    def foot_fields(self) -> View:
        """Return the foot as plain values; all items must be out."""
        fields: View = {} if self.foot is None else plain(self.foot())
        return fields


class Printer(ABC):
    """Converts one answer to text. Each call returns the text that can be written now."""

    def begin(self) -> Iterable[str]:
        return ()

    @abstractmethod
    def item(self, item: View) -> Iterable[str]: ...

    def pause(self) -> Iterable[str]:
        """Return text that was held back; the next item may take long."""
        return ()

    def end(self, foot: View) -> Iterable[str]:
        del foot
        return ()
