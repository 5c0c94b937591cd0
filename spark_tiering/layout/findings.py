"""Findings: faults of the objects of a tiered segment. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayoutFault(StrEnum):
    """Names the fault of an object, or of its source bytes. The list is closed."""

    TOO_LARGE = "too-large"
    """More than the format can say, or than is held in memory here."""
    NOT_JSON = "not-json"
    """Not one JSON object in UTF-8, each name once."""
    UNSUPPORTED = "unsupported"
    """A version or a kind that is not known; it is never guessed at."""
    FIELD_MISSING = "field-missing"
    """Without this field the plugin cannot read the segment."""
    FIELD_UNKNOWN = "field-unknown"
    """With this field the plugin cannot read the segment."""
    FIELD_WRONG = "field-wrong"
    """A value of another type, or one that the field cannot have."""
    INCONSISTENT = "inconsistent"
    """Each value may be, and they contradict each other."""
    ENCRYPTED = "encrypted"
    """The bytes can be read only with a key, and the key ring lacks it."""
    KEY_WRONG = "key-wrong"
    """There is a key of that name, and it is not the one that sealed this."""
    MISSING = "missing"
    """There is no such object, and there ought to be one."""
    LENGTH = "length"
    """More or fewer bytes than expected."""
    DAMAGED = "damaged"
    """A frame, or an encoded number, that is not what was written."""


@dataclass(frozen=True, slots=True)
class LayoutFinding:
    """Describes one fault; *detail* says where, the value, and the expected value."""

    kind: LayoutFault
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"
