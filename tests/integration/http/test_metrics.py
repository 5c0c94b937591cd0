"""The metrics of a scrape: every one of the table, and no series beyond the configuration."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rlmm.access.authentication import Authenticator
from rlmm.access.roles import Client, Role
from rlmm.access.settings import AccessSettings
from rlmm.broker_files.sealed_segments import BrokerLog
from rlmm.engine.broker_watch import WatchStatistics
from rlmm.engine.copy_watch import CopyingStatistics
from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotAssigned
from rlmm.http.settings import BrokerLogSettings
from rlmm.log.files.files_log import FilesLogStatistics
from rlmm.log.kafka.kafka_log import KafkaLogStatistics
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import SegmentState
from rlmm.metrics.metric import MetricKind
from rlmm.metrics.served_state import ServedState
from rlmm.metrics.table import METRICS
from rlmm.pump.settings import PumpSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.snapshot.settings import SnapshotSettings
from rlmm.telemetry.logs import LinesStatistics
from tests.support.builders import finished, segment_id, started, tp, update
from tests.support.engines import ROOM, World, until, until_open
from tests.support.partitions.broker_folders import StableOffsets
from tests.support.repository import tree
from tests.support.server.access_files import Pki
from tests.support.server.http_servers import VERSION, process_of, showing

if TYPE_CHECKING:
    import pytest

    from rlmm.engine.service import Service

PLACES = 3
SETTINGS = EngineSettings(memory=ROOM, snapshot=SnapshotSettings(free_bytes_min=0))


def everything(process: Service, folder: Path) -> ServedState:
    figures = FrameServerCounters()
    door = Authenticator(AccessSettings(), Pki(folder).settings())
    door.limits.enter(Client("somebody", Role.READER))
    assert door.handshakes("http", 1.0) is not None
    figures.cut_off["slow"] = 1
    figures.refusals["segment", "not-ready"] = 1
    sources = ServedState(
        VERSION,
        lines=lambda: LinesStatistics({"info": 1}, 2, 3, ""),
        sidecar=lambda: figures.statistics({"idle": 4}, 5, {}, 6, 7),
        access=door.statistics,
        broker_log=BrokerLog(BrokerLogSettings(("/var/kafka-logs",)), StableOffsets()),
    )
    sources.begin(process)
    return sources


def documented() -> set[str]:
    text = tree.read(Path("docs/metrics.md"))
    return set(re.findall(r"^\| `(rlmm_\w+)`", text, re.MULTILINE))


class KafkaLike(MemoryLog):
    """A log in memory with the figures of one on Kafka."""

    def statistics(self) -> KafkaLogStatistics:  # type: ignore[override]
        return KafkaLogStatistics(True, 1, 0, 2, 3, 0, 4, 5, 6)


class FilesLike(MemoryLog):
    """A log in memory with the figures of an embedded one."""

    def statistics(self) -> FilesLogStatistics:  # type: ignore[override]
        return FilesLogStatistics(1, 0, 1, 1, 0)


async def test_metrics_when_everything_has_figures_then_the_scrape_is_the_documented_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scrape, the table and the page have the same metrics."""
    kafka, files = World(PLACES), World(PLACES)
    partition = kafka.partition_on(0)
    kafka.store(started(segment_id("a", partition), max_timestamp_ms=1))
    async with (
        kafka.engine(SETTINGS, log=KafkaLike(kafka.topic), snapshots=tmp_path) as first,
        files.engine(SETTINGS, log=FilesLike(files.topic)) as second,
    ):
        await until_open(first, *range(PLACES))
        await until_open(second, *range(PLACES))
        assert (await first.flush()).written
        process = process_of(a=first, b=second)
        statistics = process.statistics
        watch = WatchStatistics(1, 2, 3, 4, "", 5.0)
        copying = CopyingStatistics(1, 2, "", 3.0, {"orders": 4.0}, 5.0)
        more = partial(replace, watches={"a": watch}, copying={"a": copying})
        monkeypatch.setattr(process, "statistics", lambda: more(statistics()))
        sources = await asyncio.to_thread(everything, process, tmp_path)
        async with showing(sources=sources, user_partitions_max=5) as client:
            await client.get("/livez")
            text = (await client.get("/metrics")).text
    names = {
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    }
    series = {name for metric in METRICS for name in metric.series}
    assert series - SOMETIMES - names == set()
    assert names - series == set()
    assert documented() == {metric.name for metric in METRICS}


SOMETIMES = {
    "rlmm_snapshot_last_failure_timestamp_seconds"  # after a failure
}


def test_metrics_when_named_then_as_prometheus_asks() -> None:
    """Names have prefix, snake case, base unit and help text, and a counter's end in `_total`."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"rlmm_[a-z][a-z_]*[a-z]", metric.name), metric.name
        assert (metric.kind is MetricKind.COUNTER) == metric.name.endswith("_total"), metric.name
        assert (metric.kind is MetricKind.INFO) == metric.name.endswith("_info"), metric.name
        assert not re.search(r"_(ms|s|kib|mib|minutes)(_total)?$", metric.name), metric.name
        assert metric.meaning.endswith("."), metric.name
        assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels), metric.name


async def test_metrics_when_asked_in_a_form_that_there_cannot_be_then_have_the_usual_one() -> None:
    """A version that is no number is no fault of the service."""
    async with World(PLACES).engine() as engine, showing(engine) as client:
        answer = await client.get(
            "/metrics", headers={"Accept": "application/openmetrics-text; version=one"}
        )
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")


async def test_metrics_when_asked_as_openmetrics_then_they_are() -> None:
    """Prometheus gets the requested format, with a help text for each family."""
    world = World(PLACES)
    async with world.engine() as engine, showing(engine) as client:
        await until_open(engine, *range(PLACES))
        answer = await client.get(
            "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        families = list(parse_openmetrics(answer.text))  # type: ignore[no-untyped-call]
        assert families
        assert all(family.documentation for family in families)


async def test_metrics_when_a_partition_is_not_ready_then_they_say_why_f34() -> None:
    """The metrics of a partition show why it is not ready, with offsets, lag and refusals."""
    world = World(PLACES)
    partition = world.partition_on(1)
    world.store(
        started(segment_id("a", partition), event_timestamp_ms=1_000),
        started(segment_id("b", partition)),
        finished(segment_id("b", partition)),
        finished(segment_id("never", partition)),
    )
    world.script.write(1, b"\x01\x00")
    world.script.stall(2)
    world.store(started(segment_id("c", world.partition_on(2))))
    tolerant = EngineSettings(pump=PumpSettings(undecodable_share_max=1.0), memory=ROOM)
    async with world.engine(tolerant) as engine, showing(engine) as client:
        await until_open(engine, 0, 1)
        await until(lambda: 2 in engine.standing().progress)
        await until(lambda: engine.standing().progress[2].target == 1)
        found = await client.metrics()
    of = 'cluster="c0",metadata_partition='
    assert found[f'rlmm_last_applied_offset{{{of}"1"}}'] == 4
    assert found[f'rlmm_high_watermark{{{of}"1"}}'] == 5
    assert found[f'rlmm_last_applied_offset{{{of}"2"}}'] == -1
    assert found[f'rlmm_target_offset{{{of}"2"}}'] == 1
    assert found[f'rlmm_partition_lag_records{{{of}"2"}}'] == 1
    assert found[f'rlmm_partition_open{{{of}"1"}}'] == 1
    assert found[f'rlmm_partition_open{{{of}"2"}}'] == 0
    assert found['rlmm_lag_records{cluster="c0"}'] == 1
    assert found['rlmm_records_rejected_total{cluster="c0",reason="unknown-segment"}'] == 1
    assert sum(count for name, count in found.items() if "undecodable_total" in name) == 1
    assert found['rlmm_segments{cluster="c0",state="COPY_SEGMENT_STARTED"}'] == 1
    assert found['rlmm_segments{cluster="c0",state="COPY_SEGMENT_FINISHED"}'] == 1
    assert found['rlmm_oldest_copy_started_age_seconds{cluster="c0"}'] > 1_000_000
    assert found['rlmm_heartbeat_age_seconds{cluster="c0"}'] >= 0
    assert found['rlmm_metadata_partitions{cluster="c0",state="open"}'] == 2
    assert found['rlmm_metadata_partitions{cluster="c0",state="replaying"}'] == 1


async def test_metrics_when_questions_and_writes_end_then_they_are_counted_by_outcome() -> None:
    """Answers, refusals and writes are counted apart."""
    world = World(PLACES)
    partition, other = world.partition_on(0), world.partition_on(1)
    segment = segment_id("a", partition)
    async with world.engine(assignment=Assignment.of_metadata([0])) as engine:
        await until_open(engine, 0)
        await engine.write(started(segment))
        await engine.write(update(segment, SegmentState.COPY_SEGMENT_FINISHED))
        engine.reads.segment(segment)
        with suppress(NotAssigned):
            engine.reads.size(other)
        async with showing(engine) as client:
            found = await client.metrics()
    assert found['rlmm_writes_total{cluster="c0",outcome="applied"}'] == 2
    assert found['rlmm_questions_total{cluster="c0",outcome="answered"}'] == 1
    assert found['rlmm_questions_total{cluster="c0",outcome="not-assigned"}'] == 1


async def test_metrics_when_scraped_then_nothing_is_counted_by_it() -> None:
    """A scrape changes no metric."""
    world = World(PLACES)
    async with world.engine() as engine, showing(engine, user_partitions_max=9) as client:
        await until_open(engine, *range(PLACES))
        before = engine.statistics().gate
        await client.metrics()
        assert engine.statistics().gate == before


async def test_metrics_when_topics_are_many_then_there_is_no_series_more() -> None:
    """The number of series does not depend on the topics unless the operator enables it."""
    world = World(PLACES)
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        async with showing(engine) as client, showing(engine, user_partitions_max=7) as asked:
            await client.metrics()
            before = len(await client.metrics())
            for number in range(40):
                world.store(started(segment_id(number, tp(f"topic-{number}", number))))
            await until(lambda: sum(engine.read_token().values()) == 40 - PLACES)
            after = await client.metrics()
            new = {name for name in after if "oldest_copy" in name or "timestamp" in name}
            assert len(after) - len(new) <= before
            assert not [name for name in after if "topic-" in name]
            sizes = [name for name in await asked.metrics() if "user_partition_size" in name]
            assert len(sizes) == 7


async def test_metrics_when_a_topic_name_is_hostile_then_its_label_is_short_and_visible() -> None:
    """A label has no control character of a name in the log, and no more than 1,024 characters."""
    world = World(1)
    for number, name in enumerate(("\x1b[31m\r\x9b", 30_000 * "n")):
        world.store(started(segment_id(number, tp(name, 0))))
    async with world.engine() as engine, showing(engine, user_partitions_max=9) as client:
        await until_open(engine, 0)
        series = [name for name in await client.metrics() if "user_partition_size" in name]
    assert [name for name in series if r"\\x1b[31m\\x0d\\x9b" in name]
    assert max(map(len, series)) < 1_200
    assert not [name for name in series if not name.isprintable()]


async def test_metrics_when_single_partitions_are_left_out_then_totals_remain() -> None:
    """One setting removes every series of single metadata partitions, and the totals stay."""
    world = World(PLACES)
    async with world.engine() as engine, showing(engine, partition_metrics=False) as client:
        await until_open(engine, *range(PLACES))
        found = await client.metrics()
        assert not [name for name in found if "metadata_partition=" in name]
        assert found['rlmm_user_partitions{cluster="c0"}'] == 0
