"""
`python -m bench decoding`: a log to Arrow, by our decoder and by the record parser of aiokafka.

Both have one process and one thread, get the same windows in turns, check every CRC and make the
same columns; that these are equal is looked at first.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Final

import click
import pyarrow as pa
from aiokafka.record.memory_records import MemoryRecords

from bench.figures import Figure, Run
from bench.measure import Collector, collector, cpu_ns, profile_of
from bench.recording import output_option, recording
from rlmm.records.compression import Compression
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from spark_tiering.decoding import COLUMNS, BatchDecoder, DecodingFault, DecodingOptions, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PLAIN_MIN: Final = 1.2
HEADERS_MIN: Final = 3.0
TOPIC: Final = "measured"
PARTITION: Final = 3
COLUMNS_WITHOUT_HEADERS: Final = tuple(name for name in COLUMNS if name != "headers")
_BEGIN_MS: Final = 1_700_000_000_000
_AROUND_BYTES: Final = 20
"""What a record without headers has beside its value."""


@dataclass(frozen=True, slots=True)
class Sizes:
    log_bytes: int
    batch_bytes: int
    value_bytes: int
    window_bytes: int
    passes: int


FULL = Sizes(
    log_bytes=64 << 20, batch_bytes=16 << 10, value_bytes=100, window_bytes=4 << 20, passes=7
)
QUICK = Sizes(
    log_bytes=64 << 10, batch_bytes=4 << 10, value_bytes=100, window_bytes=16 << 10, passes=1
)


@dataclass(frozen=True, slots=True)
class Ground:
    windows: Sequence[bytes]
    records: int
    columns: tuple[str, ...]


def make_ground(sizes: Sizes, codec: Compression, *, has_headers: bool) -> Ground:
    """Build records with small keys; half of each value does not compress."""
    random = Random(7)
    windows, window, count, inflated = [], bytearray(), 0, 0
    per_batch = max(sizes.batch_bytes // (sizes.value_bytes + _AROUND_BYTES), 1)
    while inflated < sizes.log_bytes:
        records = [
            _record(offset, sizes, random, has_headers=has_headers)
            for offset in range(count, count + per_batch)
        ]
        window += build_batch(records, count, compression=codec)
        count += per_batch
        inflated += per_batch * (sizes.value_bytes + _AROUND_BYTES)
        if len(window) >= sizes.window_bytes or inflated >= sizes.log_bytes:
            windows.append(bytes(window))
            window.clear()
    return Ground(windows, count, COLUMNS if has_headers else COLUMNS_WITHOUT_HEADERS)


def _record(offset: int, sizes: Sizes, random: Random, *, has_headers: bool) -> Record:
    half = sizes.value_bytes // 2
    value = random.randbytes(half) + b"a" * (sizes.value_bytes - half)
    headers = (("trace", random.randbytes(16)), ("kind", b"order")) if has_headers else ()
    return Record(offset, _BEGIN_MS + offset // 7, b"k%07d" % (offset % 5_000), value, headers)


# ---------------------------------------------------------------------------------- the two sides


def decode(ground: Ground) -> list[pa.RecordBatch]:
    decoder = BatchDecoder(
        DecodingOptions(topic=TOPIC, partition=PARTITION, columns=ground.columns)
    )
    rows: list[pa.RecordBatch] = []
    for window in ground.windows:
        rows = []
        for found in decoder.feed(window):
            assert not isinstance(found, DecodingFault), found
            rows.append(found)
    assert decoder.finish() is None
    assert decoder.counts.rows == ground.records
    return rows


def parse(ground: Ground) -> list[pa.RecordBatch]:
    schema = schema_of(ground.columns)
    rows: list[pa.RecordBatch] = []
    count = 0
    for window in ground.windows:
        rows = [_parse_window(window, schema, has_headers="headers" in ground.columns)]
        count += len(rows[0])
    assert count == ground.records
    return rows


def _parse_window(window: bytes, schema: pa.Schema, *, has_headers: bool) -> pa.RecordBatch:
    offsets, times, keys, values, headers = [], [], [], [], []
    records = MemoryRecords(window)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            offsets.append(record.offset)
            times.append(record.timestamp)
            keys.append(record.key)
            values.append(record.value)
            if has_headers:
                headers.append(record.headers)
    count = len(offsets)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.repeat(pa.scalar(TOPIC, pa.string()), count),
        "partition": pa.repeat(pa.scalar(PARTITION, pa.int32()), count),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")).cast(
            pa.timestamp("us", tz="UTC")
        ),
        "timestampType": pa.repeat(pa.scalar(0, pa.int32()), count),
    }
    if has_headers:
        columns["headers"] = _headers_of(headers, schema.field("headers").type)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _headers_of(headers: list[list[tuple[str, bytes | None]]], kind: pa.DataType) -> pa.Array:
    ends = [0]
    names: list[str] = []
    contents: list[bytes | None] = []
    for each in headers:
        for name, content in each:
            names.append(name)
            contents.append(content)
        ends.append(len(names))
    pairs = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(contents, pa.binary())],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs, type=kind)


# ---------------------------------------------------------------------------------------- measures


def compare(run: Run, sizes: Sizes, codec: Compression, *, has_headers: bool) -> None:
    at = f"{codec.name.lower()}, {'2 headers' if has_headers else 'no headers'}"
    ground = make_ground(sizes, codec, has_headers=has_headers)
    assert pa.Table.from_batches(decode(ground)).equals(pa.Table.from_batches(parse(ground)))
    ours_s, theirs_s = [], []
    for _ in range(sizes.passes):
        ours_s.append(_seconds(lambda: decode(ground)))
        theirs_s.append(_seconds(lambda: parse(ground)))
    for name, seconds in (("decoder", ours_s), ("aiokafka's parser feeding Arrow", theirs_s)):
        millions = ground.records / median(seconds) / 1e6
        run.add(Figure(f"{name}, {at}", millions, "M records/s"))
    ratio = median(theirs / ours for theirs, ours in zip(theirs_s, ours_s, strict=True))
    asked = HEADERS_MIN if has_headers else PLAIN_MIN
    figure = run.add(
        Figure(f"decoder / aiokafka's parser feeding Arrow, {at}", ratio, "times", at_least=asked)
    )
    if not figure.is_met:
        run.add_profile(figure.name, profile_of(lambda: decode(ground)))


def _seconds(work: Callable[[], object]) -> float:
    begin = cpu_ns()
    work()
    return (cpu_ns() - begin) / 1e9


# ----------------------------------------------------------------------------------------- command


@click.command()
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option(
    "--codec", "codecs", multiple=True,
    type=click.Choice([codec.name.lower() for codec in Compression]),
    help="Only this one; can be given several times.",
)  # fmt: skip
@output_option
def main(*, quick: bool, codecs: tuple[str, ...], output: Path | None) -> None:
    """Measure the decoding of logs beside aiokafka's parser feeding Arrow; judge what is asked."""
    run = Run()
    sizes = QUICK if quick else FULL
    with recording(run, output, sizes=asdict(sizes)), collector(Collector.ON):
        for has_headers in (False, True):
            what = "2 headers" if has_headers else "no headers"
            run.section(
                f"{sizes.log_bytes >> 20} MiB in batches of {sizes.batch_bytes >> 10} KiB, values "
                f"of {sizes.value_bytes} B, {what}, windows of {sizes.window_bytes >> 10} KiB"
            )
            for codec in Compression:
                if not codecs or codec.name.lower() in codecs:
                    compare(run, sizes, codec, has_headers=has_headers)


if __name__ == "__main__":
    main()
