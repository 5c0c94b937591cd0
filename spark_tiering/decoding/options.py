"""Options of a decoder: columns with the types of Spark's Kafka source, records, strictness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rlmm.errors import InvalidArgument
from rlmm.records.compression import INFLATED_BYTES_MAX
from rlmm.records.header import BATCH_BYTES_MAX, OFFSET_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_tiering.decoding.aborted import AbortedTransaction

KEY: Final = "key"
VALUE: Final = "value"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_TYPE: Final = "timestampType"
HEADERS: Final = "headers"

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

_TYPES: Final = {
    KEY: pa.binary(),
    VALUE: pa.binary(),
    TOPIC: pa.string(),
    PARTITION: pa.int32(),
    OFFSET: pa.int64(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_TYPE: pa.int32(),
    HEADERS: pa.list_(HEADER_TYPE),
}

COLUMNS: Final = tuple(_TYPES)
"""Every column, in the order of Spark's Kafka source; it leaves the last one out by default."""


def schema_of(columns: Iterable[str] = COLUMNS) -> pa.Schema:
    """Return the schema of *columns* in order. Raise `InvalidArgument` for unknown names."""
    wanted = tuple(columns)
    if not wanted or len(set(wanted)) != len(wanted) or not set(wanted) <= _TYPES.keys():
        msg = f"columns must be some of {', '.join(COLUMNS)}, each once, got {wanted!r}"
        raise InvalidArgument(msg)
    return pa.schema([pa.field(name, _TYPES[name]) for name in wanted])


TIME_MIN_MS: Final = -(2**63)
TIME_MAX_MS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions:
    """Selects the wanted rows and columns of one partition's log; it can be pickled."""

    topic: str
    partition: int
    columns: tuple[str, ...] = COLUMNS
    """Names of `columns.COLUMNS`, in the order in which they are to stand in the rows."""
    first_offset: int = 0
    next_offset: int = OFFSET_MAX + 1
    """Exclusive. A reader with read_committed gives one no higher than the last stable offset."""
    first_time_ms: int = TIME_MIN_MS
    last_time_ms: int = TIME_MAX_MS
    """Inclusive, both. Records outside are left out, and do not end anything: times may go back."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """Transactions whose records are left out; with none everything is read, read_uncommitted."""
    log_offsets: tuple[int, int] | None = None
    """First and last offset that the log may have: a batch elsewhere is a fault, not left out."""
    checks_crc: bool = True
    inflated_bytes_max: int = INFLATED_BYTES_MAX
    """Largest records part of a batch."""
    batch_bytes_max: int = BATCH_BYTES_MAX
    """Largest batch as it is stored."""

    def __post_init__(self) -> None:
        schema_of(self.columns)
        if not 0 <= self.first_offset <= self.next_offset <= OFFSET_MAX + 1:
            msg = f"offsets [{self.first_offset}, {self.next_offset}) are no range"
            raise InvalidArgument(msg)
        if not -(2**31) <= self.partition < 2**31:
            msg = f"partition {self.partition} is no int32"
            raise InvalidArgument(msg)
