"""Metadata rebuilt from a real bucket, and from a folder whose manifests are read on Spark."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from spark_tiering.execution.opening import engine_over
from spark_tiering.layout.metadata_recovery import CustomFields
from spark_tiering.maintenance.rebuild import bucket_reader as bucket_reading
from spark_tiering.maintenance.rebuild.apply import apply
from spark_tiering.maintenance.rebuild.decision import RebuildFate
from spark_tiering.maintenance.rebuild.rebuild import RebuildOptions, rebuild
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.opening import open_store
from tests.support.builders import tp
from tests.support.spark.sessions import TIMEOUT_S
from tests.support.stores.s3_servers import ACCESS, SECRET, seaweedfs_server
from tests.support.stores.segment_objects import put_set, whole_segment
from tests.support.stores.stores_under_test import known_as, server_bucket
from tests.support.tier.job_folders import TierPlace
from tests.support.tier.metadata_answers import answers_in

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_f121_bucket_when_its_metadata_is_lost_then_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebuild of a real store answers for whole segments as before, and names the rest."""
    known_as(ACCESS, SECRET, tmp_path, monkeypatch)
    with seaweedfs_server(tmp_path) as server:
        bucket = server_bucket(server)
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
            assert rebuild(tier, None, options).counts == {
                RebuildFate.EQUAL: 3,
                RebuildFate.BROKEN: 1,
            }
        assert ACCESS not in file.read_text()


@pytest.mark.timeout(TIMEOUT_S)
def test_spark_when_it_reads_the_manifests_then_the_file_is_the_same(
    tmp_path: Path, spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark reads the manifests and gives the same file as one process."""
    monkeypatch.setattr(bucket_reading, "SETS_MAX", 2)
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
