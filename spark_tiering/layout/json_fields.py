"""
JSON that somebody else wrote, read in bounded memory, and its fields taken one by one. Pure.

What is refused before it is read: more bytes, or more values, than any manifest has, since a value
of two characters can take hundreds of bytes of memory. A name that stands twice is refused as well:
two readers could believe either.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from rlmm.metadata.ids import INT32_MAX, INT64_MAX
from spark_tiering.layout.findings import LayoutFault, LayoutFinding

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

VALUES_MAX = 100_000
"""Most commas, colons and opening brackets: a manifest has some fifty, and two for each epoch."""

_MARKS = (b"{", b"[", b",", b":")
_DIGITS = re.compile(r"-?[0-9]{1,20}")


class JsonFault(Exception):
    """Carries a finding out of the middle of a document; it never leaves its reader."""

    def __init__(self, kind: LayoutFault, detail: str) -> None:
        super().__init__(detail)
        self.finding = LayoutFinding(kind, detail)


def parse_object(content: bytes, bytes_max: int) -> dict[str, Any]:
    """The one object that *content* is; raises `JsonFault`."""
    if len(content) > bytes_max:
        detail = f"{len(content)} bytes, at most {bytes_max} are read"
        raise JsonFault(LayoutFault.TOO_LARGE, detail)
    marks = sum(map(content.count, _MARKS))
    if marks > VALUES_MAX:
        raise JsonFault(
            LayoutFault.TOO_LARGE, f"some {marks} values, at most {VALUES_MAX} are read"
        )
    try:
        found = json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise JsonFault(LayoutFault.NOT_JSON, f"{len(content)} bytes: {error}") from error
    if not isinstance(found, dict):
        detail = f"{len(content)} bytes: {type(found).__name__}, expected an object"
        raise JsonFault(LayoutFault.NOT_JSON, detail)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return fields


def _no_number(text: str) -> NoReturn:
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)


class JsonFields:
    """The fields of one object; *where* is its path. Every method raises `JsonFault`."""

    def __init__(self, fields: Mapping[str, Any], where: str = "") -> None:
        self._fields = fields
        self._where = where

    def require_only(self, known: Collection[str]) -> None:
        """Refuse names that are not known."""
        for name in self._fields:
            if name not in known:
                raise JsonFault(LayoutFault.FIELD_UNKNOWN, f"{self._path(name)[:200]!r}")

    def has(self, name: str) -> bool:
        """Whether there is a field of that name, and something in it."""
        return self._fields.get(name) is not None

    def value(self, name: str) -> Any:
        """Whatever stands under *name*; it must stand there."""
        if name not in self._fields:
            raise JsonFault(LayoutFault.FIELD_MISSING, self._path(name))
        return self._fields[name]

    def object(self, name: str) -> JsonFields:
        return JsonFields(self.mapping(name), self._path(name))

    def mapping(self, name: str) -> Mapping[str, Any]:
        found = self.value(name)
        if not isinstance(found, dict):
            self.wrong(name, "an object")
        fields: Mapping[str, Any] = found
        return fields

    def text(self, name: str) -> str:
        found = self.value(name)
        if not isinstance(found, str):
            self.wrong(name, "a text")
        return found

    def flag(self, name: str) -> bool:
        found = self.value(name)
        if not isinstance(found, bool):
            self.wrong(name, "true or false")
        return found

    def number(self, name: str, least: int = 0, most: int = INT32_MAX) -> int:
        """A whole number from *least* to *most*; the plugin also takes one written as a text."""
        found = self.value(name)
        if isinstance(found, str) and _DIGITS.fullmatch(found):
            found = int(found)
        if type(found) is not int or not least <= found <= most:
            self.wrong(name, f"a whole number from {least} to {most}")
        return found

    def long(self, name: str, least: int = 0) -> int:
        return self.number(name, least, INT64_MAX)

    def wrong(self, name: str, expected: str) -> NoReturn:
        """Refuse what stands under *name*."""
        found = repr(self._fields.get(name))
        shown = found if len(found) <= 80 else f"{found[:77]}..."
        detail = f"{self._path(name)}: {shown}, expected {expected}"
        raise JsonFault(LayoutFault.FIELD_WRONG, detail)

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name
