"""Findings: faults of the objects of a tiered segment. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LayoutFault(StrEnum):
    TOO_LARGE = "too-large"
    """More than the format can say, or than is held in memory here."""
    NOT_JSON = "not-json"
    UNSUPPORTED = "unsupported"
    """A version or a kind that is not known; it is never guessed at."""
    FIELD_MISSING = "field-missing"
    """Without this field the plugin cannot read the segment."""
    FIELD_UNKNOWN = "field-unknown"
    """With this field the plugin cannot read the segment."""
    FIELD_WRONG = "field-wrong"
    INCONSISTENT = "inconsistent"
    """Each value may be, and they contradict each other."""
    ENCRYPTED = "encrypted"
    """The bytes can be read only with a key, and the key ring lacks it."""
    KEY_WRONG = "key-wrong"
    """There is a key of that name, and it is not the one that sealed this."""
    MISSING = "missing"
    LENGTH = "length"
    DAMAGED = "damaged"
    """A frame, or an encoded number, that is not what was written."""


@dataclass(frozen=True, slots=True)
class LayoutFinding:
    """Describes one fault; *detail* says where, the value, and the expected value."""

    kind: LayoutFault
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"
