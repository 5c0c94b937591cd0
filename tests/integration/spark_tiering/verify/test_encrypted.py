"""Encrypted segments looked at, with their keys and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_tiering.layout.object_names import ObjectKind
from tests.support.stores.encrypted_segments import IDS, KeyFiles
from tests.support.tier.job_folders import PLAIN, ZSTD, TierPlace
from tests.support.tier.verified_tiers import DEEP, stored, told, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_tiering.maintenance.verify.values import VerifyOptions
    from tests.support.tier.verified_tiers import Stored


LOG, INDEXES = ObjectKind.LOG, ObjectKind.INDEXES
FIRST = [0, 119]


@pytest.fixture
def keys(tmp_path: Path) -> KeyFiles:
    return KeyFiles(tmp_path / "keys")


@pytest.fixture(params=[PLAIN, ZSTD], ids=["plain", "zstd"])
def sealed(tiered: Callable[..., TierPlace], request: pytest.FixtureRequest) -> TierPlace:
    place = tiered(request.param)
    for at in range(4):
        stored(place, at).seal(IDS[at % 2])
    return place


def with_keys(keys: KeyFiles) -> VerifyOptions:
    return replace(DEEP, key_ring=keys.settings)


def test_encrypted_tier_when_looked_at_then_its_objects_are_judged_without_a_key(
    sealed: TierPlace, keys: KeyFiles
) -> None:
    """Verify judges lengths of encrypted objects without a key, and needs it only to read them."""
    assert verify(sealed).is_fine
    report = verify(sealed, with_keys(keys))
    assert report.is_fine, told(report)
    assert report.work.opened == 4


def test_encrypted_tier_when_read_without_its_keys_then_that_is_told(
    sealed: TierPlace, keys: KeyFiles
) -> None:
    """Verify reports encrypted objects without a key, and counts no record as lost."""
    report = verify(sealed, DEEP)
    assert {code for code, _, _ in told(report)} == {"TIER-OBJECT-ENCRYPTED"}
    assert report.counts == {"TIER-OBJECT-ENCRYPTED": 4}
    assert (report.work.read_bytes, report.work.opened) == (0, 0)
    assert not report.lost
    assert not report.is_fine
    keys.write({IDS[0]: ""})
    assert verify(sealed, with_keys(keys)).counts == {"TIER-OBJECT-ENCRYPTED": 2}
    keys.write({IDS[0]: IDS[1], IDS[1]: ""})
    assert verify(sealed, with_keys(keys)).counts == {"TIER-KEY-WRONG": 2}


def cut_log(one: Stored) -> None:
    one.put(LOG, one.get(LOG)[: one.manifest.chunks.chunk(2).stored_start + 50])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        pytest.param(
            lambda one: one.flip(LOG, one.manifest.chunks.chunk(1).stored_start + 40),
            ("TIER-OBJECT-DAMAGED", "log", [[30, 79]]), id="chunk",
        ),
        pytest.param(cut_log, ("TIER-OBJECT-LENGTH", "log", [[60, 119]]), id="whole chunks"),
        pytest.param(
            lambda one: one.say(encryption__aad="AAAA"),
            ("TIER-MANIFEST-MISMATCH", "rsm-manifest", [FIRST]), id="one finding for the aad",
        ),
        pytest.param(
            lambda one: one.flip(INDEXES, 20), ("TIER-OBJECT-DAMAGED", "offset", [FIRST]),
            id="index",
        ),
    ],
)  # fmt: skip
def test_encrypted_object_when_it_is_changed_then_its_offsets_are_told(
    sealed: TierPlace,
    keys: KeyFiles,
    damage: Callable[[Stored], None],
    expected: tuple[str, str, list[list[int]]],
) -> None:
    """Verify names the part of a changed object by its tag, and reads the chunks around it."""
    damage(stored(sealed))
    assert told(verify(sealed, with_keys(keys))) == [expected]
