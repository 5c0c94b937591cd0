"""
The fields of a plan's document, taken one by one. Pure.

Stricter than the reader of manifests: a number is a number, and nothing is passed over. What is
refused before it is read: more bytes, or more values, than any plan has.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rlmm.metadata.ids import INT32_MAX, INT64_MAX, INT64_MIN, Uuid
from spark_tiering.copy_plan.document import DOCUMENT_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Collection
    from enum import Enum

    from spark_tiering.segments.leader_epochs import Epochs

VALUES_MAX = 6_000_000
"""Most commas, colons and opening brackets; each value can take some hundred bytes of memory."""
TEXT_CHARACTERS_MAX = 1000

_MARKS = (b"{", b"[", b",", b":")
_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_Member = TypeVar("_Member", bound="Enum")


class NotThisForm(Exception):
    """Says what is wrong; it never leaves the reader."""


def load(content: bytes) -> Any:
    """What JSON *content* is, each name of an object once; raises `NotThisForm`."""
    if len(content) > DOCUMENT_BYTES_MAX:
        msg = f"{len(content)} bytes, at most {DOCUMENT_BYTES_MAX} are read"
        raise NotThisForm(msg)
    marks = sum(map(content.count, _MARKS))
    if marks > VALUES_MAX:
        msg = f"some {marks} values, at most {VALUES_MAX} are read"
        raise NotThisForm(msg)
    try:
        return json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        msg = f"it is not JSON: {error}"
        raise NotThisForm(msg) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return fields


def _no_number(text: str) -> NoReturn:
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)


class PlanFields:
    """One object of the document; *where* is its path. Every method raises `NotThisForm`."""

    def __init__(self, value: object, where: str, names: Collection[str] | None = None) -> None:
        self._where = where
        if not isinstance(value, dict):
            self._refuse("", value, "an object")
        self._fields: dict[str, Any] = value
        if names is not None and set(value) != set(names):
            odd = sorted(set(value) ^ set(names))
            msg = f"{where}: fields that are missing or unknown: {', '.join(odd)[:200]!r}"
            raise NotThisForm(msg)

    def value(self, name: str) -> Any:
        """Whatever stands under *name*."""
        if name not in self._fields:
            msg = f"{self._where}.{name}: there is no such field"
            raise NotThisForm(msg)
        return self._fields[name]

    def number(self, name: str, least: int = 0, most: int = INT64_MAX) -> int:
        found = self.value(name)
        if type(found) is not int or not least <= found <= most:
            self._refuse(name, found, f"a whole number from {least} to {most}")
        return found

    def number_or_none(self, name: str, most: int = INT64_MAX) -> int | None:
        """A whole number from 0, or null."""
        return None if self.value(name) is None else self.number(name, 0, most)

    def flag(self, name: str) -> bool:
        found = self.value(name)
        if not isinstance(found, bool):
            self._refuse(name, found, "true or false")
        return found

    def text(self, name: str) -> str:
        return self._line(name, self.value(name))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._line(name, one) for one in self._list(name))

    def bytes_or_none(self, name: str) -> bytes | None:
        """Bytes as hexadecimal digits, or null."""
        if self.value(name) is None:
            return None
        found = self.value(name)
        if not isinstance(found, str) or _HEX.fullmatch(found) is None:
            self._refuse(name, found, "pairs of hexadecimal digits")
        return bytes.fromhex(found)

    def uuid(self, name: str) -> Uuid:
        """An id, in the one form in which it is written."""
        found = self.text(name)
        uuid = Uuid.parse(found)
        if str(uuid) != found:
            self._refuse(name, found, f"{uuid}")
        return uuid

    def member(self, name: str, members: type[_Member]) -> _Member:
        """A word of a closed list: the value of a member, or its name where values are numbers."""
        found = self.value(name)
        by_word = {one.name if isinstance(one.value, int) else one.value: one for one in members}
        if not isinstance(found, str) or found not in by_word:
            self._refuse(name, found, f"one of {', '.join(by_word)}")
        return by_word[found]

    def numbers(self, name: str, length: int) -> tuple[tuple[int, ...], ...]:
        """A list of rows of *length* whole numbers."""
        rows = self._list(name)
        for row in rows:
            if not isinstance(row, list) or len(row) != length:
                self._refuse(name, row, f"{length} whole numbers")
            for one in row:
                if type(one) is not int or not INT64_MIN <= one <= INT64_MAX:
                    self._refuse(name, row, f"{length} whole numbers of 64 bits")
        return tuple(tuple(row) for row in rows)

    def epochs(self, name: str) -> Epochs:
        """Leader epochs with their first offsets, both rising."""
        found = tuple((epoch, start) for epoch, start in self.numbers(name, 2))
        for (epoch, start), (later, begin) in pairwise(((-1, -1), *found)):
            if not epoch < later <= INT32_MAX or begin <= start:
                self._refuse(name, [later, begin], f"more than [{epoch}, {start}]")
        return found

    def rows(self, name: str, names: Collection[str]) -> list[PlanFields]:
        """A list of objects that have exactly these fields."""
        return [
            PlanFields(one, f"{self._where}.{name}[{at}]", names)
            for at, one in enumerate(self._list(name))
        ]

    def inner(self, name: str, names: Collection[str]) -> PlanFields:
        """An object that has exactly these fields."""
        return PlanFields(self.value(name), f"{self._where}.{name}", names)

    def _list(self, name: str) -> list[Any]:
        found = self.value(name)
        if not isinstance(found, list):
            self._refuse(name, found, "a list")
        return found

    def _line(self, name: str, found: object) -> str:
        if (
            not isinstance(found, str)
            or len(found) > TEXT_CHARACTERS_MAX
            or not found.isprintable()
        ):
            self._refuse(name, found, "one line of text")
        return found

    def _refuse(self, name: str, found: object, expected: str) -> NoReturn:
        shown = repr(found)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        path = f"{self._where}.{name}" if name else self._where
        msg = f"{path}: {shown}, expected {expected}"
        raise NotThisForm(msg)
