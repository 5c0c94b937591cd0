"""The files beside a log, as they lie in the folder."""

from __future__ import annotations

import pytest

from spark_tiering.segments.companions import StoredFiles, content_of
from spark_tiering.segments.findings import SegmentFinding, SegmentPart
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.segment_parts import RebuiltPart, StoredPart
from tests.support.partitions.segments import MemoryFiles, example_partition, inspect_all


def test_parts_of_a_report_when_read_then_are_what_a_copy_stores() -> None:
    """A report gives the parts that a copy stores, both existing files and rebuilt ones."""
    files = example_partition()
    bare = files.without(".index", ".timeindex", ".txnindex", ".snapshot", "point")
    for stored, made in zip(inspect_all(files), inspect_all(bare), strict=True):
        for part in set(stored.parts) - {SegmentPart.LOG}:
            content = content_of(files, part, stored.parts[part])
            assert isinstance(content, bytes)
            assert content == content_of(bare, part, made.parts[part])


def test_part_when_its_file_changed_since_then_is_a_finding() -> None:
    """A companion file with another size than in the report, or missing, is a finding."""
    files = MemoryFiles({"f": bytes(24)})
    part = SegmentPart.OFFSET_INDEX
    assert content_of(files, part, StoredPart("f", 24)) == bytes(24)
    for told in (StoredPart("f", 16), StoredPart("f", 32), StoredPart("g", 8)):
        found = content_of(files, part, told)
        assert isinstance(found, SegmentFinding)
        assert found.kind is Kind.CHANGED
    assert content_of(files, part, RebuiltPart(b"x")) == b"x"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        pytest.param({}, Kind.MISSING, id="none"),
        pytest.param({"00000000000000000120.snapshot": b"x"}, Kind.DAMAGED, id="damaged"),
    ],
)
def test_unusable_snapshot_is_named(files: dict[str, bytes], kind: Kind) -> None:
    """An unusable producer snapshot is a finding that names the file."""
    found = StoredFiles(MemoryFiles(files)).snapshot(120)
    assert isinstance(found, SegmentFinding)
    assert found.kind is kind
    assert "00000000000000000120.snapshot" in found.detail
