"""The stream of `spark.readStream.format("rlmm")`: present and new records, batch by batch."""

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
from rlmm.errors import ConfigError, DataLost, RlmmError
from rlmm.metadata.ids import INT64_MAX
from spark_tiering.data_source.bounds import PartitionName
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.data_source.source import (
    TaskShare,
    iterated_in_one_line,
    rows_of,
    told_in_one_line,
    wanted_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from rlmm.base.clock import Clock
    from spark_tiering.data_source.extents import TierListing
    from spark_tiering.data_source.options import DataSourceOptions


Offsets = dict[PartitionName, int]


def format_offsets(offsets: Mapping[PartitionName, int]) -> dict[str, dict[str, int]]:
    """Return the form for checkpoints; equal offsets are written alike."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def parse_offsets(written: Any) -> Offsets:
    """Raise `ConfigError` where the checkpoint is another source's."""
    offsets: Offsets = {}
    try:
        for topic, by_number in written.items():
            for number, offset in by_number.items():
                if type(offset) is not int or not 0 <= offset <= INT64_MAX:
                    raise ValueError  # noqa: TRY301 - told in one place
                offsets[PartitionName(topic, int(number))] = offset
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"the checkpoint is no reader's of this source: {str(written)[:200]}"
        raise ConfigError(msg) from error
    return offsets


def available(start: Offsets, latest: Offsets) -> int:
    return sum(max(0, latest[one] - start.get(one, latest[one])) for one in latest)


def step(start: Offsets, latest: Offsets, most: int | None) -> Offsets:
    """
    Return how far to go from *start* to *latest*: *most* offsets, shared out by partitions' length,
    at least one each while there are some left. *start* must have each partition of *latest*; one
    that *latest* lacks stays.
    """
    ahead = {one: max(0, latest[one] - start[one]) for one in start if one in latest}
    total = sum(ahead.values())
    if most is None or total <= most:
        return {one: start[one] + ahead.get(one, 0) for one in start}
    taken, left = {}, most
    # The last ones would get nothing of a small rest if it always began with the same partition.
    for one, behind in sorted(ahead.items(), key=lambda item: (-item[1], item[0])):
        share = min(behind, left, max(1, most * behind // total)) if behind else 0
        taken[one] = share
        left -= share
    for one, behind in sorted(ahead.items()):
        more = min(left, behind - taken[one])
        taken[one] += more
        left -= more
    return {one: start[one] + taken.get(one, 0) for one in start}


class TriggerPatience:
    """Decides whether a small batch begins; *now_ms* of every question rises."""

    def __init__(self, least: int | None, delay_ms: int) -> None:
        self._least = least
        self._delay_ms = delay_ms
        self._since_ms: int | None = None

    def is_over(self, waiting: int, now_ms: int) -> bool:
        """Return whether *waiting* offsets are enough by now."""
        if self._since_ms is None:
            self._since_ms = now_ms
        is_over = (
            self._least is None
            or waiting >= self._least
            or now_ms - self._since_ms >= self._delay_ms
        )
        if is_over:
            self._since_ms = now_ms
        return is_over


logger = logging.getLogger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one streaming query: it plans in one process for the query's life, executors read."""

    def __init__(
        self, schema: StructType, options: DataSourceOptions, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._options = options
        self._columns = wanted_columns(schema)
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._driver: _Driver | None = None
        self._clock = clock

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None, "_clock": None}

    @property
    def _planning(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options, self._clock)
        return self._driver

    @told_in_one_line
    def initialOffset(self) -> dict[str, Any]:
        return format_offsets(self._planning.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.limits.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    @told_in_one_line
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next batch ends; *start* where there is nothing to be read."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return format_offsets(self._planning.latest(parse_offsets(start), most))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return format_offsets(self._planning.reported)

    @told_in_one_line
    def prepareForTriggerAvailableNow(self) -> None:
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
    """Refuses a stream with the reason at the first question, because Spark hides earlier ones."""

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

    def __init__(self, options: DataSourceOptions, clock: Clock) -> None:
        self.planner = QueryPlanner(options)
        self.reported: Offsets = {}
        self._options = options
        self._clock = clock
        self._listing: TierListing | None = None
        self._is_frozen = False
        limits = options.limits
        self._patience = TriggerPatience(limits.least, limits.delay_ms)

    def initial(self) -> Offsets:
        return self.planner.starts(self._look())

    def freeze(self) -> None:
        self._look()
        self._is_frozen = True

    def latest(self, start: Offsets, most: int | None) -> Offsets:
        """Return how far to go from *start*. New partitions begin at their first offset."""
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
    """Return whether *listing* knows everything up to *end*."""
    known = {one.name: one.next_offset for one in listing.held}
    return all(name in known and known[name] >= offset for name, offset in end.items())
