"""Segments expired in other places: a bucket, by Spark, through a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.segment import SegmentState
from spark_tiering.execution.opening import engine_over
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.expire.options import ExpireOptions
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.opening import open_store
from tests.support.cli.tier_command import Command
from tests.support.server.memory_service import ServedMetadata
from tests.support.spark.sessions import TIMEOUT_S
from tests.support.stores.s3_servers import ACCESS, SECRET, seaweedfs_server
from tests.support.stores.stores_under_test import known_as, server_bucket
from tests.support.tier.job_folders import ORDERS, TierPlace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CF = SegmentState.COPY_SEGMENT_FINISHED
LIMIT = ExpireOptions(retention_bytes=14_842)
"""Of two segments of each partition the first goes."""


def test_f118_bucket_when_segments_are_expired_then_their_objects_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired segments' objects are gone from a real store, one of which was gone before."""
    known_as(ACCESS, SECRET, tmp_path, monkeypatch)
    with seaweedfs_server(tmp_path) as server:
        bucket = server_bucket(server)
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
def test_spark_when_it_deletes_then_the_same_goes_as_here(
    tmp_path: Path, spark_session: SparkSession
) -> None:
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
        refused = Command(place)("expire", *flags)
        assert refused.exit_code == 2
        assert "whether live brokers expire these topics is not known" in refused.stderr
        done = Command(place)("expire", *flags, "--offline", "--apply")
        assert done.exit_code == 0, done.output
        assert [one.start_offset for one in place.check()] == [120, 120]
        assert {one.state for one in place.segments()} == {CF}
