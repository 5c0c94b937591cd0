"""
Strict JSON: untrusted documents become msgspec structs in bounded memory. Pure. The reader counts
bytes, commas, colons and brackets before it parses, because a value of two characters can take
hundreds of bytes. It refuses repeated names and deep nesting.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Uuid

VALUES_MAX = 100_000

Int32 = Annotated[int, msgspec.Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]
Count32 = Annotated[int, msgspec.Meta(ge=0, le=INT32_MAX)]
Count64 = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]

_MARKS = (b"{", b"[", b",", b":")
_PLACE = re.compile(r"(.*) - at `(?:key in )?\$(.*)`", re.DOTALL)
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_DETAIL_CHARACTERS_MAX = 300
_T = TypeVar("_T")


class JsonFaultKind(StrEnum):
    TOO_LARGE = "too-large"
    NOT_JSON = "not-json"
    FIELD_MISSING = "field-missing"
    FIELD_UNKNOWN = "field-unknown"
    FIELD_WRONG = "field-wrong"


class JsonFault(Exception):
    """A document is refused. Readers translate it; it never leaves the package of its reader."""

    def __init__(self, kind: JsonFaultKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class HexBytes(bytes):
    """Bytes that a document has as lower-case hexadecimal digits."""

    __slots__ = ()


def read_json(
    content: bytes, of: type[_T], *, bytes_max: int, values_max: int = VALUES_MAX, where: str = ""
) -> _T:
    """Return *content* as a value of type *of*. Raise `JsonFault`."""
    return typed_value(load_json(content, bytes_max=bytes_max, values_max=values_max), of, where)


def load_json(content: bytes, *, bytes_max: int, values_max: int = VALUES_MAX) -> Any:
    """Return *content* as plain values, each name of an object once. Raise `JsonFault`."""
    if len(content) > bytes_max:
        detail = f"{len(content)} bytes, at most {bytes_max} are read"
        raise JsonFault(JsonFaultKind.TOO_LARGE, detail)
    marks = sum(map(content.count, _MARKS))
    if marks > values_max:
        detail = f"some {marks} values, at most {values_max} are read"
        raise JsonFault(JsonFaultKind.TOO_LARGE, detail)
    try:
        return json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        detail = f"{len(content)} bytes, not JSON: {error}"
        raise JsonFault(JsonFaultKind.NOT_JSON, detail[:_DETAIL_CHARACTERS_MAX]) from error


def typed_value(value: object, of: type[_T], where: str = "") -> _T:
    """Return plain values as type *of*; *where* is the path of *value*. Raise `JsonFault`."""
    try:
        return msgspec.convert(value, of, str_keys=True, dec_hook=_decoded)
    except (ValueError, RecursionError) as error:  # what msgspec raises is a ValueError
        raise _shape_fault(str(error), where) from error


def plain_values(value: object) -> Any:
    """Return *value* as objects, lists, texts and numbers, fields in the order of their struct."""
    return msgspec.to_builtins(value, enc_hook=_encoded)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        msg = "a name stands twice in one object"
        raise ValueError(msg)
    return fields


def _constant(text: str) -> NoReturn:
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)


def _decoded(of: type, value: object) -> object:
    if not isinstance(value, str):
        msg = f"Expected `str`, got `{type(value).__name__}`"
        raise ValueError(msg)  # noqa: TRY004 - msgspec adds the path to these
    try:
        decoded = HexBytes.fromhex(value) if of is HexBytes else Uuid.parse(value)
    except InvalidArgument as error:
        raise ValueError(str(error)) from error
    if _encoded(decoded) != value:
        msg = f"{value[:80]!r}, expected {_encoded(decoded)[:80]!r}"
        raise ValueError(msg)
    return decoded


def _encoded(value: object) -> str:
    return value.hex() if isinstance(value, HexBytes) else str(value)


def _shape_fault(text: str, where: str) -> JsonFault:
    placed = _PLACE.fullmatch(text)
    said, path = (placed[1], placed[2]) if placed else (text, "")
    path = f"{where}{path}" if where else path.removeprefix(".")
    kind = JsonFaultKind.FIELD_WRONG
    field = _FIELD.fullmatch(said)
    if field is not None:
        is_missing = field[1].startswith("missing")
        kind = JsonFaultKind.FIELD_MISSING if is_missing else JsonFaultKind.FIELD_UNKNOWN
        name = field[2] if field[2].isprintable() else repr(field[2])
        path = f"{path}.{name[:200]}" if path else name[:200]
        said = "there is no such field" if is_missing else "there can be no such field"
    detail = f"{path}: {said}" if path else said
    return JsonFault(kind, detail[:_DETAIL_CHARACTERS_MAX])
