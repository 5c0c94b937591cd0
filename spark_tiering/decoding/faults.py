"""Faults of the bytes of a log. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DecodingFaultKind(StrEnum):
    """Tells why bytes could not be read as rows. The list is closed."""

    LENGTH_TOO_SMALL = "length-too-small"
    LENGTH_TOO_LARGE = "length-too-large"
    OLD_FORMAT = "old-format"
    """A message of format v0 or v1, as brokers before 0.11 wrote them."""
    UNSUPPORTED_MAGIC = "unsupported-magic"
    CRC_MISMATCH = "crc-mismatch"
    BAD_OFFSETS = "bad-offsets"
    """The header's offsets are negative, run backwards or pass the largest offset there is."""
    BATCH_OUT_OF_ORDER = "batch-out-of-order"
    BATCH_OUTSIDE = "batch-outside"
    BAD_RECORD_COUNT = "bad-record-count"
    UNKNOWN_COMPRESSION = "unknown-compression"
    BAD_COMPRESSION = "bad-compression"
    INFLATED_TOO_LARGE = "inflated-too-large"
    """The records part would grow beyond what a reader is willing to hold."""
    BAD_RECORD = "bad-record"
    RECORD_OUT_OF_ORDER = "record-out-of-order"
    TRAILING_BYTES = "trailing-bytes"
    TIME_OUT_OF_RANGE = "time-out-of-range"
    """A record's time in microseconds is more than a column of times can hold."""
    TORN = "torn"
    ZEROS = "zeros"
    """The log ends in zeros, as a file that was allocated and not closed."""
    BAD_TXN_INDEX = "bad-txn-index"
    """The bytes are no transaction index."""


@dataclass(frozen=True, slots=True)
class DecodingFault:
    """The first fault, in the batch at byte *position*; rows before *offset* (or -1) are good."""

    kind: DecodingFaultKind
    position: int
    offset: int
    detail: str

    def __str__(self) -> str:
        offset = f", offset {self.offset}" if self.offset >= 0 else ""
        return f"{self.kind}: byte {self.position}{offset}: {self.detail}"
