"""
Single JSON values of the corpus, read strictly: a number is not a flag, a name is one of those that
exist.

Every reader takes the field's name and its value, and raises `FieldError` with a text that says
what was expected and what was found. Where in which file is added by whoever reads the file.
"""

from __future__ import annotations

import json
import re
from typing import TypeAlias

from rlmm.metadata.ids import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN
from rlmm.metadata.segment import Epochs, PartitionDeleteState, SegmentState

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_SHOWN_CHARACTERS_MAX = 60


class FieldError(ValueError):
    """A value that the format does not allow; the text names the field and what was expected."""


def shown(value: Json) -> str:
    """*value* as short JSON, for messages."""
    text = json.dumps(value, separators=(", ", ": "))
    if len(text) > _SHOWN_CHARACTERS_MAX:
        return text[:_SHOWN_CHARACTERS_MAX] + "..."
    return text


def refuse(name: str, expected: str, value: Json) -> FieldError:
    """The error for a field that holds something else than *expected*."""
    return FieldError(f"'{name}' must be {expected}, found {shown(value)}")


def text_of(name: str, value: Json) -> str:
    """A text that is not empty, and that every output can show."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise refuse(name, "a printable text that is not empty", value)
    return value


def flag_of(name: str, value: Json) -> bool:
    """True or false; a number is refused."""
    if not isinstance(value, bool):
        raise refuse(name, "true or false", value)
    return value


def int32_of(name: str, value: Json) -> int:
    return _integer(name, value, INT32_MIN, INT32_MAX, "a 32-bit integer")


def int64_of(name: str, value: Json) -> int:
    return _integer(name, value, INT64_MIN, INT64_MAX, "a 64-bit integer")


def _integer(name: str, value: Json, least: int, greatest: int, expected: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= greatest:
        raise refuse(name, expected, value)
    return value


def decimal_of(name: str, text: str) -> int:
    """An integer as decimal text, the form of JSON keys; only its shortest form is taken."""
    if not _DECIMAL.fullmatch(text):
        raise refuse(name, "keyed by decimal text", text)
    return int(text)


def epochs_of(name: str, value: Json) -> Epochs:
    """Leader epochs with the first offset of each, sorted; may be empty, which Kafka refuses."""
    if not isinstance(value, dict):
        raise refuse(name, "an object of epoch to offset", value)
    pairs = (
        (int32_of(f"{name} key", decimal_of(name, epoch)), int64_of(f"{name}.{epoch}", offset))
        for epoch, offset in value.items()
    )
    return tuple(sorted(pairs))


def custom_of(name: str, value: Json) -> bytes | None:
    """Custom metadata: hex text or null; an empty text is present but empty."""
    if value is None:
        return None
    return hex_of(name, value)


def hex_of(name: str, value: Json) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise refuse(name, "hex text", value)
    return bytes.fromhex(value)


def custom_text(custom: bytes | None) -> str | None:
    """Custom metadata as the corpus writes it."""
    return None if custom is None else custom.hex()


def segment_state_of(name: str, value: Json) -> SegmentState:
    """A segment state, spelled in full."""
    if not isinstance(value, str) or value not in SegmentState.__members__:
        raise refuse(name, f"one of {', '.join(SegmentState.__members__)}", value)
    return SegmentState[value]


def partition_state_of(name: str, value: Json) -> PartitionDeleteState:
    """A partition-delete state, spelled in full."""
    if not isinstance(value, str) or value not in PartitionDeleteState.__members__:
        raise refuse(name, f"one of {', '.join(PartitionDeleteState.__members__)}", value)
    return PartitionDeleteState[value]


def object_of(name: str, value: Json, keys: tuple[str, ...]) -> dict[str, Json]:
    """An object with exactly *keys*."""
    if not isinstance(value, dict):
        raise refuse(name, f"an object of {', '.join(keys)}", value)
    for key in keys:
        if key not in value:
            msg = f"'{name}' misses '{key}'"
            raise FieldError(msg)
    for key in value:
        if key not in keys:
            msg = f"'{name}' has no field '{key}'"
            raise FieldError(msg)
    return value


def list_of(name: str, value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise refuse(name, "a list", value)
    return value
