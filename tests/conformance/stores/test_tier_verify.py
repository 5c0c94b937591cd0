"""Whole tiers looked at in every kind of store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_tiering.layout.object_names import ObjectKind
from tests.support.stores.encrypted_segments import IDS, KeyFiles
from tests.support.stores.stores_under_test import Place, settings_of
from tests.support.tier.job_folders import PLAIN, ZSTD, TierPlace
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.executor.tasks import CopyOptions


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
