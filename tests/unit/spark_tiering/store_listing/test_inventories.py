"""Inventories: their objects, and faults in one line."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, StoreUnavailable
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.layout.object_names import ObjectKind, object_key
from spark_tiering.store_listing.inventory import parse_inventory
from spark_tiering.store_listing.inventory_files import place_of, read_inventory
from spark_tiering.store_listing.key_names import OtherKey, Prefixes
from spark_tiering.store_listing.listing_tasks import (
    InventoryTask,
    ListingResult,
    SortRules,
    look_into,
)
from spark_tiering.store_listing.rows import RowBlob, ShardPlaces
from spark_tiering.stores.s3_settings import S3Settings
from tests.support.memory import memory_below
from tests.support.stores.inventories import (
    BUCKET,
    COLUMNS,
    Row,
    csv_bytes,
    file_bytes,
    write_inventory,
)
from tests.support.tier.audited_tiers import ORDERS, segment_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = ("CSV", "Parquet", "ORC")
PREFIX = "tier ü+/"
SORTING = SortRules(Prefixes(PREFIX), ShardPlaces(), SegmentSelection())
SEGMENT = segment_of(1, 5, 9)
KEYS = [object_key(SEGMENT.id, 5, kind, PREFIX) for kind in ObjectKind]


def looked(folder: Path) -> ListingResult:
    place = place_of(str(folder))
    inventory = read_inventory(place)
    total = ListingResult()
    for file in inventory.files:
        one = look_into(InventoryTask(place, inventory, file, SORTING))
        if one.fault is not None:
            return one
        total.objects += one.objects
        total.noncurrent.join(one.noncurrent)
        total.others |= one.others
        total.blobs |= {len(total.blobs): blob for blob in one.blobs.values()}
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_inventory_when_read_tells_every_object_and_its_facts(tmp_path: Path, kind: str) -> None:
    """An inventory gives every object's key, size, time and class, over several files."""
    rows = [Row(key, 10 + at, storage_class=f"C{at}") for at, key in enumerate(KEYS)]
    files = [file_bytes(kind, rows[:1]), file_bytes(kind, [*rows[1:], Row(f"{PREFIX}a b%c")])]
    found = looked(write_inventory(tmp_path / "list", files, kind))
    told = [row for blob in found.blobs.values() for row in RowBlob(blob).objects()]
    assert [row.kind for row in told] == [0, 1, 2]
    assert [row.size_bytes for row in told] == [10, 11, 12]
    assert [row.storage_class for row in told] == ["C0", "C1", "C2"]
    assert {row.modified_ms for row in told} == {1_700_000_000_000}
    assert {row.partition for row in told} == {ORDERS}
    assert found.others[OtherKey.UNKNOWN].examples == [f"{PREFIX}a b%c"]


@pytest.mark.parametrize("kind", KINDS)
def test_inventory_of_versions_when_read_has_what_is_the_latest(tmp_path: Path, kind: str) -> None:
    """An inventory of versions counts older versions apart, and a delete marker is no object."""
    rows = [
        Row(KEYS[0], is_latest=False, size=7),
        Row(KEYS[0], is_marker=True),
        Row(KEYS[1], is_latest=False, is_marker=True),
        Row(KEYS[1]),
        Row("elsewhere", is_latest=False),
    ]
    found = looked(write_inventory(tmp_path / "list", [file_bytes(kind, rows)], kind))
    assert found.objects == 1
    assert (found.noncurrent.count, found.noncurrent.size_bytes) == (1, 7)


@pytest.mark.parametrize("kind", KINDS)
def test_inventory_with_the_needed_columns_alone_is_read(tmp_path: Path, kind: str) -> None:
    """An inventory with only the needed columns, in any order, is read without versions."""
    columns = ("Size", "LastModifiedDate", "Key")
    content = file_bytes(kind, [Row(KEYS[0])], columns)
    schema: dict[str, Any] = {"fileSchema": ", ".join(columns)} if kind == "CSV" else {}
    assert looked(write_inventory(tmp_path / "list", [content], kind, **schema)).objects == 1


def test_inventory_when_its_address_is_a_folder_or_a_file_is_found(tmp_path: Path) -> None:
    """An inventory is found by the address of its folder, file or bucket."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([])])
    assert place_of(str(folder)) == place_of(str(folder / "manifest.json"))
    assert read_inventory(place_of(str(folder))).created_ms == 1_700_500_000_000
    place = place_of("s3://lists/x/manifest.json", S3Settings("tier", region="r"))
    assert (place.store, place.key) == (S3Settings("lists", region="r"), "x/manifest.json")
    assert place_of("s3://lists/x/").key == "x/manifest.json"
    assert str(place) == "s3://lists/x/manifest.json"


@pytest.mark.parametrize("layout", ["data", "beside", "whole key"])
def test_inventory_copied_with_files_elsewhere_is_read(tmp_path: Path, layout: str) -> None:
    """Files of a copied inventory are found by key, in `data`, or beside the manifest."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([Row(KEYS[0])])])
    part = folder / "data" / "part-0.csv.gz"
    if layout == "beside":
        part.rename(folder / part.name)
    elif layout == "whole key":
        target = folder / "lists" / BUCKET / "all" / "data" / part.name
        target.parent.mkdir(parents=True)
        part.rename(target)
    assert looked(folder).objects == 1


def fault_of(folder: Path) -> str:
    try:
        found = looked(folder)
        assert found.fault is not None
        code, text = found.fault
        assert code == ConfigError.code
    except ConfigError as error:
        text = str(error)
    assert "\n" not in text
    assert len(text) < 600
    return text


def _replace(folder: Path, content: bytes) -> None:
    shutil.rmtree(folder)
    write_inventory(folder, [content])


def _part(folder: Path) -> Path:
    return next((folder / "data").iterdir())


BROKEN: dict[str, Callable[[Path], Any]] = {
    "its MD5 is": lambda folder: _part(folder).write_bytes(_part(folder).read_bytes()[:-1] + b"?"),
    "Compressed file ended": lambda folder: _replace(
        folder, csv_bytes([Row(f"{PREFIX}{number}") for number in range(500)])[:-40]
    ),
    "bytes are there, and the manifest says": lambda folder: _part(folder).write_bytes(b"x"),
    "there is no such object": lambda folder: _part(folder).unlink(),
    "manifest.checksum says": lambda folder: (folder / "manifest.json").write_bytes(b"{}"),
    "there is no inventory": lambda folder: (folder / "manifest.json").unlink(),
    "it is not compressed with gzip": lambda folder: _replace(folder, b'"a","b"\n'),
    "row 1 has 2 columns, not 9": lambda folder: _replace(folder, gzip.compress(b'"a","b"\n')),
    "row 1 has the size 'x'": lambda folder: _replace(
        folder, gzip.compress(b"b,k,v,true,false,x,2026-01-31T00:00:00Z,e,c\n")
    ),
    "Invalid isoformat": lambda folder: _replace(
        folder, gzip.compress(b"b,k,v,true,false,1,yesterday,e,c\n")
    ),
    "a row is of bucket 'other'": lambda folder: _replace(
        folder, csv_bytes([Row(KEYS[0], bucket="other")])
    ),
    "can't decode byte": lambda folder: _replace(folder, gzip.compress(b"\xff,\n")),
}


@pytest.mark.parametrize("said", BROKEN, ids=str)
def test_inventory_when_broken_is_one_line_that_names_the_file(tmp_path: Path, said: str) -> None:
    """A wrong sum, a missing or cut file and invalid rows are each one line."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([Row(KEYS[0])])])
    BROKEN[said](folder)
    assert said in fault_of(folder)


@pytest.mark.parametrize(
    "row",
    [pytest.param(b"a", id="one-line"), pytest.param(b'"a\n",', id="fields-of-two-lines")],
)
def test_inventory_row_when_it_is_too_long_then_refused_within_bounded_memory(
    tmp_path: Path, row: bytes
) -> None:
    """A row that inflates to 64 MiB is refused, and no more than 1 MiB of it is read."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([Row(KEYS[0])])])
    _replace(folder, gzip.compress(row * ((64 << 20) // len(row))))
    with memory_below(32 << 20):
        assert "a row has more than 1048576 characters" in fault_of(folder)


@pytest.mark.parametrize("kind", ["Parquet", "ORC"])
def test_inventory_file_when_it_is_no_such_or_lacks_a_column_named(
    tmp_path: Path, kind: str
) -> None:
    """An inventory file of another format, or without a column, gives an error that names it."""
    whole = file_bytes(kind, [Row(KEYS[0])])
    for number, content in enumerate((b"", b"PAR1", whole[:-9], b"x" * 100)):
        text = fault_of(write_inventory(tmp_path / f"list-{number}", [content], kind))
        assert "inventory file" in text
    lacking = file_bytes(kind, [Row(KEYS[0])], [one for one in COLUMNS if one != "Size"])
    text = fault_of(write_inventory(tmp_path / "lacking", [lacking], kind))
    assert "there is no column size" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fileSchema": "Bucket, Key, Size"}, "no column lastmodifieddate"),
        ({"fileSchema": None}, "has no fileSchema"),
        ({"fileFormat": "XML"}, "format 'XML'"),
        ({"files": None}, "names no files"),
        ({"files": [{"key": "x", "size": -1, "MD5checksum": "a" * 32}]}, "no key, size or MD5"),
        ({"files": [{"key": "x", "size": 1, "MD5checksum": "z"}]}, "no key, size or MD5"),
        ({"files": [7]}, "no key, size or MD5"),
        ({"creationTimestamp": "today"}, "when it was made"),
        ({"sourceBucket": 7}, "has no sourceBucket"),
    ],
)
def test_manifest_when_broken_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """A broken inventory manifest gives one line with its fault."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([])], **change)
    assert said in fault_of(folder)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"[" * 100_000, b"null"])
def test_manifest_when_it_is_none_is_named(content: bytes) -> None:
    """A file that is no manifest is named, whatever its bytes are."""
    with pytest.raises(ConfigError, match="this is no manifest of an inventory"):
        parse_inventory("here", content)


def test_unit_when_the_store_fails_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit whose store fails returns the reason as a value."""
    folder = write_inventory(tmp_path / "list", [csv_bytes([])])
    place = place_of(str(folder))
    inventory = read_inventory(place)

    def away(_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr("spark_tiering.store_listing.listing_tasks.process_store", away)
    one = look_into(InventoryTask(place, inventory, inventory.files[0], SORTING))
    assert one.fault == ("store-unavailable", "away")
