"""`spark.readStream.format("rlmm")`: what is there, and what comes to it, batch by batch."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import DataLost, RlmmError
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.data_source.schema import wanted_columns
from spark_tiering.data_source.source import TaskShare, rows_of
from spark_tiering.data_source.spark_errors import iterated_in_one_line, told_in_one_line
from spark_tiering.data_source.stream_steps import (
    Offsets,
    TriggerPatience,
    available,
    format_offsets,
    parse_offsets,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from rlmm.base.clock import Clock
    from spark_tiering.data_source.extents import TierListing
    from spark_tiering.data_source.options import ReadOptions

logger = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    One streaming query. Its planning side lives in one process for as long as the query runs, its
    reading side on executors.
    """

    def __init__(
        self, schema: StructType, options: ReadOptions, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._options = options
        self._columns = wanted_columns(schema)
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._driver: _Driver | None = None
        self._clock = clock

    def __getstate__(self) -> dict[str, Any]:
        """What travels to executors: nothing of the planning side."""
        return {**self.__dict__, "_driver": None, "_clock": None}

    @property
    def _planning(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options, self._clock)
        return self._driver

    @told_in_one_line
    def initialOffset(self) -> dict[str, Any]:
        """Where a query begins that has no checkpoint."""
        return format_offsets(self._planning.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.limits.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @told_in_one_line
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes; *start* where there is nothing to be read."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return format_offsets(self._planning.latest(parse_offsets(start), most))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """How far everything goes, for the query's own status."""
        return format_offsets(self._planning.reported)

    @told_in_one_line
    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all that will be read."""
        self._planning.freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        driver = self._planning
        found = driver.shares(parse_offsets(start), parse_offsets(end))
        reading = driver.planner.reading(self._columns)
        return [TaskShare(pieces, reading) for pieces in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = rows_of(partition, self._arrow, fails_on_data_loss=self._options.fails_on_data_loss)
        return iterated_in_one_line(rows)


class RefusedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """
    One that cannot begin, and says why to the first question. Where no reader is given at all,
    Spark tells of one that it could not stop, and not of the reason.
    """

    def __init__(self, error: RlmmError) -> None:
        self._error = error

    @told_in_one_line
    def _refuse(self) -> NoReturn:
        raise self._error

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def getDefaultReadLimit(self) -> ReadLimit:
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        del start, limit
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:
        self._refuse()

    def read(self, partition: InputPartition) -> NoReturn:
        del partition
        self._refuse()


class _Driver:
    """The planning side of one query."""

    def __init__(self, options: ReadOptions, clock: Clock) -> None:
        self.planner = QueryPlanner(options)
        self.reported: Offsets = {}
        self._options = options
        self._clock = clock
        self._listing: TierListing | None = None
        self._is_frozen = False
        limits = options.limits
        self._patience = TriggerPatience(limits.least, limits.delay_ms)

    def initial(self) -> Offsets:
        """Where the options say that it begins."""
        return self.planner.starts(self._look())

    def freeze(self) -> None:
        """Look once more, and not again."""
        self._look()
        self._is_frozen = True

    def latest(self, start: Offsets, most: int | None) -> Offsets:
        """
        How far to go from *start*. Partitions that are new begin at their first offset, as nobody
        has read anything of them.
        """
        listing = self._look()
        ends = {one.name: self.planner.end_of(one) for one in listing.held}
        firsts = {one.name: one.first_offset for one in listing.held}
        self.reported = {**start, **ends}
        self._require_not_behind(start, ends)
        known = {**{name: firsts[name] for name in ends if name not in start}, **start}
        waiting = available(known, ends)
        now_ms = self._clock.now_ms()
        if not self._is_frozen and not self._patience.is_over(waiting, now_ms):
            return start
        return step(known, ends, most)

    def shares(self, start: Offsets, end: Offsets) -> list[Any]:
        """The tasks of the batch between two offsets, whoever has decided on them, and when."""
        listing = self._listing
        if listing is None or not _reaches(listing, end):
            listing = self._look(is_needed=True)
        firsts = {one.name: one.first_offset for one in listing.held}
        begin = {name: start.get(name, firsts.get(name, 0)) for name in end}
        self._require_there(listing, begin, end)
        return self.planner.shares(listing, begin, end)

    def _look(self, *, is_needed: bool = False) -> TierListing:
        if self._listing is None or not self._is_frozen or is_needed:
            self._listing = self.planner.listing()
        return self._listing

    def _require_not_behind(self, start: Offsets, ends: Offsets) -> None:
        """A tier that ends before what was read of it is another one, or was cut."""
        for name, offset in sorted(start.items()):
            end = ends.get(name)
            if end is None or end < offset:
                told = "it is not there any more" if end is None else f"it ends at {end} now"
                self._lose(f"{name}: was read up to offset {offset}, and {told}")

    def _require_there(self, listing: TierListing, begin: Offsets, end: Offsets) -> None:
        there = {one.name for one in listing.held}
        for name, offset in sorted(end.items()):
            if name not in there and begin[name] < offset:
                self._lose(
                    f"{name}: offsets {begin[name]} to {offset - 1}: it is not there any more"
                )

    def _lose(self, told: str) -> None:
        if self._options.fails_on_data_loss:
            raise DataLost(told)
        logger.warning("%s", told)


def _reaches(listing: TierListing, end: Offsets) -> bool:
    """Whether *listing* knows everything up to *end*."""
    known = {one.name: one.next_offset for one in listing.held}
    return all(name in known and known[name] >= offset for name, offset in end.items())
