"""
JSON that somebody else may have written, read in bounded memory, and its values taken one by one.
Pure.

What is refused before it is read: more bytes, or more values, than any plan has. Nothing is passed
over: a field too many is refused as one that is missing is.
"""

from __future__ import annotations

import json
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, Uuid

if TYPE_CHECKING:
    from collections.abc import Collection

VALUES_MAX = 6_000_000
"""Most commas, colons and opening brackets; each value can take some hundred bytes of memory."""
TEXT_CHARACTERS_MAX = 2_000
_SHOWN_MAX = 80
_MARKS = (b"{", b"[", b",", b":")
_Member = TypeVar("_Member", bound=Enum)


class PlanFault(StrEnum):
    """Why something is no plan."""

    TOO_LARGE = "too-large"
    NOT_JSON = "not-json"
    NOT_PARQUET = "not-parquet"
    OTHER_FORMAT = "other-format"
    """JSON or a table, and no plan, or one of a version that is not known."""
    FIELD_WRONG = "field-wrong"
    CHANGED = "changed"
    """Its checksum, its token or its sums are not those of its content."""
    CONTRADICTION = "contradiction"
    """Ranges that overlap, or lie outside their segment or what was asked."""


class ReadPlanFault(Exception):
    """Says what is wrong; it never leaves the reader."""

    def __init__(self, fault: PlanFault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault


def refuse(fault: PlanFault, detail: str) -> NoReturn:
    raise ReadPlanFault(fault, detail[:600])


def load(content: bytes, bytes_max: int) -> Any:
    """What JSON *content* is, each name of an object once; raises `ReadPlanFault`."""
    if len(content) > bytes_max:
        refuse(PlanFault.TOO_LARGE, f"{len(content)} bytes, at most {bytes_max} are read")
    marks = sum(map(content.count, _MARKS))
    if marks > VALUES_MAX:
        refuse(PlanFault.TOO_LARGE, f"some {marks} values, at most {VALUES_MAX} are read")
    try:
        return json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ReadPlanFault(PlanFault.NOT_JSON, f"it is not JSON: {error}"[:600]) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return fields


def _no_number(text: str) -> NoReturn:
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)


class JsonObject:
    """The fields of one object; *where* is its path. Every method raises `ReadPlanFault`."""

    def __init__(self, value: object, where: str, names: Collection[str] | None = None) -> None:
        self._where = where
        if not isinstance(value, dict):
            self._wrong("", value, "an object")
        self.fields: dict[str, Any] = value
        if names is not None and set(value) != set(names):
            odd = ", ".join(sorted(map(str, set(value) ^ set(names))))
            refuse(PlanFault.FIELD_WRONG, f"{where}: fields missing or unknown: {odd[:200]!r}")

    def value(self, name: str) -> Any:
        """Whatever stands under *name*."""
        if name not in self.fields:
            refuse(PlanFault.FIELD_WRONG, f"{self._where}.{name}: there is no such field")
        return self.fields[name]

    def number(self, name: str, least: int = 0, most: int = INT64_MAX) -> int:
        found = self.value(name)
        if type(found) is not int or not least <= found <= most:
            self._wrong(name, found, f"a whole number from {least} to {most}")
        return found

    def number_or_none(self, name: str, least: int = 0, most: int = INT64_MAX) -> int | None:
        return None if self.value(name) is None else self.number(name, least, most)

    def flag(self, name: str) -> bool:
        found = self.value(name)
        if not isinstance(found, bool):
            self._wrong(name, found, "true or false")
        return found

    def text(self, name: str, characters_max: int = TEXT_CHARACTERS_MAX) -> str:
        found = self.value(name)
        if not isinstance(found, str) or len(found) > characters_max:
            self._wrong(name, found, "a text")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.rows(name)
        if not all(isinstance(one, str) for one in found):
            self._wrong(name, found, "texts")
        return tuple(found)

    def uuid(self, name: str) -> Uuid:
        """An id, in the one form in which it is written."""
        found = self.text(name)
        try:
            uuid = Uuid.parse(found)
        except InvalidArgument:
            self._wrong(name, found, "an id of 22 characters")
        if str(uuid) != found:
            self._wrong(name, found, f"{uuid}")
        return uuid

    def member(self, name: str, members: type[_Member]) -> _Member:
        found = self.value(name)
        by_word = {one.value: one for one in members}
        if not isinstance(found, str) or found not in by_word:
            self._wrong(name, found, f"one of {', '.join(by_word)}")
        return by_word[found]

    def rows(self, name: str) -> list[Any]:
        found = self.value(name)
        if not isinstance(found, list):
            self._wrong(name, found, "a list")
        rows: list[Any] = found
        return rows

    def objects(self, name: str, names: Collection[str] | None = None) -> list[JsonObject]:
        return [
            JsonObject(one, f"{self._where}.{name}[{at}]", names)
            for at, one in enumerate(self.rows(name))
        ]

    def inner(self, name: str, names: Collection[str] | None = None) -> JsonObject:
        return JsonObject(self.value(name), f"{self._where}.{name}", names)

    def pairs(
        self, name: str, most: int = INT64_MAX, least: int = 0
    ) -> tuple[tuple[int, int], ...]:
        """A list of pairs of whole numbers, whose first ones rise."""
        found = self.rows(name)
        for one in found:
            is_pair = isinstance(one, list) and len(one) == 2
            if not is_pair or any(type(n) is not int or not least <= n <= INT64_MAX for n in one):
                self._wrong(name, one, f"a pair of whole numbers from {least}")
        firsts = [one[0] for one in found]
        if firsts != sorted(set(firsts)) or any(one > most for one in firsts):
            self._wrong(name, found, f"pairs that rise, to {most} at most")
        return tuple((one[0], one[1]) for one in found)

    def _wrong(self, name: str, found: object, expected: str) -> NoReturn:
        shown = repr(found)
        shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[: _SHOWN_MAX - 3]}..."
        where = f"{self._where}.{name}" if name else self._where
        refuse(PlanFault.FIELD_WRONG, f"{where}: {shown}, expected {expected}")


def is_int32(value: object) -> bool:
    """Whether it is a number of a partition."""
    return type(value) is int and 0 <= value <= INT32_MAX
