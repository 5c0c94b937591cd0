"""
The source of `spark.read.format("rlmm")` and `spark.readStream`: Spark's side of it. Spark passes
no column selection to a source in Python, so a schema from the user selects columns.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
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

from rlmm.errors import ConfigError, DataLost, RlmmError
from spark_tiering.data_source.options import parse_options
from spark_tiering.data_source.piece_reading import read_piece
from spark_tiering.data_source.pushed_filters import PushedFilters
from spark_tiering.decoding.options import HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import DataType

    from spark_tiering.data_source.options import DataSourceOptions
    from spark_tiering.data_source.piece_reading import PieceReading
    from spark_tiering.data_source.task_splits import SegmentPiece

_RUNTIME: Final = ("SPARK_PYTHON_RUNTIME", "PYTHON_WORKER")
"""What the environment of a worker of Spark's says, and no program's."""
_HIDDEN: Final = "SPARK_HIDE_TRACEBACK"
"""What Spark looks at when it writes down what was raised; its workers end with that."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def told_in_one_line(function: Callable[P, R]) -> Callable[P, R]:
    """Raise an rlmm error of the function without its cause."""

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            return function(*given, **named)
        except RlmmError as error:
            raise _bare(error) from None

    return called


def iterated_in_one_line(rows: Iterator[T]) -> Iterator[T]:
    """Raise an rlmm error of the iteration without its cause."""
    try:
        yield from rows
    except RlmmError as error:
        raise _bare(error) from None


def _bare(error: RlmmError) -> RlmmError:
    if os.environ.get(_RUNTIME[0]) == _RUNTIME[1]:
        os.environ[_HIDDEN] = "1"
    return error.with_traceback(None)


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


NAME = "rlmm"
NO_WRITER: Final = "the format rlmm reads tiered segments and writes none"

logger = logging.getLogger(__name__)


class RlmmDataSource(DataSource):
    """Records of tiered segments, as rows with the columns of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        return NAME

    @told_in_one_line
    def schema(self) -> StructType:
        """Return all columns; headers only where they are asked for."""
        options = parse_options(_without_bounds(dict(self.options)), is_streaming=False)
        return full_schema(has_headers=options.has_headers)

    @told_in_one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """Read once. Spark hands filters over only to readers of this form, see `Pushing`."""
        options = parse_options(dict(self.options), is_streaming=False)
        return (_PushingReader if options.pushes_down else _Reader)(schema, options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Read the present rows, and later ones as they come. Errors are raised when it begins."""
        # Large enough for a module of its own.
        from spark_tiering.data_source.stream import RefusedStream, StreamReader  # noqa: PLC0415

        try:
            return StreamReader(schema, parse_options(dict(self.options), is_streaming=True))
        except RlmmError as error:
            return RefusedStream(error)

    @told_in_one_line
    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:
        del schema, overwrite
        raise ConfigError(NO_WRITER)

    @told_in_one_line
    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        del schema, overwrite
        raise ConfigError(NO_WRITER)


class TaskShare(InputPartition):
    """Holds the reads of one task; travels to it, and holds no secret."""

    def __init__(self, pieces: tuple[SegmentPiece, ...], reading: PieceReading) -> None:
        super().__init__(None)
        self.pieces = pieces
        self.reading = reading


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, options: DataSourceOptions) -> None:
        self._options = options
        self._columns = wanted_columns(schema)
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._pushed = PushedFilters()

    @told_in_one_line
    def partitions(self) -> Sequence[InputPartition]:
        # Executors, which import this module as well, plan nothing.
        from spark_tiering.data_source.query_planning import QueryPlanner  # noqa: PLC0415

        planner = QueryPlanner(self._options)
        listing = planner.listing()
        starts, ends = planner.starts(listing), planner.ends(listing)
        found = planner.shares(listing, starts, ends, self._pushed)
        reading = planner.reading(self._columns, self._pushed)
        return [TaskShare(pieces, reading) for pieces in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return the rows of one task. Spark passes none where there is no task."""
        rows = rows_of(partition, self._arrow, fails_on_data_loss=self._options.fails_on_data_loss)
        return iterated_in_one_line(rows)


class _PushingReader(_Reader):
    """Reads with filters; Spark without push-down refuses a reader with `pushFilters`."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Narrow the read; Spark still applies all filters to the rows."""
        for one in filters:
            self._pushed = self._pushed.with_filter(one)
            yield one


def rows_of(
    partition: InputPartition, arrow: pa.Schema, *, fails_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task; a segment that is gone is an error or named in a warning."""
    if not isinstance(partition, TaskShare):
        return
    for piece in partition.pieces:
        try:
            for rows in read_piece(piece, partition.reading):
                yield rows if rows.schema.equals(arrow) else _as(arrow, rows)
        except DataLost as error:
            if fails_on_data_loss:
                raise
            logger.warning("%d offsets are left out: %s", piece.extent.offsets, error)


def _as(arrow: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(rows.columns, schema=arrow)


def _without_bounds(options: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in options.items()
        if not name.lower().startswith(("starting", "ending"))
    }
