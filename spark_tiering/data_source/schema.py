"""
The schema: columns as Spark's Kafka source names and orders them, and the wanted ones.

Spark passes no column selection to a source in Python, so a schema from the user selects columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rlmm.errors import ConfigError
from spark_tiering.decoding.columns import HEADERS

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


def full_schema(*, has_headers: bool) -> StructType:
    """Return the schema where the user gives none; headers double the cost of decoding."""
    return StructType(
        [StructField(name, kind) for name, kind in _TYPES.items() if has_headers or name != HEADERS]
    )


def wanted_columns(schema: StructType) -> tuple[str, ...]:
    """Return the columns of *schema*; raises `ConfigError` where it has one that there is not."""
    for field in schema.fields:
        kind = _TYPES.get(field.name)
        if kind is None:
            msg = f"there is no column {field.name!r}; there are {', '.join(_TYPES)}"
            raise ConfigError(msg)
        if not _is_same(field.dataType, kind):
            said, is_ = field.dataType.simpleString(), kind.simpleString()
            msg = f"the column {field.name} is {is_}, the schema that was given says {said}"
            raise ConfigError(msg)
    names = tuple(field.name for field in schema.fields)
    if len(set(names)) != len(names) or not names:
        msg = f"a schema has each of its columns once, and one at least, got {', '.join(names)}"
        raise ConfigError(msg)
    return names


def _is_same(given: DataType, kind: DataType) -> bool:
    return given.simpleString() == kind.simpleString()
