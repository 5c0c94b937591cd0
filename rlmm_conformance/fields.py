"""Fields of the corpus: the strict types of its JSON values; a number is no flag."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from rlmm.metadata.segment import Epochs

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]
Int64 = Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
Label = Annotated[str, Meta(min_length=1)]
HexText = Annotated[str, Meta(pattern=r"\A(?:[0-9a-fA-F]{2})*\Z")]
Decimal = Annotated[str, Meta(pattern=r"\A(?:0|-?[1-9][0-9]{0,18})\Z")]
"""An integer as a JSON key, in its shortest form."""
SegmentStateName = Literal[
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
]
PartitionStateName = Literal[
    "DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"
]

_SHOWN_CHARACTERS_MAX = 60
T = TypeVar("T")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object with exactly the fields of its class."""


class FieldError(ValueError):
    """A value that the format does not allow; the text names its place and the expected type."""


def read(form: type[T] | Any, value: Json, *, with_any_text: bool = False) -> T:
    """Return *value* as *form*; every text in it is printable, unless *with_any_text*."""
    try:
        found: T = msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise FieldError(f"{error}, found {shown(value)}") from error
    if not with_any_text:
        _check_texts(value)
    return found


def _check_texts(value: Json) -> None:
    """Refuse a text that no output can show."""
    if isinstance(value, str) and not value.isprintable():
        raise FieldError(f"Expected a printable text, found {shown(value)}")
    if isinstance(value, dict):
        _check_texts([*value, *value.values()])
    elif isinstance(value, list):
        for one in value:
            _check_texts(one)


def shown(value: Json) -> str:
    """Return *value* as short JSON, for messages."""
    text = json.dumps(value, separators=(", ", ": "))
    if len(text) > _SHOWN_CHARACTERS_MAX:
        return text[:_SHOWN_CHARACTERS_MAX] + "..."
    return text


def epochs_of(offsets: dict[str, int]) -> Epochs:
    """Return leader epochs with their first offsets, sorted; none at all is allowed here."""
    epochs = tuple(sorted((int(epoch), offset) for epoch, offset in offsets.items()))
    for epoch, _ in epochs:
        if not INT32_MIN <= epoch <= INT32_MAX:
            raise FieldError(f"Expected a leader epoch of 32 bits - at `$.epochs`, found {epoch}")
    return epochs


def custom_of(text: str | None) -> bytes | None:
    """Return custom metadata, of which an empty text is present but empty."""
    return None if text is None else bytes.fromhex(text)


def custom_text(custom: bytes | None) -> str | None:
    return None if custom is None else custom.hex()
