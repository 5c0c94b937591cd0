"""Frozen plans as engines read them that know nothing of ours: rows of a table, rows of JSON."""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.read_plan.document import format_plan
from spark_tiering.read_plan.manifest_units import ManifestContents
from spark_tiering.read_plan.parquet import format_parquet
from spark_tiering.read_plan.question import Question, QuestionFacts, RecordBounds
from spark_tiering.read_plan.tier_plans import plan_of_manifests
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.stores.opening import open_store
from tests.support.partitions.written_logs import WrittenLog
from tests.support.repository import tree
from tests.support.tier.read_plans import STARTED, plan_of, segment, shard_with

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_plan_when_spark_reads_it_has_ranges(spark_session: SparkSession, tmp_path: Path) -> None:
    """Spark reads names, lists of leader epochs and nulls from the plan's table."""
    plan = plan_of(
        shard_with(
            segment(1, 0, 99, newest_ms=10),
            segment(2, 100, 199, epochs=((0, 100), (1, 150))),
            segment(3, 200, 299, state=STARTED),
            segment(4, 40, 59, newest_ms=-1),
        ),
        Question(bounds=RecordBounds(to_offset=180), prefix="tier/"),
        QuestionFacts({"orders": 1_000}),
    )
    file = tmp_path / "plan.parquet"
    file.write_bytes(format_parquet(plan))
    table = spark_session.read.parquet(str(file))
    rows = table.orderBy("read_first_offset").collect()
    assert [(one.read_first_offset, one.read_last_offset) for one in rows] == [
        (0, 39), (40, 59), (60, 99), (100, 179),
    ]  # fmt: skip
    assert [one.log_key for one in rows] == [one.log_key for one in plan.segments]
    assert [one.expires_at_ms for one in rows] == [1_011, None, 1_011, 1_001]
    assert rows[3].epochs == [(0, 100), (1, 150)]
    assert {one.token for one in rows} == {plan.token}
    document = tmp_path / "plan.json"
    document.write_bytes(format_plan(plan))
    said = spark_session.read.option("multiLine", "true").json(str(document))
    keys = said.select(sf.explode("segments").alias("one")).select("one.log_key").collect()
    assert [one.log_key for one in keys] == [one.log_key for one in plan.segments]


def test_plan_when_read_by_the_documented_program_then_gives_every_record(tmp_path: Path) -> None:
    """The documented program reads every record of a range, for every codec."""
    log = WrittenLog(seed=3)
    log.fill(60)
    log.settle()
    settings = LocalSettings(tmp_path / "store", is_synced=False)
    with open_store(settings) as store:
        segments = log.into_store(store, "kafka/", CopyOptions(is_compressed=True))
    first, behind = segments[0].start_offset + 3, segments[-2].last_offset - 4
    asked = Question(bounds=RecordBounds(first, behind), prefix="kafka/")
    plan = plan_of_manifests(ManifestContents(segments, []), asked)
    assert len(list(plan.segments)) == len(segments) - 1 > 2
    text = (tree.ROOT / "docs/tier-care-export.md").read_text(encoding="utf-8")
    program, _ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(program.replace("s3://bucket", str(settings.folder)), names)
    batches = pq.ParquetFile(BytesIO(format_parquet(plan))).iter_batches()
    found = [row for batch in names["records"](batches) for row in batch.to_pylist()]
    expected = log.rows(first, behind)
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (row.offset, row.key, row.value) for row in expected
    ]
    assert len(expected) > 50
