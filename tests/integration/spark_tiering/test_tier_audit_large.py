"""Audits of many objects: from an inventory in bounded memory, and by listing a bucket."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rlmm.state_sources.settings import SourceSettings
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local_settings import LocalSettings
from tests.support.repository.tree import ROOT
from tests.support.tier.large_tiers import NOW_MS, PLACES, PREFIX, LargeTier

if TYPE_CHECKING:
    from pathlib import Path

MEMORY_BYTES_MAX = 100 * 2**20
"""Above a process that has read the metadata; of a million objects, or of ten."""
SIZES = [
    pytest.param(6_700, id="20,000 keys"),
    pytest.param(
        334_000, id="1,000,000 keys", marks=(pytest.mark.long, pytest.mark.timeout(1_800))
    ),
]


@pytest.mark.parametrize("segments", SIZES)
def test_audit_by_inventory_when_there_are_many_objects_then_memory_is_bounded(
    tmp_path: Path, segments: int
) -> None:
    """A large audit by inventory asks nothing of the store, in bounded memory."""
    large = LargeTier(segments)
    metadata = large.write_metadata(tmp_path / "metadata")
    inventory = large.write_inventory(tmp_path / "inventory")
    said = subprocess.run(
        [sys.executable, "-m", "tests.support.tier.audit_process", str(metadata), str(inventory)],
        cwd=ROOT, capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    expected = large.expected()
    assert told["objects"] == sum(1 for _ in large.rows())
    assert told["verdict"] == "Corrupt"
    assert told["orphans"] == expected["TIER-ORPHAN"]
    assert {code: told["findings"].get(code) for code in expected} == expected
    assert told["bytes"] < MEMORY_BYTES_MAX, told


LISTED = [
    pytest.param(667, id="2,000 keys"),
    pytest.param(16_667, id="50,000 keys", marks=(pytest.mark.long, pytest.mark.timeout(900))),
]


@pytest.mark.parametrize("segments", LISTED)
def test_audit_by_listing_when_there_are_many_objects_then_finds_every_fault(
    tmp_path: Path, segments: int
) -> None:
    """An audit of many objects by listing finds exactly the planted faults."""
    large = LargeTier(segments)
    metadata = large.write_metadata(tmp_path / "metadata")
    folder = tmp_path / "store"
    for row in large.rows():
        path = folder / row.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    request = CareRequest(
        source=SourceSettings(log_dirs=(metadata,), partition_count=PLACES),
        store=LocalSettings(folder, is_made=False),
        prefix=PREFIX,
    )
    later_ms = 4 * NOW_MS  # the files are of now: all of them are old
    with (
        open_tier(request, now_ms=lambda: later_ms) as tier,
        Audit(tier, AuditOptions(unit_objects=5_000)) as audit,
    ):
        report = audit.run()
        expected = large.expected()
        found = {kind.code: count for kind, count in report.findings.counts.items()}
        found.pop("TIER-EXTENT-GAP", None)  # where segments were deleted in between
        assert found == {code: count for code, count in expected.items() if count}
        assert sum(1 for _ in audit.orphans()) == expected["TIER-ORPHAN"]
        assert report.all.objects == sum(1 for _ in large.rows())
