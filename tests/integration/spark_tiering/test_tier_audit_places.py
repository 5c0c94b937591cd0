"""Audits in other places: a real bucket with its inventory, by Spark, through a service."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from spark_tiering.execution.opening import engine_over
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.audit.verdicts import DAY_MS, AuditVerdict, SetVerdict
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.opening import open_store
from tests.support.cli.tier_command import Command, forget_environment
from tests.support.server.memory_service import ServedMetadata
from tests.support.spark.sessions import TIMEOUT_S
from tests.support.stores.inventories import BUCKET, Row, csv_bytes, write_inventory
from tests.support.stores.s3_servers import ACCESS, SECRET, seaweedfs_server
from tests.support.stores.stores_under_test import known_as, server_bucket
from tests.support.tier.audited_tiers import codes, verdicts
from tests.support.tier.job_folders import ORDERS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def later() -> int:
    return SYSTEM_CLOCK.now_ms() + 2 * DAY_MS


def test_f121_bucket_when_audited_by_listing_and_by_inventory_then_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Audits by listing and by inventory report the same objects."""
    known_as(ACCESS, SECRET, tmp_path, monkeypatch)
    with seaweedfs_server(tmp_path) as server:
        bucket = server_bucket(server)
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
def test_spark_when_it_audits_then_says_the_same_as_here(
    tmp_path: Path, spark_session: SparkSession
) -> None:
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


def test_service_when_it_holds_the_metadata_then_is_asked_anew_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
