"""`format("rlmm")`, batches and streams, on a real Spark that finds it by itself."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.execution.session import open_session
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.layout.object_names import ObjectKind, object_keys
from spark_tiering.read_plan.document import format_plan
from spark_tiering.read_plan.manifest_units import ManifestContents
from spark_tiering.read_plan.question import Question
from spark_tiering.read_plan.tier_plans import plan_of_manifests
from spark_tiering.stores.local import LocalStore
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.s3 import S3Store
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.partitions.written_logs import Row, WrittenLog, row_of, without_headers
from tests.support.stores.s3_servers import ACCESS, BUCKET, SECRET, seaweedfs_server
from tests.support.stores.stores_under_test import known_as

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PREFIX = "kafka/"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
WAIT_S = 200


@pytest.fixture(scope="module")
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    assert spark_session.conf.get(PUSHDOWN) == "true", "sessions of ours take filters"
    before = spark_session.conf.get("spark.sql.session.timeZone")
    spark_session.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark_session
    assert before is not None
    spark_session.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(scope="module")
def log() -> WrittenLog:
    log = WrittenLog(11)
    log.fill(60)
    return log


@pytest.fixture(scope="module")
def tier(log: WrittenLog, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data-source") / "tier"
    log.into_store(LocalStore(LocalSettings(folder)), PREFIX)
    return {"store": str(folder), "prefix": PREFIX, "subscribe": "orders"}


def frame(spark: SparkSession, options: dict[str, str], schema: str = "") -> DataFrame:
    reader = spark.read.format("rlmm").options(**options)
    return (reader.schema(schema) if schema else reader).load()


def rows_of(found: DataFrame) -> list[Row]:
    rows = [row_of(one) for one in found.toArrow().to_pylist()]
    return sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))


def told(call: Any) -> str:
    with pytest.raises(Exception) as failed:  # noqa: PT011 - Spark has many classes for it
        call()
    return str(failed.value)


def test_spark_when_it_reads_a_folder_then_rows_and_columns_are_those_of_the_log(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog
) -> None:
    """A folder gives the log's rows and columns, in one task or many."""
    found = frame(spark, {**read_options, "includeHeaders": "true", "minPartitions": "5"})
    assert found.rdd.getNumPartitions() >= 5
    assert rows_of(found) == log.rows()
    names = "key value topic partition offset timestamp timestampType"
    plain = frame(spark, read_options)
    assert plain.columns == names.split()
    assert rows_of(plain) == without_headers(log.rows())
    committed = frame(spark, {**read_options, "isolationLevel": "read_committed"})
    assert committed.count() == len(log.rows(committed=True))
    bounds = dict.fromkeys(("startingOffsets", "endingOffsets"), '{"orders": {"0": 7}}')
    assert frame(spark, {**read_options, **bounds}).count() == 0


def test_spark_when_a_schema_is_given_then_these_columns_alone_are_read(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog
) -> None:
    """Spark reads the columns of a given schema in its order and refuses unknown ones."""
    found = frame(spark, read_options, "timestamp timestamp, offset bigint not null")
    rows = found.orderBy("offset").collect()
    expected = [(row.timestamp.replace(tzinfo=None), row.offset) for row in log.rows()]
    assert [tuple(row) for row in rows] == expected
    assert "there is no column 'moment'" in told(
        frame(spark, read_options, "moment bigint").collect
    )
    wrong = told(frame(spark, read_options, "offset int").collect)
    assert "offset is bigint, the schema that was given says int" in wrong


def test_spark_when_filters_are_pushed_down_then_they_narrow_and_spark_filters_on(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog
) -> None:
    """Pushed filters narrow the plan, and Spark needs its switch for pushdown."""
    found = frame(spark, {**read_options, "pushdown": "true"})
    rows = log.rows()
    at = rows[len(rows) // 2].timestamp
    narrow = found.where("offset > 20 and offset <= 40 and key is null and topic = 'orders'")
    assert [row.offset for row in rows_of(narrow.withColumn("headers", narrow.key))] == [
        row.offset for row in rows if 20 < row.offset <= 40 and row.key is None
    ]
    late = found.where(f"timestamp >= timestamp_millis({round(at.timestamp() * 1000)})")
    assert late.count() == len([row for row in rows if row.timestamp >= at])
    assert found.where("topic = 'payments' or partition = 3").count() == 0
    assert found.where("topic = 'payments' and partition = 0").count() == 0
    spark.conf.set(PUSHDOWN, "false")
    try:
        refused = frame(spark, {**read_options, "pushdown": "true"}).where("offset = 3")
        assert "DATA_SOURCE_PUSHDOWN_DISABLED" in told(refused.collect)
        assert frame(spark, read_options).where("offset = 3").count() == 1
    finally:
        spark.conf.set(PUSHDOWN, "true")


def test_sql_takes_options(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog
) -> None:
    """A SQL view accepts the options in any case."""
    said = ", ".join(f"{name.upper()} '{value}'" for name, value in read_options.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW tiered USING rlmm OPTIONS ({said})")
    (found,) = spark.sql("SELECT count(*), max(offset), min(timestamp) FROM tiered").collect()
    rows = log.rows()
    first = min(row.timestamp for row in rows).replace(tzinfo=None)
    assert tuple(found) == (len(rows), rows[-1].offset, first)


def test_spark_when_a_plan_is_read_then_the_same_rows_come_again(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog, tmp_path: Path
) -> None:
    """A batch and a stream return the same rows of a plan again."""
    segments = log.tiered[:3]
    plan = plan_of_manifests(
        ManifestContents(segments, []), Question(topics=("orders",), prefix=PREFIX)
    )
    file = tmp_path / "plan.json"
    file.write_bytes(format_plan(plan))
    del (place := dict(read_options))["subscribe"]
    options = {**place, "plan": str(file), "planToken": plan.token, "includeHeaders": "true"}
    expected = log.rows(0, segments[-1].last_offset + 1)
    assert rows_of(frame(spark, options)) == expected
    options["startingOffsets"] = "earliest"
    run_stream(spark, options, tmp_path)
    assert written(spark, tmp_path) == expected


def test_spark_when_segments_are_in_a_bucket_then_workers_find_their_own_credentials(
    spark: SparkSession,
    log: WrittenLog,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers use their own credentials, and the query plan holds none."""
    with seaweedfs_server(tmp_path_factory.mktemp("seaweedfs")) as server:
        known_as(ACCESS, SECRET, tmp_path, monkeypatch)
        settings = S3Settings(
            BUCKET, endpoint=server.endpoint, region="us-east-1", is_path_style=True
        )
        with S3Store(settings) as store:
            log.into_store(store, PREFIX)
        found = frame(
            spark,
            {
                "store": f"s3://{BUCKET}/{PREFIX}",
                "endpoint": server.endpoint,
                "region": "us-east-1",
                "pathStyle": "true",
                "subscribe": "orders",
                "includeHeaders": "true",
                "isolationLevel": "read_committed",
                "maxPartitionBytes": "2k",
            },
        )
        assert rows_of(found) == log.rows(committed=True)
        plan: Any = found
        assert SECRET not in plan._jdf.queryExecution().toString()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"secretKey": "hunter2"}, "ConfigError: the option secretkey looks like a secret"),
        ({"subscribe": "payments"}, "ConfigError: nothing is there of payments"),
        ({"startingOffsets": '{"orders": {"0": 999999}}'}, "DataLost: orders-0: no offsets"),
    ],
)
def test_spark_when_an_option_is_wrong_then_it_says_so_in_one_line(
    options: dict[str, str], says: str, spark: SparkSession, read_options: dict[str, str]
) -> None:
    """A wrong option gives the class and message of our error without a stack trace."""
    said = told(lambda: frame(spark, {**read_options, **options}).count())
    assert says in said
    assert "Traceback" not in said
    assert "hunter2" not in said


def test_spark_when_segments_are_damaged_or_gone_then_it_says_so_in_one_line(
    spark: SparkSession, read_options: dict[str, str], log: WrittenLog, tmp_path: Path
) -> None:
    """An executor reports damaged or missing segments in one line."""
    folder = tmp_path / "damaged"
    shutil.copytree(read_options["store"], folder)
    options = {**read_options, "store": str(folder), "includeHeaders": "true"}
    keys = [object_keys(one.id, one.start_offset, PREFIX) for one in log.tiered]
    path = folder / keys[1][ObjectKind.LOG]
    content = path.read_bytes()
    path.write_bytes(content[:-9])
    said = told(frame(spark, options).collect)
    assert f"TierUnreadable: orders-0, offsets {log.tiered[1].start_offset} to" in said
    assert "TIER-OBJECT-LENGTH" in said
    assert "Traceback" not in said
    path.unlink()
    assert "DataLost: orders-0, offsets" in told(frame(spark, options).collect)
    first, behind = log.tiered[1].start_offset, log.tiered[1].last_offset + 1
    left = frame(spark, {**options, "failOnDataLoss": "false"})
    assert rows_of(left) == [*log.rows(0, first), *log.rows(behind)]


def stream(spark: SparkSession, options: dict[str, str], folder: Path) -> StreamingQuery:
    found = spark.readStream.format("rlmm").options(**options).load()
    writer = found.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "rows"), format="parquet")


def run_stream(spark: SparkSession, options: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    query = stream(spark, options, folder)
    assert query.awaitTermination(WAIT_S)
    assert query.exception() is None
    batches = [json.loads(one.json) for one in query.recentProgress]
    return [one for one in batches if one["numInputRows"]]


def written(spark: SparkSession, folder: Path) -> list[Row]:
    return rows_of(spark.read.parquet(str(folder / "rows")))


def test_stream_when_restarted_goes_on_where_it_was(spark: SparkSession, tmp_path: Path) -> None:
    """A restarted stream continues behind its checkpoint in limited batches."""
    log = WrittenLog(12)
    log.fill(25)
    store = LocalStore(LocalSettings(tmp_path / "tier"))
    log.into_store(store)
    options = {
        "store": str(tmp_path / "tier"),
        "subscribe": "orders",
        "includeHeaders": "true",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "70",
    }
    batches = run_stream(spark, options, tmp_path)
    ends = [one["sources"][0]["endOffset"]["orders"]["0"] for one in batches]
    assert ends == [*range(70, log.tier_end, 70), log.tier_end]
    assert written(spark, tmp_path) == log.rows()
    other = WrittenLog(13, partition=1)
    other.fill(10)
    other.into_store(store)
    log.fill(20)
    log.into_store(store)
    run_stream(spark, options, tmp_path)
    assert written(spark, tmp_path) == [*log.rows(), *other.rows()]
    assert run_stream(spark, options, tmp_path) == []


@pytest.mark.long
def test_stream_when_segments_expire_unread_fails(spark: SparkSession, tmp_path: Path) -> None:
    """A stream whose segments expired names them, or skips them where losses are allowed."""
    log = WrittenLog(14)
    log.fill(15)
    store = LocalStore(LocalSettings(tmp_path / "tier"))
    log.into_store(store)
    options = {
        "store": str(tmp_path / "tier"),
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "isolationLevel": "read_committed",
        "includeHeaders": "true",
    }
    run_stream(spark, options, tmp_path)
    first = written(spark, tmp_path)
    assert first == log.rows(committed=True)
    end = log.stable_end
    log.settle()
    settled = log.next_offset
    log.fill(40, transactions=False)
    log.into_store(store)
    gone = next(one for one in log.tiered if one.start_offset > settled)
    for key in object_keys(gone.id, gone.start_offset).values():
        (tmp_path / "tier" / key).unlink()
    query = stream(spark, options, tmp_path)
    failed = told(lambda: query.awaitTermination(WAIT_S))
    assert f"DataLost: orders-0: no offsets {gone.start_offset} to {gone.last_offset}" in failed
    run_stream(spark, {**options, "failOnDataLoss": "false"}, tmp_path)
    rows = log.rows(end, committed=True)
    left = [row for row in rows if not gone.start_offset <= row.offset <= gone.last_offset]
    assert written(spark, tmp_path) == [*first, *left]


@pytest.mark.long
def test_spark_connect_when_it_reads_then_rows_are_those_of_the_log(
    spark_connect: str, read_options: dict[str, str], log: WrittenLog
) -> None:
    """Spark Connect gives the rows of the log, planned and read at the server."""
    opened = open_session(ExecutionSettings(spark_connect))
    try:
        found = frame(opened.spark, {**read_options, "includeHeaders": "true"})
        assert rows_of(found) == log.rows()
        assert found.where("offset < 10").count() == len(log.rows(0, 10))
    finally:
        opened.close()
