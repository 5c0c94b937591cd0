"""Decoded rows of a log as plain tuples, by the decoder, by aiokafka and by `rlmm.records`."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
from aiokafka.record.memory_records import MemoryRecords

from rlmm.records.batch import Batch, walk
from rlmm.records.compression import INFLATED_BYTES_MAX
from rlmm.records.damage import DamagedRecords
from rlmm.records.records import Record, strict_records
from spark_tiering.decoding import (
    COLUMNS,
    BatchDecoder,
    DecodingFault,
    DecodingOptions,
    decompression,
    fields,
    record_positions,
    rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.decoding.rows import DecodingCounts

TOPIC = "orders"
PARTITION = 3


class Row(NamedTuple):
    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...] | None


class Decoded(NamedTuple):
    rows: list[Row]
    fault: DecodingFault | None
    counts: DecodingCounts


def wanted(**asked: object) -> DecodingOptions:
    return DecodingOptions(**{"topic": TOPIC, "partition": PARTITION, **asked})  # type: ignore[arg-type]


def decode(log: bytes, asked: DecodingOptions | None = None, piece_bytes: int = 4 << 20) -> Decoded:
    decoder = BatchDecoder(wanted() if asked is None else asked)
    found: list[Row] = []
    fault: DecodingFault | None = None
    for at in range(0, len(log), piece_bytes):
        for one in decoder.feed(log[at : at + piece_bytes]):
            assert fault is None, "something comes behind a fault"
            if isinstance(one, DecodingFault):
                fault = one
            else:
                one.validate(full=True)
                assert one.schema == decoder.schema
                assert one.num_rows
                found += _rows_of(one)
    at_end = decoder.finish()
    assert fault in {None, at_end}
    assert decoder.fault == at_end
    assert decoder.counts.rows == len(found)
    return Decoded(found, at_end, decoder.counts)


def _rows_of(batch: pa.RecordBatch) -> list[Row]:
    content: dict[str, list[Any]] = {name: [None] * len(batch) for name in COLUMNS}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        # Python's own times end with the year 9999.
        content[name] = (column.cast(pa.int64()) if name == "timestamp" else column).to_pylist()
    found = []
    for *fields_before, time_us, kind, headers in zip(*content.values(), strict=True):
        assert (time_us or 0) % 1000 == 0
        time_ms = None if time_us is None else time_us // 1000
        pairs = None if headers is None else tuple((one["key"], one["value"]) for one in headers)
        found.append(Row._make((*fields_before, time_ms, kind, pairs)))
    return found


def parsed_by_aiokafka(log: bytes) -> list[Row]:
    found: list[Row] = []
    batches = MemoryRecords(log)
    while (batch := batches.next_batch()) is not None:
        kind = batch.timestamp_type or 0
        found += [
            Row(
                one.key, one.value, TOPIC, PARTITION, one.offset, one.timestamp, kind,
                tuple(one.headers) or None,
            )
            for one in batch
            if not batch.is_control_batch
        ]  # fmt: skip
    return found


def read_by_records(log: bytes, *, checks_crc: bool = True) -> tuple[list[Row], bool]:
    """Read records by Kafka's rules, not by the compiled reader, up to the first damage, if any."""
    found: list[Row] = []
    for batch in walk(log, verify_crc=checks_crc):
        if not isinstance(batch, Batch):
            return found, True
        if batch.is_control:
            continue
        readable = batch._readable(INFLATED_BYTES_MAX)
        if isinstance(readable, DamagedRecords):
            return found, True
        for one in strict_records(batch._section(readable)):
            if not isinstance(one, Record):
                return found, True
            found.append(
                Row(
                    one.key, one.value, TOPIC, PARTITION, one.offset, one.timestamp_ms,
                    int(batch.timestamp_type), one.headers or None,
                )
            )  # fmt: skip
    return found, False


@contextmanager
def in_small(
    lanes: int = 1, rows_max: int = 3, headers_max: int = 2, portion_bytes: int = 300
) -> Iterator[None]:
    """Run the block with small limits, so that few records take the paths of large logs."""
    with ExitStack() as stack:
        for module, name, value in (
            (record_positions, "LANES_MIN", lanes),
            (fields, "LANES_MIN", lanes),
            (rows, "ROWS_MAX", rows_max),
            (rows, "HEADERS_MAX", headers_max),
            (decompression, "PORTION_BYTES", portion_bytes),
            (decompression, "_BUFFER_BYTES", portion_bytes + 100),
            (decompression, "_ROOM_BYTES_MIN", 150),
        ):
            stack.enter_context(patch.object(module, name, value))
        yield


def only(found: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    kept = [name in columns for name in COLUMNS]
    return [
        Row(*(value if is_kept else None for value, is_kept in zip(row, kept, strict=True)))  # type: ignore[arg-type]
        for row in found
    ]
