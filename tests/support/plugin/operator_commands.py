"""`rlmm` as an operator runs it beside such a broker."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

from aiokafka import TopicPartition

from rlmm.metadata.segment import SegmentMetadata
from tests.kafka.clients import consumer
from tests.kafka.ledger import LEVELS, MINUTE_MS, Entry, offset_at
from tests.kafka.stock_consumer import Read, StockConsumer
from tests.support.datasource.reading_process import Query, read_by_spark
from tests.support.engine.chosen import environ_without_settings
from tests.support.plugin.traffic import assert_read
from tests.support.spark.sessions import SLOTS, python_path
from tests.support.stores.s3_servers import ACCESS, BUCKET, SECRET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.kafka.ledger import Ledger
    from tests.kafka.plugin_kafka import PluginKafka

SLOW = {
    "remote.log.manager.copy.max.bytes.per.second": "128",
    "remote.log.manager.copier.thread.pool.size": "50",
}
"""A segment in two minutes, so that a job finds some left; a waiting partition keeps a thread."""
SPOKEN_FOR = {"retention.ms": "86400000", "local.retention.ms": "1000"}
COMMAND_S = 300
"""Longest time of one command: Spark starts in seconds, and on a busy machine in many."""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": ACCESS,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_DEFAULT_REGION": "us-east-1",
}
FINE = 0
FOUND = 1


@dataclass(frozen=True, slots=True)
class Done:
    status: int
    output: str
    errors: str

    @property
    def document(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.output)
        except json.JSONDecodeError as error:
            msg = f"status {self.status}: {self.output}\n{self.errors}"
            raise AssertionError(msg) from error
        return found

    def expect(self, status: int = FINE) -> Done:
        assert self.status == status, f"status {self.status}: {self.output}\n{self.errors}"
        return self


@dataclass(frozen=True, slots=True)
class Operator:
    kafka: PluginKafka
    store: tuple[str, ...]
    place: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_cluster(self) -> tuple[str, ...]:
        return ("--bootstrap-server", self.kafka.bootstrap)

    @property
    def of_sidecar(self) -> tuple[str, ...]:
        return ("--sidecar", self.kafka.sidecar.address)

    @property
    def of_both(self) -> tuple[str, ...]:
        return (*self.of_sidecar, *self.of_cluster)

    async def __call__(self, *arguments: str) -> Done:
        return await asyncio.to_thread(self._run, arguments)

    async def tier(self, command: str, *arguments: str) -> Done:
        engine = () if {"--master", "--no-spark"} & {*arguments} else ("--no-spark",)
        return await self("tier", command, *self.store, *engine, *arguments)

    async def report_of(self, command: str, *arguments: str, status: int = FINE) -> dict[str, Any]:
        done = await self.tier(command, *arguments, "--output", "json")
        return done.expect(status).document

    async def audit(self, *arguments: str) -> None:
        """Assert that `rlmm tier audit` finds nothing in the cluster's metadata."""
        report = await self.report_of("audit", "--min-age", "1s", *self.of_cluster, *arguments)
        sets = {name: found["sets"] for name, found in report["verdicts"].items() if found["sets"]}
        assert (report["verdict"], [*sets]) == ("Clean", ["referenced"]), report

    async def adopt(self, topic: str, metadata: Sequence[str], *more: str) -> dict[str, Any]:
        await self.kafka.wait_until_tiered(topic, 1, deadline_s=60.0)  # so both have copied
        source = ("--log-dir", str(self.kafka.node.data))
        report = await self.report_of(
            "run",
            "--adopt",
            "--topic",
            topic,
            *source,
            *metadata,
            *("--master", f"local[{SLOTS}]"),
            *more,
        )
        (found,) = report["topics"]
        assert found["standing"] == "adopted", report
        return report

    def _run(self, arguments: Sequence[str]) -> Done:
        home = self.kafka.store.parent / "operator"
        home.mkdir(exist_ok=True)
        kept = environ_without_settings()
        done = subprocess.run(
            [sys.executable, "-m", "rlmm", *arguments],
            env={
                **kept, **CREDENTIALS, "PYTHONPATH": python_path(),
                "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(home),
            },
            cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=COMMAND_S,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)


async def log_start(kafka: PluginKafka, topic: str, partition: int = 0) -> int:
    place = TopicPartition(topic, partition)
    async with consumer(kafka.login, topic, partition) as client:
        return int(await client.position(place))


async def assert_spark_has(
    operator: Operator, ledgers: Sequence[Ledger], folder: Path, *ways: Mapping[str, str]
) -> None:
    """Assert that Spark reads the ledgers' records from the tier once in both isolation levels."""
    place = {"includeHeaders": "true", **operator.place}
    asked = [*product(ledgers, LEVELS, ways or ({},))]
    queries = [
        Query("rlmm", {**place, "subscribe": ledger.topic, "isolationLevel": level, **way})
        for ledger, level, way in asked
    ]
    given = await asyncio.to_thread(
        read_by_spark, queries, folder, (), CREDENTIALS, deadline_s=COMMAND_S
    )
    for (ledger, level, way), found in zip(asked, given, strict=True):
        partitions = sorted({one.partition for one in ledger.entries})
        expected = [one for number in partitions for one in ledger.expected(level, number)]
        entries = sorted(map(entry_of_row, found.table.to_pylist()), key=lambda one: one[:2])
        assert entries == expected, (ledger.topic, level, way)


def entry_of_row(row: Mapping[str, Any]) -> Entry:
    at = row["timestamp"].replace(tzinfo=UTC)
    headers = tuple((one["key"], one["value"]) for one in row["headers"] or ())
    milliseconds = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return Entry(row["partition"], row["offset"], milliseconds, row["key"], row["value"], headers)


async def assert_java_has(kafka: PluginKafka, ledger: Ledger) -> None:
    partitions = sorted({one.partition for one in ledger.entries})
    for level in LEVELS:
        java = StockConsumer(kafka.node.jars, kafka.bootstrap, ledger.topic, level)
        found = await java.read(*map(Read, partitions))
        assert found == [ledger.expected(level, number) for number in partitions], level


def quicken(kafka: PluginKafka) -> None:
    limit = f"{next(iter(SLOW))}={2**63 - 1}"
    where = ("--entity-type", "brokers", "--entity-name", str(kafka.node.node_id))
    kafka.tools.configs("--alter", "--add-config", limit, *where)


def written_by_jobs(kafka: PluginKafka, topic: str) -> list[SegmentMetadata]:
    events = (one.event for one in kafka.metadata_events(topic))
    return [one for one in events if isinstance(one, SegmentMetadata) and one.broker_id == -1]


def folder_operator(kafka: PluginKafka) -> Operator:
    store = str(kafka.store)
    return Operator(kafka, ("--store", store), {"store": store})


def bucket_operator(kafka: PluginKafka, endpoint: str, prefix: str = "") -> Operator:
    store = f"s3://{BUCKET}/{prefix}"
    flags = ("--store", store, "--endpoint", endpoint, "--path-style")
    return Operator(kafka, flags, {"store": store, "endpoint": endpoint, "pathStyle": "true"})


async def assert_consumers_have(kafka: PluginKafka, ledger: Ledger, partition: int = 0) -> None:
    await assert_read(kafka.login, ledger, partition)
    times = sorted(one.timestamp_ms for one in ledger.entries if one.partition == partition)
    asked = [times[0] - MINUTE_MS, *times[:: len(times) // 8], times[-1], times[-1] + 1]
    for timestamp_ms in asked:
        offset = await offset_at(kafka.login, ledger.topic, timestamp_ms, partition)
        assert_is_at(ledger, partition, timestamp_ms, offset)


def assert_is_at(ledger: Ledger, partition: int, timestamp_ms: int, offset: int | None) -> None:
    """Assert that the broker finds the first record at *timestamp_ms*, or a marker before it."""
    expected = ledger.at_time(partition, timestamp_ms)
    is_marker = (
        offset is not None
        and (expected is None or offset < expected)
        and not any((one.partition, one.offset) == (partition, offset) for one in ledger.entries)
    )
    assert is_marker or offset == expected, (timestamp_ms, offset, expected)
