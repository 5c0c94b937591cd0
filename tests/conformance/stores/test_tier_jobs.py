"""Whole copy jobs, and tiers looked at, over every kind of store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import StoreNotPermitted, TopicBusy
from spark_tiering.copy_job.report import CopyFate
from spark_tiering.layout.object_names import ObjectKind
from tests.support.server.memory_service import ServedMetadata
from tests.support.stores.encrypted_segments import IDS, KeyFiles
from tests.support.stores.s3_servers import READER, SECRET
from tests.support.stores.stores_under_test import Bucket, Place, known_as, settings_of
from tests.support.tier.job_folders import ORDERS, PLAIN, ZSTD, TierPlace, WatchedUnits, states
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions, CopyTask


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
def test_f102_f107_f121_jobs_over_a_store_when_one_stopped_in_the_middle_then_all_is_copied_once(
    place: Place, prefix: str, tmp_path: Path, options: CopyOptions
) -> None:
    """After a stopped job the next copies the rest, equal to the source, and a third nothing."""
    job = TierPlace(tmp_path, settings_of(place), prefix=prefix, options=options)
    first = job.run(engine=WatchedUnits(lost=[120]))
    assert first.count(CopyFate.FINISHED) == 2
    assert states(job.check()) == ["CF", "CS"] * 2
    assert job.run().is_fine
    job.check_clean()
    assert not job.run().receipts
    job.check_clean()


def test_two_jobs_when_one_works_other_waits(place: Place, prefix: str, tmp_path: Path) -> None:
    """A second job sees the first one's claims in the store and is kept out."""
    met: list[str] = []

    def start_another(task: CopyTask) -> None:
        if not met:
            with pytest.raises(TopicBusy) as raised:
                job.run()
            met.append(str(raised.value))

    with ServedMetadata() as served:
        job = TierPlace(
            tmp_path, settings_of(place), served.access, prefix=prefix, partitions=(ORDERS,)
        )
        assert job.run(engine=WatchedUnits(before=start_another)).is_fine
        assert "orders" in met[0]
        job.check_clean()


def test_job_that_may_only_read_when_run_then_publishes_nothing(
    seaweedfs_bucket: Bucket, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without write rights fails at its first object, before its first event."""
    job = TierPlace(tmp_path, seaweedfs_bucket.settings, prefix=prefix)
    known_as(READER, SECRET, tmp_path, monkeypatch)
    with pytest.raises(StoreNotPermitted, match="PutObject"):
        job.run()
    assert not job.segments()


@pytest.mark.parametrize("options", [PLAIN, ZSTD], ids=["plain", "zstd"])
def test_f121_tier_when_looked_at_in_a_store_then_what_is_wrong_is_told_and_nothing_else(
    place: Place, prefix: str, tmp_path: Path, options: CopyOptions
) -> None:
    """Verify finds nothing in a whole tier, then one missing, cut, changed and encrypted object."""
    tier = TierPlace(tmp_path, settings_of(place), prefix=prefix, options=options)
    assert tier.run().is_fine
    assert verify(tier).is_fine
    assert verify(tier, DEEP).is_fine
    stored(tier, 0).put(ObjectKind.INDEXES, None)
    two = stored(tier, 1)
    two.put(ObjectKind.LOG, two.get(ObjectKind.LOG)[:-9])
    three = stored(tier, 2)
    three.flip(ObjectKind.LOG, 300)
    stored(tier, 3).seal(IDS[0])
    found = [code for code, _, _ in told(verify(tier))]
    # A sum is compared where the store tells it.
    assert found[:2] == ["TIER-OBJECT-MISSING", "TIER-OBJECT-LENGTH"]
    keys = replace(DEEP, key_ring=KeyFiles(tmp_path / "keys").settings)
    deep = verify(tier, keys)
    assert len(deep.lost) == 2
    assert deep.work.opened == 1
    assert {code for code, _, _ in told(deep)} <= {
        "TIER-OBJECT-MISSING",
        "TIER-OBJECT-LENGTH",
        "TIER-OBJECT-DAMAGED",
        "TIER-BATCH-DAMAGED",
    }
