"""The values of answers: times, bytes, ids; and the base of every object that is shown. Pure."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, to_builtins

from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable

View = dict[str, Any]


class ViewObject(Struct, forbid_unknown_fields=True):
    """An object of an answer. Its fields and order are an interface; `UNSET` is left out."""


def choice(words: Iterable[str]) -> Meta:
    """Return the annotation of a text that is one of *words*."""
    return Meta(extra_json_schema={"enum": list(words)})


Count = Annotated[int, Meta(ge=0)]
Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX, extra_json_schema={"format": "int64"})]
Number = int | float
UuidText = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{22}$")]
TimeText = Annotated[
    str,
    Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$", description="ISO 8601, in UTC."),
]
Base64Text = Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]
PlaceText = Annotated[str, Meta(pattern="^[0-9]+$")]
"""The number of a metadata partition as a key."""
PlaceOffsets = dict[PlaceText, Annotated[int, Meta(ge=-1, le=INT64_MAX)]]
Counts = dict[str, Count]
AnyObject = dict[str, Any]


def plain(value: object) -> Any:
    """Return *value* with every object in it as a dictionary; bytes stay bytes."""
    return to_builtins(value, builtin_types=(bytes, bytearray), str_keys=True, enc_hook=str)


def iso_time(ms: int | None) -> str | None:
    """Return a time in UTC as ISO 8601 writes it; `None` where the year has not four digits."""
    if ms is None or ms < 0:
        return None
    try:
        at = datetime.fromtimestamp(ms // 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1_000:03d}Z" if at.year >= 1_000 else None


def base64_text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def age_s(since_s: float | None, now_s: float) -> float | None:
    return None if since_s is None else round(max(0.0, now_s - since_s), 3)


def age_ms_s(since_ms: int | None, now_ms: int) -> float | None:
    """Return the seconds since a time of the wall clock; 0 where that clock was set back."""
    return None if since_ms is None else max(0, now_ms - since_ms) / 1_000


def in_milliseconds(shown: object) -> object:
    """Return the value without fractions, for frames: `age_s` of 0.25 is `age_ms` of 250."""
    if isinstance(shown, list):
        return [in_milliseconds(value) for value in shown]
    if not isinstance(shown, dict):
        return shown
    return dict(_in_milliseconds(name, value) for name, value in shown.items())


def _in_milliseconds(name: str, value: object) -> tuple[str, object]:
    if not name.endswith("_s"):
        return name, in_milliseconds(value)
    ms = round(value * 1_000) if isinstance(value, (int, float)) else None
    return f"{name[:-2]}_ms", ms
