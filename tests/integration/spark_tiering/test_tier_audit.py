"""`rlmm tier audit`: answers, exit codes, lists, deletions, and many objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.maintenance.audit.audit import Audit, AuditOptions
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.cli.tier_command import Command, said_on_stderr, trees
from tests.support.repository.tree import ROOT
from tests.support.stores.inventories import Row, csv_bytes, write_inventory
from tests.support.tier.job_folders import ORDERS, TierPlace
from tests.support.tier.large_tiers import NOW_MS, PLACES, PREFIX, LargeTier

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

MEMORY_BYTES_MAX = 100 * 2**20
"""Above a process that has read the metadata; of a million objects, or of ten."""
SIZES = [
    pytest.param(6_700, id="20,000 keys"),
    pytest.param(
        334_000, id="1,000,000 keys", marks=(pytest.mark.long, pytest.mark.timeout(1_800))
    ),
]


@pytest.mark.parametrize("segments", SIZES)
def test_audit_by_inventory_of_many_has_bounded_memory(tmp_path: Path, segments: int) -> None:
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
def test_audit_by_listing_of_many_finds_every_fault(tmp_path: Path, segments: int) -> None:
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


LONG_AGO_S = 1_600_000_000
CS, CF, DS, DF = SegmentState


pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def place(tmp_path: Path) -> TierPlace:
    place = TierPlace(tmp_path, partitions=(ORDERS,))
    assert place.run().is_fine
    return place


def audit(place: TierPlace, *more: str, code: int = 0) -> Result:
    flags = ["--embedded", str(place.archive), *Command(place).store, "--no-spark"]
    result = Command(place)("audit", *flags, *more)
    assert result.exit_code == code, result.output
    return result


def leave(place: TierPlace, number: int, *states: SegmentState) -> list[Path]:
    one = SegmentId(ORDERS, Uuid.of(5, number))
    segment = SegmentMetadata(one, 1_000 * number, 1_000 * number + 9, 1, 0, 0, ((0, 0),), 10)
    if states:
        assert place.metadata is not None
        with closing(open_metadata_access(place.metadata)) as metadata:
            metadata.publish(segment, 10.0)
            for state in states[1:]:
                metadata.publish(SegmentUpdate(one, 1, 0, None, state), 10.0)
    made = []
    for kind in ObjectKind:
        path = place.folder / "store" / object_key(one, segment.start_offset, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
        made.append(path)
    return made


def test_audit_when_all_is_well_then_is_clean_and_changes_nothing(place: TierPlace) -> None:
    """A clean audit prints its text and changes nothing."""
    before = trees(place)
    result = audit(place)
    assert result.stdout.startswith("Clean: 6 objects, ")
    assert "referenced: 6 objects" in result.stdout
    assert not said_on_stderr(result)
    assert trees(place) == before


def test_audit_when_asked_for_json_then_is_one_document(place: TierPlace, tmp_path: Path) -> None:
    """An audit for programs prints one document, also into a new file."""
    file = tmp_path / "audit.json"
    leave(place, 1)
    result = audit(
        place, "--output", "json", "--report", str(file), "--price-gib-month", "2", code=1
    )
    document = json.loads(result.stdout)
    assert json.loads(file.read_bytes()) == document
    assert (document["format"], document["verdict"]) == ("rlmm-tier-audit", "Dirty")
    assert document["verdicts"]["unproven"]["objects"] == 3
    assert document["findingCounts"]["TIER-UNREFERENCED"] == 1
    assert {one["code"] for one in document["findings"]} == set(document["findingCounts"])
    audit(place, "--report", str(file), code=2)  # it is there already


def test_f119_orphans_when_signed_off_alone_are_deleted(place: TierPlace, tmp_path: Path) -> None:
    """The audit's list deletes exactly its orphans, and the next audit is clean."""
    orphans = leave(place, 1, CS, DS, DF)
    unproven = leave(place, 2)
    file = tmp_path / "orphans.jsonl"
    saved = audit(place, "--save-orphans", str(file), code=1)
    assert "objects found" in saved.stderr
    assert "1 of 1 parts compared with the metadata" in saved.stderr
    assert str(file) in saved.stdout
    assert all(path.exists() for path in orphans)
    (orphan,) = map(json.loads, file.read_text().splitlines()[1:])
    assert (orphan["proof"], orphan["start"]) == ("segment-deleted", 1_000)
    looked = audit(place, "--orphans", str(file), code=1)
    assert "1 would-go" in looked.stdout
    assert all(path.exists() for path in orphans)
    deleted = audit(place, "--orphans", str(file), "--delete-orphans")
    assert "deleted: " in deleted.stdout
    assert "1 orphans handled, 0 s so far" in deleted.stderr
    assert not any(path.exists() for path in orphans)
    assert all(path.exists() for path in unproven)
    again = audit(place, "--orphans", str(file), "--delete-orphans", "--output", "json")
    assert json.loads(again.stdout)["fates"] == {"gone": 1}


def test_f119_orphans_when_deleted_at_once_leave_a_clean_tier(place: TierPlace) -> None:
    """The flag deletes the orphans at once, and the next audit is clean."""
    leave(place, 1, CS, DS, DF)
    result = audit(place, "--delete-orphans", "--max-delete", "5")
    assert "orphans: 1 deleted" in result.stdout
    audit(place)
    place.check_clean()


def test_audit_of_an_absent_store_is_refused(place: TierPlace) -> None:
    """An absent store is refused in one line."""
    flags = ["--embedded", str(place.archive), "--store", str(place.folder / "absent")]
    result = Command(place)("audit", *flags, "--no-spark")
    assert (result.exit_code, len(said_on_stderr(result))) == (3, 1)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--delete-orphans"], "--store"),
        ([], "name the store with --store, or an inventory"),
        (["--store", "x", "--orphans", "{file}", "--save-orphans", "y"], "--save-orphans"),
        (["--store", "x", "--orphans", "{file}"], "no list of orphans"),
        (["--store", "x", "--old-prefix", "a\tb"], "no key has the prefix"),
        (["--inventory", "{broken}"], "inventory file"),
    ],
)
def test_contradicting_flags(place: TierPlace, tmp_path: Path, flags: list[str], said: str) -> None:
    """Contradicting flags and a broken inventory are refused without any effect."""
    file = tmp_path / "list"
    file.write_text("{}\n")
    broken = write_inventory(tmp_path / "broken", [csv_bytes([Row("x")])])
    next((broken / "data").iterdir()).write_bytes(b"")
    said_flags = [flag.format(file=file, broken=broken) for flag in flags]
    result = Command(place)("audit", "--embedded", str(place.archive), "--no-spark", *said_flags)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_orphans_when_the_metadata_is_a_copy_are_not_deleted(place: TierPlace) -> None:
    """Orphans are listed but not deleted when the metadata is a copy, which may be out of date."""
    leave(place, 1, CS, DS, DF)
    flags = ["--log-dirs", str(place.archive / "log"), *Command(place).store, "--no-spark"]
    assert Command(place)("audit", *flags).stdout.startswith("Dirty")
    result = Command(place)("audit", *flags, "--delete-orphans")
    assert result.exit_code == 2
    assert "copied folders are not the metadata as it is now" in result.stderr


def test_audit_when_the_prefix_is_another_one_then_says_what_to_look_at(place: TierPlace) -> None:
    """All segments missing at once make the audit ask for the right prefix."""
    hint = "note: not one finished segment has an object under 'other/': look whether store and"
    result = audit(place, "--prefix", "other/", code=1)
    assert hint in result.stdout
    for path in list((place.folder / "store").rglob("*.rsm-manifest"))[:1]:
        path.unlink()
    result = audit(place, code=1)
    assert result.stdout.startswith("Corrupt")
    assert "not one finished segment" not in result.stdout
