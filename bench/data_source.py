"""
`python -m bench data-source`: records/s of `spark.read.format("rlmm")` beside Spark's own Kafka
source that reads the same data from a broker, and how much of a large tier a window of time reads.

Both sources have one session of Spark with its own settings for Java, two slots, the same topics
and bounds, and take turns. How each figure is made stands where it is.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import click

from bench.data_source_ground import (
    BATCH_RECORDS,
    BEGIN_MS,
    TOPIC,
    LargeTier,
    counted_reads,
    tier_of,
    write_large_tier,
)
from bench.figures import Figure, Run
from bench.recording import output_option, recording
from spark_tiering.data_source.options import parse_options
from spark_tiering.data_source.piece_reading import read_piece
from spark_tiering.data_source.pushed_filters import EVERYTHING, PushedFilters
from spark_tiering.data_source.query_planning import QueryPlanner
from spark_tiering.segment_sources.logdir import LogDirSource
from spark_tiering.segment_sources.settings import LogDirSettings
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.s3_settings import S3Settings
from tests.kafka.node import Node
from tests.kafka.prepared import prepare
from tests.kafka.spark_connector import connector_jars
from tests.support.datasource.reading_process import Query, read_by_spark
from tests.support.stores.s3_servers import ACCESS, BUCKET, SECRET, seaweedfs_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.datasource.reading_process import Read

TO_KAFKA_MIN: Final = 2.0
WINDOW_SHARE_MAX: Final = 2.0
MINUTE_MS: Final = 60_000
DEADLINE_S: Final = 1_800.0
CODECS: Final = ("none", "zstd")
PERFORMANCE: Final = "org.apache.kafka.tools.ProducerPerformance"
TOPICS_COMMAND: Final = "org.apache.kafka.tools.TopicCommand"
AGGREGATE: Final = "count(1);sum(length(value));max(offset)"


@dataclass(frozen=True, slots=True)
class Sizes:
    records: int
    value_bytes: int
    segment_bytes: int
    passes: int
    large: LargeTier


FULL = Sizes(
    records=6_000_000, value_bytes=100, segment_bytes=64 << 20, passes=5,
    large=LargeTier(10, 16, 64 << 20, 880),
)  # fmt: skip
QUICK = Sizes(
    records=60_000, value_bytes=100, segment_bytes=1 << 20, passes=1,
    large=LargeTier(3, 4, 8 << 20, 28_000),
)  # fmt: skip


# ------------------------------------------------------------------------------- beside a broker


def compare_with_kafka(run: Run, sizes: Sizes, place: Path) -> None:
    jars, connector = prepare(), connector_jars()
    known = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    os.environ.update(known)
    (place / "seaweedfs").mkdir()
    with Node(jars, place / "broker") as node, seaweedfs_server(place / "seaweedfs") as server:
        node.start()
        bucket = S3Settings(
            BUCKET, endpoint=server.endpoint, region="us-east-1", is_path_style=True
        )
        ends = {}
        for codec in CODECS:
            _produce(node, codec, sizes)
            ends[codec] = _copy(node, codec, bucket)
        queries = _queries(node, ends, server.endpoint, sizes.passes + 1)
        # What Spark has by itself: ours are made for jobs that start soon.
        conf = {"spark.driver.extraJavaOptions": "-Drlmm.bench=1"}
        read = read_by_spark(
            queries, place / "spark", connector, known, conf, deadline_s=DEADLINE_S
        )
    _tell(run, sizes, read, ends)


def _produce(node: Node, codec: str, sizes: Sizes) -> None:
    node.tools.run(
        TOPICS_COMMAND, "--create", "--topic", codec, "--partitions", "2", "--config",
        f"segment.bytes={sizes.segment_bytes}",
    )  # fmt: skip
    node.tools.run(
        PERFORMANCE, "--topic", codec, "--num-records", str(sizes.records), "--record-size",
        str(sizes.value_bytes), "--throughput", "-1", "--command-property",
        f"compression.type={codec}", deadline_s=600,
    )  # fmt: skip


def _copy(node: Node, topic: str, bucket: S3Settings) -> dict[int, int]:
    found, _ = LogDirSource(LogDirSettings((str(node.data),))).partitions()
    ends = {}
    with open_store(bucket) as store:
        for one in found:
            if one.partition.topic == topic:
                folder = node.data / f"{topic}-{one.partition.partition}"
                segments = tier_of(folder, one.partition, store)
                ends[one.partition.partition] = segments[-1].last_offset + 1
    return ends


def _queries(
    node: Node, ends: Mapping[str, Mapping[int, int]], endpoint: str, passes: int
) -> list[Query]:
    queries = []
    for _ in range(passes):
        for codec, by_partition in ends.items():
            offsets = ", ".join(f'"{number}": {end}' for number, end in by_partition.items())
            common = {"subscribe": codec, "endingOffsets": f'{{"{codec}": {{{offsets}}}}}'}
            of_broker = {"kafka.bootstrap.servers": node.bootstrap, "startingOffsets": "earliest"}
            of_tier = {
                "store": f"s3://{BUCKET}/",
                "endpoint": endpoint,
                "region": "us-east-1",
                "pathStyle": "true",
            }
            queries.append(Query("kafka", {**common, **of_broker}, AGGREGATE))
            queries.append(Query("rlmm", {**common, **of_tier}, AGGREGATE))
    return queries


def _tell(run: Run, sizes: Sizes, read: list[Read], ends: Mapping[str, Mapping[int, int]]) -> None:
    pairs = list(zip(read[::2], read[1::2], strict=True))
    for theirs, ours in pairs:
        if theirs.table != ours.table:
            msg = f"{theirs.table.to_pylist()} is not {ours.table.to_pylist()}"
            raise ValueError(msg)
    for at, codec in enumerate(ends):
        # The first pass is that in which both are loaded.
        passes = pairs[at + len(CODECS) :: len(CODECS)]
        records = passes[0][0].table.column(0)[0].as_py()
        run.section(
            f"{records:,} records of {sizes.value_bytes} B in 2 partitions, {codec}; 2 slots"
        )
        for name, number in (
            ("Spark's Kafka source, from a broker", 0),
            ("rlmm, from a bucket", 1),
        ):
            rate = records / median(one[number].seconds for one in passes)
            run.add(Figure(f"{codec}: {name}", rate, "records/s"))
        ratio = median(theirs.seconds / ours.seconds for theirs, ours in passes)
        run.add(
            Figure(f"{codec}: rlmm / Spark's Kafka source", ratio, "times", at_least=TO_KAFKA_MIN)
        )


# --------------------------------------------------------------------------------- a window of time


def measure_window(run: Run, large: LargeTier, place: Path) -> None:
    total = write_large_tier(place, large)
    begin = BEGIN_MS + large.spanned_ms // 2
    run.section(
        f"one minute of {large.spanned_ms / 3_600_000:.1f} hours in {large.partitions} partitions, "
        f"{total / 1e9:.1f} GB"
    )
    minute = (begin, begin + MINUTE_MS)
    expected = sum(
        minute[0] <= BEGIN_MS + number * large.batch_ms < minute[1]
        for number in range(large.segments * large.segment_bytes // 1_000)
    )
    ways = {
        "startingTimestamp, endingTimestamp": (
            {"startingTimestamp": str(minute[0]), "endingTimestamp": str(minute[1])},
            EVERYTHING,
        ),
        "filters pushed down, timestampDisorderMs=0": (
            {"timestampDisorderMs": "0"},
            PushedFilters(first_time_ms=minute[0], last_time_ms=minute[1] - 1),
        ),
    }
    for name, (options, pushed) in ways.items():
        place_options = {"store": str(place / "tier"), "subscribe": TOPIC}
        with counted_reads() as counted:
            rows = _rows(place_options | options, pushed)
        if rows != expected * BATCH_RECORDS * large.partitions:
            msg = f"{rows} rows, expected {expected * BATCH_RECORDS * large.partitions}"
            raise ValueError(msg)
        run.add(Figure(f"{name}: requests", counted.requests, "requests"))
        share = 100 * counted.bytes_read / total
        run.add(Figure(f"{name}: read", share, "% of all bytes", at_most=WINDOW_SHARE_MAX))


def _rows(options: dict[str, str], pushed: PushedFilters) -> int:
    planner = QueryPlanner(parse_options(options, is_streaming=False))
    listing = planner.listing()
    shares = planner.shares(listing, planner.starts(listing), planner.ends(listing), pushed)
    reading = planner.reading(("value", "timestamp"), pushed)
    return sum(
        rows.num_rows for share in shares for piece in share for rows in read_piece(piece, reading)
    )


# ---------------------------------------------------------------------------------------- command


@click.command("data-source")
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that it runs, measures nothing.")
@click.option("--without-broker", is_flag=True, help="The window of time alone.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; by default in the system's folder for temporary files.",
)
@output_option
def main(*, quick: bool, without_broker: bool, folder: Path | None, output: Path | None) -> None:
    """Measure reading segments with Spark beside Spark's Kafka source; judge what is asked."""
    run = Run()
    sizes = QUICK if quick else FULL
    with (
        tempfile.TemporaryDirectory(prefix="bench-data-source-", dir=folder) as place,
        recording(run, output, sizes=asdict(sizes)),
    ):
        measure_window(run, sizes.large, Path(place))
        if not without_broker:
            compare_with_kafka(run, sizes, Path(place))


if __name__ == "__main__":
    main()
