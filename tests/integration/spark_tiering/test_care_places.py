"""A tier for maintenance jobs, and the jobs in a real bucket, on Spark, through a service."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import ConfigError
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import SegmentState
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.execution.opening import engine_over
from spark_tiering.layout.metadata_recovery import CustomFields
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditVerdict, SetVerdict
from spark_tiering.maintenance.expire.decision import ExpireOptions
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.rebuild import bucket_reader
from spark_tiering.maintenance.rebuild.apply import apply
from spark_tiering.maintenance.rebuild.decision import RebuildFate
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.opening import open_store
from tests.support.builders import finished, segment_id, started, tp
from tests.support.cli.tier_command import Command, forget_environment
from tests.support.engines import World
from tests.support.server.memory_service import ServedMetadata
from tests.support.spark.sessions import TIMEOUT_S
from tests.support.stores.inventories import BUCKET, Row, csv_bytes, write_inventory
from tests.support.stores.s3_servers import ACCESS, SECRET, seaweedfs_server
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.stores.stores_under_test import known_as, server_bucket
from tests.support.tier.audited_tiers import codes, verdicts
from tests.support.tier.job_folders import ORDERS, TierPlace
from tests.support.tier.lost_tiers import answers_in
from tests.support.tier.metadata_accesses import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.stores.stores_under_test import Bucket

FIRST, SECOND = tp("orders", 0), tp("logs", 1)


def finish(request: CareRequest) -> tuple[list[str], list[str]]:
    with open_tier(request) as tier:
        before = [str(one.partition) for one in tier.moment().partitions()]
        writer = tier.writer()
        for partition in (FIRST, SECOND):
            copy = segment_id("a", partition)
            writer.publish(started(copy, 0, 99, {0: 0}), 20)
            writer.publish(finished(copy), 20)
        moment = tier.moment()
        after = [
            f"{segment.id.partition.topic} {segment.start_offset} {segment.state.name}"
            for one in moment.partitions()
            for segment in moment.segments(one.partition)
        ]
        assert list(moment.segments(tp("nobody", 0))) == []
        if after:
            assert moment.state(FIRST).segment_for(FIRST, 0, 50) is not None
    return before, after


def test_tier_when_its_log_is_embedded_then_each_moment_is_of_now(tmp_path: Path) -> None:
    """An embedded log begins empty, and the next image has each published event."""
    before, after = finish(CareRequest(embedded=tmp_path / "archive"))
    assert before == []
    assert after == ["logs 0 COPY_SEGMENT_FINISHED", "orders 0 COPY_SEGMENT_FINISHED"]


async def test_tier_when_a_service_holds_it_then_the_same_is_seen() -> None:
    """A service shows the same tier by its frame protocol, without unwanted topics."""
    async with serving(World(3), assignment=Assignment.everything()) as settings:
        source = SourceSettings(sidecar=settings.address)
        request = CareRequest(source, topics=SegmentSelection(without_topics=("logs",)), wait_s=20)
        before, after = await asyncio.to_thread(finish, request)
    assert before == []
    assert after == ["orders 0 COPY_SEGMENT_FINISHED"]


def test_tier_when_its_log_is_a_copy_then_it_is_read_and_never_written(tmp_path: Path) -> None:
    """A tier in copied folders answers reads and refuses events."""
    finish(CareRequest(embedded=tmp_path / "archive"))
    copied = SourceSettings(log_dirs=(tmp_path / "archive/log",))
    with open_tier(CareRequest(copied)) as tier:
        assert len(tier.moment().partitions()) == 2
        assert tier.log.identity().cluster_id
        assert tier.cluster is None
        with pytest.raises(ConfigError, match="only looked at"):
            tier.writer()
        with pytest.raises(ConfigError, match="no store"):
            tier.store  # noqa: B018 - asking for it opens it


def test_request_when_two_sources_are_named_then_is_refused(tmp_path: Path) -> None:
    """An embedded log beside a service is refused, and beside a cluster allowed."""
    with pytest.raises(ConfigError, match="one of the two"):
        CareRequest(SourceSettings(sidecar="host:1"), tmp_path)
    beside = CareRequest(SourceSettings(bootstrap_servers="host:1"), tmp_path)
    assert beside.embedded == tmp_path
    nowhere = CareRequest()
    with pytest.raises(ConfigError, match="no metadata"):
        nowhere.require_source  # noqa: B018 - asking for it is the point


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    known_as(ACCESS, SECRET, tmp_path, monkeypatch)
    with seaweedfs_server(tmp_path) as server:
        yield server_bucket(server)


def later() -> int:
    return SYSTEM_CLOCK.now_ms() + 2 * DAY_MS


def test_f121_bucket_audited_by_listing_and_by_inventory(tmp_path: Path, bucket: Bucket) -> None:
    """Audits by listing and by inventory report the same objects."""
    place = TierPlace(tmp_path, bucket.settings, prefix="tier/")
    assert place.run().is_fine
    lost = next(key for key in place.objects() if key.endswith(".indexes"))
    bucket.leave_open("tier/orders/half.log")
    rows = [Row(key, size, bucket=bucket.settings.bucket)
            for key, size in place.objects().items() if key != lost]  # fmt: skip
    now_ms = int(time.time() * 1_000) + DAY_MS
    folder = write_inventory(
        tmp_path / "list", [csv_bytes(rows)], created_ms=now_ms,
        sourceBucket=bucket.settings.bucket,
    )  # fmt: skip
    request = CareRequest(embedded=place.archive, store=bucket.settings, prefix="tier/")
    with open_store(bucket.settings) as store:
        store.delete(lost)
        store.put("tier/photo.jpg", BytesContent(b"x"))
        for name in ("manifest.json", "manifest.checksum", "data/part-0.csv.gz"):
            content = BytesContent((folder / name).read_bytes())
            key = name if name.startswith("manifest") else f"lists/{BUCKET}/all/{name}"
            store.put(f"lists/x/{key}" if key == name else key, content)
    where = f"s3://{bucket.settings.bucket}/lists/x/manifest.json"
    with open_tier(request, now_ms=later) as tier:
        with Audit(tier, AuditOptions()) as audit:
            listed = audit.run()
        with Audit(tier, AuditOptions(inventory=where)) as audit:
            by_inventory = audit.run()
    assert listed.overall is by_inventory.overall is AuditVerdict.CORRUPT
    found = {"TIER-OBJECT-MISSING": 1, "TIER-UPLOAD-OPEN": 1}
    assert codes(by_inventory) == found
    assert codes(listed) == {**found, "TIER-UNKNOWN-KEY": 1}
    assert verdicts(listed) == {SetVerdict.REFERENCED: 4, SetVerdict.UNKNOWN_KEY: 1}
    assert by_inventory.amount(SetVerdict.REFERENCED) == listed.amount(SetVerdict.REFERENCED)


@pytest.mark.timeout(TIMEOUT_S)
def test_spark_when_it_audits_then_agrees(tmp_path: Path, spark_session: SparkSession) -> None:
    """Spark audits folders and shards by tasks with the same result as one process."""
    place = TierPlace(tmp_path)
    assert place.run().is_fine
    next((tmp_path / "store").rglob("*.log")).unlink()
    request = CareRequest(embedded=place.archive, store=place.store_settings)
    reports = []
    for engine in (None, engine_over(spark_session)):
        with (
            open_tier(request, now_ms=later, engine=engine) as tier,
            Audit(tier, AuditOptions(unit_objects=4)) as audit,
        ):
            document = audit.run().document()
            reports.append({**document, "beganMs": 0, "endedMs": 0, "seenMs": 0})
    assert reports[0] == reports[1]
    assert reports[0]["verdict"] == "Corrupt"


def test_audit_asks_a_service_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit asks a running service for log and state anew each time."""
    forget_environment(monkeypatch, tmp_path)
    with ServedMetadata() as served:
        place = TierPlace(tmp_path, metadata=served.access, partitions=(ORDERS,))
        assert place.run().is_fine
        result = Command(place)(
            "audit", "--sidecar", served.address, *Command(place).store, "--no-spark",
            "--output", "json",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert document["verdict"] == "Clean"
        assert document["objects"] == 6
        assert any("no cluster was asked" in note for note in document["notes"])


CF = SegmentState.COPY_SEGMENT_FINISHED
LIMIT = ExpireOptions(retention_bytes=14_842)
"""Of two segments of each partition the first goes."""


def test_f118_bucket_when_expired_then_objects_are_gone(tmp_path: Path, bucket: Bucket) -> None:
    """Expired segments' objects are gone from a real store, one of which was gone before."""
    place = TierPlace(tmp_path, bucket.settings, prefix="tier/", partitions=(ORDERS,))
    assert place.run().is_fine
    first, second = place.segments()
    request = CareRequest(embedded=place.archive, store=bucket.settings, prefix="tier/")
    with open_store(bucket.settings) as store:
        store.delete(next(key for key in place.objects() if f"{first.id.uuid}.log" in key))
        with open_tier(request) as tier:
            report = expire(tier, LIMIT, is_applied=True)
        assert report.is_fine, list(report.lines())
        assert [one.segment.id for one in report.receipts] == [first.id]
        assert len(place.objects()) == 3
        assert [one.id for one in place.check()] == [second.id]
        assert not list(store.open_uploads("tier/"))


@pytest.mark.timeout(TIMEOUT_S)
def test_spark_when_it_deletes_then_agrees(tmp_path: Path, spark_session: SparkSession) -> None:
    """Spark deletes the same segments as one process, in units of several."""
    place = TierPlace(tmp_path)
    assert place.run().is_fine
    request = CareRequest(embedded=place.archive, store=place.store_settings)
    with open_tier(request, engine=engine_over(spark_session)) as tier:
        report = expire(tier, LIMIT, is_applied=True)
    assert report.is_fine, list(report.lines())
    assert [one.start_offset for one in place.check()] == [120, 120]
    assert len(place.objects()) == 6


def test_service_when_it_holds_the_metadata_then_is_told_of_each_step(tmp_path: Path) -> None:
    """A run over a service needs a cluster or --offline, and sends it each step."""
    with ServedMetadata() as served:
        place = TierPlace(tmp_path, metadata=served.access)
        assert place.run().is_fine
        flags = [
            "--sidecar", served.address, *Command(place).store, "--no-spark",
            "--retention-bytes", "14842",
        ]  # fmt: skip
        assert Command(place)("expire", *flags).exit_code == 2
        done = Command(place)("expire", *flags, "--offline", "--apply")
        assert done.exit_code == 0, done.output
        assert [one.start_offset for one in place.check()] == [120, 120]
        assert {one.state for one in place.segments()} == {CF}


def test_f121_bucket_when_metadata_is_lost_then_is_rebuilt(tmp_path: Path, bucket: Bucket) -> None:
    """A rebuild of a real store answers for whole segments as before, and names the rest."""
    place = TierPlace(tmp_path, bucket.settings, prefix="tier/")
    assert place.run().is_fine
    before = answers_in(place.archive)
    shutil.rmtree(place.archive)
    request = CareRequest(embedded=place.archive, store=bucket.settings, prefix="tier/")
    options = RebuildOptions(CustomFields.REMOTE_SIZE)
    file = tmp_path / "events.jsonl"
    with open_tier(request) as tier:
        report = rebuild(tier, file, options)
        assert report.counts == {RebuildFate.MISSING: 4}
        assert apply(tier, file).is_fine
    assert answers_in(place.archive) == before
    with open_store(bucket.settings) as store:
        store.delete(next(key for key in place.objects() if key.endswith(".indexes")))
    with open_tier(request) as tier:
        assert rebuild(tier, None, options).counts == {RebuildFate.EQUAL: 3, RebuildFate.BROKEN: 1}
    assert ACCESS not in file.read_text()


@pytest.mark.timeout(TIMEOUT_S)
def test_spark_when_it_reads_the_manifests_then_the_file_is_the_same(
    tmp_path: Path, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads the manifests and gives the same file as one process."""
    monkeypatch.setattr(bucket_reader, "SETS_MAX", 2)
    place = TierPlace(tmp_path)
    for number in range(5):
        put_set(tmp_path / "store", whole_segment(number, partition=tp("orders", number)))
    made = []
    for name, engine in (("here", None), ("spark", engine_over(spark_session))):
        request = CareRequest(embedded=place.archive, store=place.store_settings)
        with open_tier(request, now_ms=lambda: 5, engine=engine) as tier:
            rebuild(tier, tmp_path / f"{name}.jsonl", RebuildOptions())
        made.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert made[0] == made[1]
    assert made[0].count(b"\n") == 12
