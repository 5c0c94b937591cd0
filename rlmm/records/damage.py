"""Damage in a record set, as values: where it is, which offsets it may cover, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DamageReason(StrEnum):
    """Tells why bytes could not be read as records. The list is closed."""

    LENGTH_TOO_SMALL = "length-too-small"
    """The batch claims fewer bytes than its own header has; nothing behind it can be found."""
    LENGTH_TOO_LARGE = "length-too-large"
    """The batch claims more bytes than any batch may have; nothing behind it can be found."""
    OLD_FORMAT = "old-format"
    """A message of format v0 or v1, as brokers before 0.11 wrote them."""
    UNSUPPORTED_MAGIC = "unsupported-magic"
    """Neither format v2 nor one of its predecessors."""
    CRC_MISMATCH = "crc-mismatch"
    BAD_OFFSETS = "bad-offsets"
    """The header's offsets are negative, run backwards or pass the largest offset there is."""
    BAD_RECORD_COUNT = "bad-record-count"
    UNKNOWN_COMPRESSION = "unknown-compression"
    BAD_COMPRESSION = "bad-compression"
    """The records part is not what its codec would have written."""
    INFLATED_TOO_LARGE = "inflated-too-large"
    """The records part would grow beyond what a reader is willing to hold."""
    BAD_RECORD = "bad-record"
    """A length or count in a record does not fit the bytes that are there."""
    RECORD_OUT_OF_ORDER = "record-out-of-order"
    """A record's offset does not rise, or lies outside its batch."""
    TRAILING_BYTES = "trailing-bytes"
    """Bytes are left behind the last of the records that the header counts."""


@dataclass(frozen=True, slots=True)
class DamagedBatch:
    """
    A batch none of whose records can be trusted, at bytes [start, stop) of the record set. *stop*
    is None when its length cannot be believed either: the walk ends there. *base_offset* and
    *next_offset* are claims of the header; *next_offset* is None when it makes no sense.
    """

    reason: DamageReason
    start: int
    stop: int | None
    base_offset: int
    next_offset: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class DamagedRecords:
    """
    The end of a batch whose header is sound: its records are lost after *records_read* good ones.
    The offsets [first_offset, next_offset) are those that the lost records may have had; the range
    is empty when only superfluous bytes were lost.
    """

    reason: DamageReason
    records_read: int
    first_offset: int
    next_offset: int
    detail: str


@dataclass(frozen=True, slots=True)
class PartialTail:
    """
    The last *size* bytes of a record set, from byte *start*, hold no whole batch: a clean end. A
    fetch may end within a batch; *is_zeros* tells a preallocated file's empty tail.
    """

    start: int
    size: int
    is_zeros: bool
