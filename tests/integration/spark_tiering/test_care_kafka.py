"""Rebuilt events, backups and exported plans beside a real broker."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from click.testing import CliRunner
from msgspec.structs import replace

from rlmm.base.loop_thread import LoopThread
from rlmm.cli.main import cli
from rlmm.errors import ConfigError
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.metadata.encoding import encode
from rlmm_demo.world.service import DemoService
from spark_tiering.maintenance.backup import import_
from spark_tiering.maintenance.backup.export import export_backup
from spark_tiering.maintenance.backup.files import open_backup, writing
from spark_tiering.maintenance.backup.import_ import import_backup
from spark_tiering.maintenance.backup.rows import BackupExtent, BackupHeader, BackupRow
from spark_tiering.maintenance.rebuild.apply import apply
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.tier import CareRequest, TierLog
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.read_plan.plan_files import require_plan
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.embedded import kafka_settings
from spark_tiering.tier_metadata.settings import EmbeddedAccess
from tests.kafka.clients import consumer, create_topic, produce
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC
from tests.support.builders import delete_finished, delete_started, started, tp
from tests.support.cli.tier_command import forget_environment
from tests.support.kafka.kafka_logs import delete_records, own_topic
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.tier.metadata_accesses import opened

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.maintenance.backup.report import BackupExportReport
    from spark_tiering.maintenance.tier import Tier
    from tests.kafka.tiered import TieredKafka

TOPIC = "frozen"
SEGMENTS = 4
RETENTION_MS = 3_600_000
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(28 * (SEGMENTS - 1) + 5)]


async def test_f78_export_when_a_real_broker_tiers_then_each_source_gives_the_same_plan(
    kafka_broker: TieredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every source exports the same plan of a real broker's tier, each offset once."""
    forget_environment(monkeypatch, tmp_path)
    await kafka_broker.create_topic(TOPIC, settings={"retention.ms": str(RETENTION_MS)})
    await produce(kafka_broker.login, TOPIC, RECORDS)
    await kafka_broker.wait_until_tiered(TOPIC, SEGMENTS)
    await kafka_broker.wait_until_trimmed(TOPIC)  # and no other segment is to come
    await asyncio.to_thread(_compare, kafka_broker, tmp_path)


def _compare(kafka: TieredKafka, folder: Path) -> None:
    cluster = ["--bootstrap-server", kafka.bootstrap]
    whole = folder / "topic.json"
    _call(*cluster, "--topic", TOPIC, "--wait", "20s", "--save", str(whole))
    plan = require_plan(whole)
    copied = folder / "copied"
    copied.mkdir()
    data = kafka.node.data
    shutil.copy(data / "meta.properties", copied)
    for one in data.glob(f"{METADATA_TOPIC}-*"):
        shutil.copytree(one, copied / one.name)
    of_copies = ["--log-dirs", str(copied), "--partition-count", str(METADATA_PARTITIONS)]
    _compare_with(folder / "folders", [*of_copies, *cluster], whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RLMM_LOG_KIND", "kafka")
        patch.setenv("RLMM_KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap)
        with DemoService(folder / "data", folder / "s") as service:
            patch.undo()
            service.wait_ready()
            source = ["--sidecar", str(folder / "s"), *cluster]
            _compare_with(folder / "service", source, whole)
            service.stop()
    offsets = [one for row in plan.segments for one in range(row.read_first, row.read_last + 1)]
    assert offsets == list(range(len(RECORDS)))
    assert not list(plan.gaps)
    assert {one.expires_at_ms for one in plan.segments} == {
        one.max_timestamp_ms + RETENTION_MS + 1 for one in plan.segments
    }


def _compare_with(folder: Path, source: list[str], whole: Path) -> None:
    folder.mkdir()
    plan, now, then = require_plan(whole), folder / "now.json", folder / "then.json"
    _call(*source, "--topic", TOPIC, "--wait", "20s", "--save", str(now))
    assert require_plan(now).partitions == plan.partitions
    assert require_plan(now).facts == plan.facts
    _call(*source, "--token", plan.token, "--save", str(then))
    assert then.read_bytes() == whole.read_bytes()


def _call(*arguments: str) -> None:
    result = CliRunner().invoke(cli, ["tier", "export", *arguments])
    assert result.exit_code == 0, result.output


COUNT = 3
ORDERS = tp("orders", 0)


async def own_access(kafka: TieredKafka, **settings: str) -> EmbeddedAccess:
    topic = own_topic("care")
    settings = {"retention.ms": "-1"} | settings
    await create_topic(kafka.login, topic, partitions=COUNT, settings=settings)
    return EmbeddedAccess(bootstrap_servers=kafka.bootstrap, topic=topic)


class OfTopic:
    def __init__(self, access: EmbeddedAccess) -> None:
        self._thread = LoopThread("care-kafka")
        self._kafka = self._thread.wait(KafkaLog.open(kafka_settings(access)))
        self.log = TierLog(self._kafka, self._thread, 30)

    def close(self) -> None:
        self._thread.wait(self._kafka.close())
        self._thread.close()


def exported(access: EmbeddedAccess, file: Path) -> BackupExportReport:
    tier = OfTopic(access)
    try:
        return export_backup(cast("Tier", tier), file)
    finally:
        tier.close()


async def test_apply_to_a_real_topic_is_complete(kafka_broker: TieredKafka, tmp_path: Path) -> None:
    """A rebuild on a real topic restores segments once; those deleted meanwhile stay deleted."""
    access = await own_access(kafka_broker)
    older = whole_segment("older", partition=ORDERS, broker_id=1, event_timestamp_ms=1)
    newer = whole_segment("newer", partition=ORDERS, broker_id=2, event_timestamp_ms=2)
    beside = whole_segment("beside", partition=tp("logs", 1))
    for one in (older, newer, beside):
        put_set(tmp_path / "store", one)
    file = tmp_path / "events.jsonl"
    request = CareRequest(
        embedded=tmp_path / "nothing", store=LocalSettings(tmp_path / "store", is_made=False)
    )

    def run() -> list[tuple[int, int, int]]:
        found = []
        with open_tier(request) as tier:
            rebuild(tier, file, RebuildOptions())
            for _ in range(2):
                told = apply(tier, file, access=access)
                found.append((told.published, told.equal, told.refused))
        return found

    assert await asyncio.to_thread(run) == [(3, 0, 0), (0, 3, 0)]
    async with opened(access) as metadata:
        image = await metadata.image([ORDERS], {}, 30)
        assert {one.id for one in image.partitions[0].segments} == {older.id, newer.id}
        for event in (delete_started(older.id), delete_finished(older.id)):
            await metadata.publish(event, 30)
    assert await asyncio.to_thread(run_again, request, file, access) == (0, 2, 1)


def run_again(request: CareRequest, file: Path, access: EmbeddedAccess) -> tuple[int, int, int]:
    with open_tier(request) as tier:
        told = apply(tier, file, access=access)
    return told.published, told.equal, told.refused


ROWS = [
    BackupRow(0, 10, 1_700_000_000_000, None, encode(started("a"))),
    BackupRow(0, 11, 1_700_000_000_001, b"key", b"junk", (("h", b"\0"), ("n", None))),
    BackupRow(0, 15, 1_700_000_000_000, b"key", None),
    BackupRow(2, 0, 1_600_000_000_000, b"", encode(started("b"))),
]


def made_backup(file: Path, header: BackupHeader) -> Path:
    with writing(file, header) as into:
        for row in ROWS:
            into.add(row)
    return file


async def test_import_when_the_target_is_a_real_topic_then_it_has_the_records(
    kafka_broker: TieredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import into a real topic keeps records in order, also after an interruption."""
    access = await own_access(kafka_broker)
    there = await asyncio.to_thread(exported, access, tmp_path / "empty.jsonl")
    extents = {0: BackupExtent(10, 16), 1: BackupExtent(0, 0), 2: BackupExtent(0, 1)}
    file = made_backup(tmp_path / "a.jsonl", BackupHeader(there.header.identity, extents))
    monkeypatch.setattr(import_, "GROUP_ROWS", 2)
    asked = iter(["", "SIGINT"])
    broken_off = await asyncio.to_thread(
        import_backup, access, file, is_applied=True, why_stop=lambda: next(asked)
    )
    assert (broken_off.appended, broken_off.stopped_by) == (2, "SIGINT")
    report = await asyncio.to_thread(import_backup, access, file, is_applied=True)
    assert (report.present, report.appended, report.moved, report.restamped) == (2, 2, 3, 0)
    assert [str(run) for run in report.runs] == [
        "metadata partition 0: 10 to 11 became 0 to 1",
        "metadata partition 0: 15 to 15 became 2 to 2",
    ]
    records: list[Any] = []
    async with consumer(kafka_broker.login, access.topic, 0) as client:
        async with asyncio.timeout(30):
            while len(records) < 3:
                for found in (await client.getmany(timeout_ms=500)).values():
                    records += found
    assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in records] == [
        (row.timestamp_ms, row.key, row.value, row.headers) for row in ROWS[:3]
    ]
    await asyncio.to_thread(exported, access, tmp_path / "b.parquet")
    again = [
        row for row in open_backup(tmp_path / "b.parquet").rows() if isinstance(row, BackupRow)
    ]
    assert [replace(row, offset=0) for row in again] == [replace(row, offset=0) for row in ROWS]


async def test_backup_of_a_real_topic_with_holes(kafka_broker: TieredKafka, tmp_path: Path) -> None:
    """The backup of a real topic reports its holes, and the import closes them."""
    access = await own_access(kafka_broker)
    await committed(kafka_broker, access.topic, [b"%d" % number for number in range(5)])
    await committed(kafka_broker, access.topic, [b"last"])
    await delete_records(kafka_broker.login, access.topic, 0, 2)
    report = await asyncio.to_thread(exported, access, tmp_path / "a.jsonl")
    told = report.places[0]
    assert (told.extent, told.records, told.control, told.lost) == (BackupExtent(2, 8), 4, 2, 0)
    assert "begins at offset 2" in "\n".join(report.lines())
    target = await own_access(kafka_broker)
    imported = await asyncio.to_thread(import_backup, target, tmp_path / "a.jsonl", is_applied=True)
    assert (imported.appended, imported.moved) == (4, 4)


async def committed(kafka: TieredKafka, topic: str, values: list[bytes]) -> None:
    producer: Any = AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap, transactional_id=f"{topic}-writer"
    )
    await producer.start()
    try:
        async with producer.transaction():
            for value in values:
                await producer.send_and_wait(topic, value, partition=0)
    finally:
        await producer.stop()


async def test_import_into_a_topic_that_stamps(kafka_broker: TieredKafka, tmp_path: Path) -> None:
    """An import reports a topic's own times; foreign records or short retention are refused."""
    access = await own_access(kafka_broker, **{"message.timestamp.type": "LogAppendTime"})
    there = await asyncio.to_thread(exported, access, tmp_path / "empty.jsonl")
    extents = {0: BackupExtent(10, 16), 2: BackupExtent(0, 1)}
    file = made_backup(tmp_path / "a.jsonl", BackupHeader(there.header.identity, extents))
    report = await asyncio.to_thread(import_backup, access, file, is_applied=True)
    assert (report.appended, report.restamped) == (4, 4)
    other = await own_access(kafka_broker)
    await committed(kafka_broker, other.topic, [b"somebody else's"])
    with pytest.raises(ConfigError, match="holds another record"):
        await asyncio.to_thread(import_backup, other, file, is_applied=True)
    short = await own_access(kafka_broker, **{"retention.ms": "1000"})
    with pytest.raises(ConfigError, match="would delete what is imported"):
        await asyncio.to_thread(import_backup, short, file, is_applied=False)
