"""Rows of a portion of batches, up to a record that leaves its batch, its length or its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from rlmm.records.header import LOG_APPEND_TIME_BIT
from spark_tiering.decoding import arrow, options
from spark_tiering.decoding.faults import DecodingFault, DecodingFaultKind
from spark_tiering.decoding.fields import (
    FieldSpans,
    HeaderFields,
    limit_counts,
    read_fields,
    read_headers,
)
from spark_tiering.decoding.options import TIME_MAX_MS, TIME_MIN_MS
from spark_tiering.decoding.record_positions import find_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from spark_tiering.decoding.batch_walk import Int64s
    from spark_tiering.decoding.decompression import BatchPortion
    from spark_tiering.decoding.fields import RecordFields
    from spark_tiering.decoding.options import DecodingOptions
    from spark_tiering.decoding.record_positions import RecordPlaces


@dataclass(slots=True)
class DecodingCounts:
    """Counts the records by outcome. Counts of batches that were not opened are their header's."""

    batches: int = 0
    rows: int = 0
    markers: int = 0
    aborted: int = 0
    outside: int = 0
    untimely: int = 0


ROWS_MAX: Final = 32 * 1024
"""How many records are read at a time."""
HEADERS_MAX: Final = 256 * 1024
"""How many headers are read at a time, unless one record has more."""
RECORD_HEADERS_MAX: Final = 512 * 1024
"""Most headers of one record."""


class _Block(NamedTuple):
    """Holds the facts on records that are read together, by row."""

    fields: RecordFields
    lane: Int64s
    """The batch of each, by its number in the portion."""
    stop: Int64s
    offset: Int64s
    time_ms: Int64s
    before: int
    """The offset of the record in front of them, -1 for the first of all."""

    def part(self, first: int, stop: int) -> _Block:
        some = slice(first, stop)
        fields = self.fields
        return _Block(
            fields._replace(
                key=_some(fields.key, some),
                value=_some(fields.value, some),
                headers=_some(fields.headers, some),
            ),
            self.lane[some], self.stop[some], self.offset[some], self.time_ms[some],
            int(self.offset[first - 1]) if first else self.before,
        )  # fmt: skip


def _some(spans: FieldSpans | None, some: slice | npt.NDArray[np.bool_]) -> FieldSpans | None:
    return None if spans is None else FieldSpans(spans.start[some], spans.size[some])


class RowReader:
    """Makes rows out of portions, as the options select them, and counts the others."""

    def __init__(self, wanted: DecodingOptions, counts: DecodingCounts) -> None:
        self.schema = options.schema_of(wanted.columns)
        self._wanted = wanted
        self._counts = counts
        self._topic = arrow.Constant(wanted.topic, pa.string())
        self._partition = arrow.Constant(wanted.partition, pa.int32())
        self._created = arrow.Constant(0, pa.int32())
        names = set(wanted.columns)
        self._has_headers = options.HEADERS in names
        needs_value = bool(names & {options.VALUE, options.HEADERS})
        self._depth = 2 if needs_value else int(options.KEY in names)
        self._is_timed = wanted.first_time_ms > TIME_MIN_MS or wanted.last_time_ms < TIME_MAX_MS
        self._needs_time = options.TIMESTAMP in names or self._is_timed

    def read(
        self, portion: BatchPortion, position: int
    ) -> Iterator[pa.RecordBatch | DecodingFault]:
        """Yield the rows of a portion of the window at byte *position*; a fault comes last."""
        table = portion.table
        places = find_records(portion.buffer, portion.first, portion.stop, table.count)
        lane = np.repeat(np.arange(len(table)), places.count)
        # Behind a batch with bytes left over nothing is read, whatever it is.
        ragged = np.flatnonzero(places.end < portion.stop)
        rows = int(places.count[: ragged[0] + 1].sum()) if len(ragged) else len(lane)
        previous = -1
        for first in range(0, rows, ROWS_MAX):
            some = slice(first, min(first + ROWS_MAX, rows))
            block = self._block(portion, places, lane[some], some, previous)
            fault = self._judge(portion, block)
            good = len(block.lane) if fault is None else fault[0]
            for found in self._parts(portion, block.part(0, good), position):
                yield found
                if isinstance(found, DecodingFault):
                    return
            if fault is not None:
                yield self._fault(portion, fault[1], position, block, good)
                return
            previous = int(block.offset[-1])
        if len(ragged):
            yield self._ragged(portion, places, int(ragged[0]), position)

    def _block(
        self, portion: BatchPortion, places: RecordPlaces, lane: Int64s, some: slice, before: int
    ) -> _Block:
        start, stop = places.start[some], places.stop[some]
        fields = read_fields(portion.buffer, start, stop, portion.stop[lane], self._depth)
        table = portion.table
        offset = table.base_offset[lane] + fields.offset_delta
        time_ms = fields.time_delta
        if self._needs_time:
            # A sum beyond int64 wraps round, as it does for Kafka.
            time_ms = table.base_time[lane] + time_ms
            appended = (table.attributes & LOG_APPEND_TIME_BIT) != 0
            if appended.any():
                time_ms = np.where(appended[lane], table.max_time[lane], time_ms)
        return _Block(fields, lane, stop, offset, time_ms, before)

    def _judge(self, portion: BatchPortion, block: _Block) -> tuple[int, DecodingFaultKind] | None:
        table, lane, offset = portion.table, block.lane, block.offset
        ordered = (
            (offset > np.append(block.before, offset[:-1]))
            & (block.fields.offset_delta >= 0)
            & (offset <= table.last_offset[lane])
        )
        sound = block.fields.is_sound
        good = sound & ordered
        if options.TIMESTAMP in self._wanted.columns:
            good &= (block.time_ms >= arrow.TIME_MIN_MS) & (block.time_ms <= arrow.TIME_MAX_MS)
        if good.all():
            return None
        at = int(good.argmin())
        if not sound[at]:
            return at, DecodingFaultKind.BAD_RECORD
        if not ordered[at]:
            return at, DecodingFaultKind.RECORD_OUT_OF_ORDER
        return at, DecodingFaultKind.TIME_OUT_OF_RANGE

    # ------------------------------------------------------------------------------------- headers

    def _parts(
        self, portion: BatchPortion, block: _Block, position: int
    ) -> Iterator[pa.RecordBatch | DecodingFault]:
        spans = block.fields.headers
        if not self._has_headers or spans is None:
            yield from self._rows(portion, block, None)
            return
        count = limit_counts(spans, block.stop)
        bad = np.flatnonzero((count < 0) | (count > RECORD_HEADERS_MAX))
        end = int(bad[0]) if len(bad) else len(count)
        for first, stop in _stretches(count[:end]):
            some = block.part(first, stop)
            found = read_headers(
                portion.buffer, spans.start[first:stop], some.stop, count[first:stop]
            )
            if not found.is_sound.all():
                at = int(found.is_sound.argmin())
                yield from self._rows(portion, some.part(0, at), found)
                yield self._fault(portion, DecodingFaultKind.BAD_RECORD, position, some, at)
                return
            yield from self._rows(portion, some, found)
        if len(bad):
            yield self._fault(portion, DecodingFaultKind.BAD_RECORD, position, block, end)

    def _rows(
        self, portion: BatchPortion, block: _Block, headers: HeaderFields | None
    ) -> Iterator[pa.RecordBatch]:
        keep = self._kept(block)
        if keep is not None:
            if headers is not None:
                headers = _kept_headers(headers, keep)
            fields = block.fields
            block = _Block(
                fields._replace(key=_some(fields.key, keep), value=_some(fields.value, keep)),
                block.lane[keep], block.stop[keep], block.offset[keep], block.time_ms[keep],
                block.before,
            )  # fmt: skip
        count = len(block.lane)
        if not count:
            return
        self._counts.rows += count
        arrays = [self._column(name, portion, block, headers) for name in self._wanted.columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _kept(self, block: _Block) -> npt.NDArray[np.bool_] | None:
        wanted, offset = self._wanted, block.offset
        if not len(offset):
            return None
        keep = None
        if offset[0] < wanted.first_offset or offset[-1] >= wanted.next_offset:
            keep = (offset >= wanted.first_offset) & (offset < wanted.next_offset)
            self._counts.outside += len(keep) - int(keep.sum())
        if self._is_timed:
            time_ms = block.time_ms
            timely = (time_ms >= wanted.first_time_ms) & (time_ms <= wanted.last_time_ms)
            inside = len(timely) if keep is None else int(keep.sum())
            keep = timely if keep is None else keep & timely
            self._counts.untimely += inside - int(keep.sum())
        return keep

    def _column(
        self, name: str, portion: BatchPortion, block: _Block, headers: HeaderFields | None
    ) -> pa.Array:
        data, count = portion.buffer.data, len(block.lane)
        if name == options.OFFSET:
            return arrow.numbers_column(block.offset)
        if name == options.TIMESTAMP:
            return arrow.times_column(block.time_ms)
        if name == options.TOPIC:
            return self._topic.column(count)
        if name == options.PARTITION:
            return self._partition.column(count)
        if name == options.TIMESTAMP_TYPE:
            appended = (portion.table.attributes & LOG_APPEND_TIME_BIT) != 0
            if not appended.any():
                return self._created.column(count)
            return pa.array(appended.astype(np.int32)[block.lane])
        if name == options.HEADERS:
            assert headers is not None
            some = slice(0, int(headers.count[:count].sum()))
            key, value = _some(headers.key, some), _some(headers.value, some)
            assert key is not None
            assert value is not None
            return arrow.headers_column(data, headers.count[:count], key, value)
        spans = block.fields.key if name == options.KEY else block.fields.value
        assert spans is not None
        return arrow.bytes_column(data, spans)

    # -------------------------------------------------------------------------------------- faults

    def _fault(
        self, portion: BatchPortion, kind: DecodingFaultKind, position: int, block: _Block, at: int
    ) -> DecodingFault:
        table, lane = portion.table, int(block.lane[at])
        base, last = int(table.base_offset[lane]), int(table.last_offset[lane])
        # The first offset that it may have: that of its batch, or behind the record before it.
        offset = max(base, (int(block.offset[at - 1]) if at else block.before) + 1)
        detail = f"a record at or behind offset {offset}, in a batch of offsets {base} to {last}"
        if kind is DecodingFaultKind.RECORD_OUT_OF_ORDER:
            detail = f"offset {block.offset[at]}, expected {offset} to {last}"
        elif kind is DecodingFaultKind.TIME_OUT_OF_RANGE:
            detail = f"time {block.time_ms[at]} ms at offset {block.offset[at]}"
        return DecodingFault(kind, position + int(table.start[lane]), offset, detail)

    def _ragged(
        self, portion: BatchPortion, places: RecordPlaces, lane: int, position: int
    ) -> DecodingFault:
        table = portion.table
        left = int(portion.stop[lane] - places.end[lane])
        detail = f"{left} bytes behind the last of {places.count[lane]} records"
        return DecodingFault(
            DecodingFaultKind.TRAILING_BYTES,
            position + int(table.start[lane]),
            int(table.last_offset[lane]) + 1,
            detail,
        )


def _stretches(count: Int64s) -> Iterator[tuple[int, int]]:
    """Yield runs of records with at most `HEADERS_MAX` headers, at least one record each."""
    behind = np.cumsum(count)
    first = 0
    while first < len(count):
        before = int(behind[first - 1]) if first else 0
        stop = int(np.searchsorted(behind, before + HEADERS_MAX, side="right"))
        stop = max(stop, first + 1)
        yield first, stop
        first = stop


def _kept_headers(headers: HeaderFields, keep: npt.NDArray[np.bool_]) -> HeaderFields:
    count = headers.count[: len(keep)]
    total = int(count.sum())
    of_kept = np.repeat(keep, count)
    key = FieldSpans(headers.key.start[:total][of_kept], headers.key.size[:total][of_kept])
    value = FieldSpans(headers.value.start[:total][of_kept], headers.value.size[:total][of_kept])
    return HeaderFields(count[keep], key, value, headers.is_sound[: len(keep)][keep])
