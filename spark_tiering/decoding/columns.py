"""The columns that there are, with the names, order and types that Spark's Kafka source gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rlmm.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable

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
