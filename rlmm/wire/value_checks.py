"""
Value checks, and the texts of refusals.

Types are exact: a boolean is no number, a text no bytes. A refusal shows no value from outside but
numbers, as it may be large or nested.
"""

from __future__ import annotations

from typing import NoReturn

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UUID_BYTES, Uuid

_KINDS = {
    "NoneType": "nil",
    "bool": "a truth value",
    "bytes": "bytes",
    "dict": "a map",
    "float": "a floating point number",
    "list": "an array",
    "str": "a text",
}


class OddMap:
    """Stands for a map with a number as key that no map may have: no reader takes it for a map."""

    __slots__ = ("key",)

    def __init__(self, key: int) -> None:
        self.key = key


def form(value: object) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is OddMap:
        return f"a map with the key {value.key}"
    if isinstance(value, (bytes, dict, list, str)):
        return f"{_KINDS.get(type(value).__name__, 'a value')} of {len(value)}"
    return _KINDS.get(type(value).__name__, "a value of another kind")


def refuse(what: str, expected: str, value: object) -> NoReturn:
    msg = f"{what} must be {expected}, got {form(value)}"
    raise InvalidArgument(msg)


def int32(value: object, what: str) -> int:
    if type(value) is not int or not INT32_MIN <= value <= INT32_MAX:
        refuse(what, "a 32-bit integer", value)
    return value


def uint31(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value <= INT32_MAX:
        refuse(what, f"a number from 0 to {INT32_MAX}", value)
    return value


def int64(value: object, what: str) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        refuse(what, "a 64-bit integer", value)
    return value


def uint63(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value <= INT64_MAX:
        refuse(what, f"a number from 0 to {INT64_MAX}", value)
    return value


def text(value: object, what: str, chars_max: int) -> str:
    if type(value) is not str or not 1 <= len(value) <= chars_max:
        refuse(what, f"a text of 1 to {chars_max} characters", value)
    return value


def flag(value: object, what: str) -> bool:
    if type(value) is not bool:
        refuse(what, "true or false", value)
    return value


def uuid(value: object, what: str) -> Uuid:
    if not isinstance(value, bytes) or len(value) != UUID_BYTES:
        refuse(what, f"{UUID_BYTES} bytes", value)
    return bytes.__new__(Uuid, value)


def array(value: object, what: str, *sizes: int) -> list[object]:
    """Return an array, of one of *sizes* where any are given."""
    if type(value) is not list or (sizes and len(value) not in sizes):
        expected = f"an array of {' or '.join(map(str, sizes))}" if sizes else "an array"
        refuse(what, expected, value)
    return value


def array_up_to(value: object, what: str, size_max: int) -> list[object]:
    """A longer array is refused unread."""
    if type(value) is not list or len(value) > size_max:
        refuse(what, f"an array of at most {size_max}", value)
    return value


def mapping(value: object, what: str) -> dict[object, object]:
    if type(value) is not dict:
        refuse(what, "a map", value)
    return value
