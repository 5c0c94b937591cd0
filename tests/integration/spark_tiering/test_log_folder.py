"""Segments in a folder, and how much memory large ones take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable
from spark_tiering.segments.findings import SegmentFindingKind as Kind
from spark_tiering.segments.findings import SegmentPart
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_inspection import inspect_segment
from spark_tiering.segments.segment_listing import list_segments
from tests.support.partitions.segments import example_partition, inspect_all
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

GIB, MIB = 2**30, 2**20
MEMORY_BYTES_MAX = 100 * MIB
"""Half of what is asked for."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "orders-3"
    place.mkdir()
    for name, content in example_partition().contents.items():
        (place / name).write_bytes(content)
    (place / "00000000000000000000.log.deleted").write_bytes(b"gone soon")
    (place / "deeper").mkdir()
    return place


def test_folder_when_it_is_read_then_has_what_its_files_have(folder: Path) -> None:
    """A partition on disk gives the same reports as in memory, and nested folders are left out."""
    stored = PartitionFolder(str(folder))
    facts = stored.facts()
    assert "deeper" not in facts
    log = folder / "00000000000000000120.log"
    assert facts[log.name].size_bytes == 14_842
    assert facts[log.name].modified_ms == log.stat().st_mtime_ns // 1_000_000
    assert stored.read(log.name, 10, 20) == log.read_bytes()[10:30]
    assert stored.read(log.name, 14_840, 20) == log.read_bytes()[14_840:]
    reports, expected = inspect_all(stored), inspect_all(example_partition())
    assert [report.parts for report in reports] == [report.parts for report in expected]


def test_folder_when_a_file_vanishes_then_it_is_missing_or_changed(folder: Path) -> None:
    """A file that the broker deletes during a read is a finding, not an error."""
    stored = PartitionFolder(str(folder))
    segment = list_segments(stored.facts())[1]
    gone = folder / "00000000000000000120.log"

    class Vanishing(PartitionFolder):
        def read(self, name: str, start: int, size: int) -> bytes:
            gone.unlink(missing_ok=True)
            return PartitionFolder.read(self, name, start, size)

    report = inspect_segment(Vanishing(str(folder)), segment)
    assert [(found.part, found.kind) for found in report.blockers] == [
        (SegmentPart.LOG, Kind.CHANGED)
    ]
    again = inspect_segment(stored, segment)
    assert [found.kind for found in again.blockers] == [Kind.MISSING]


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_folder_when_there_is_none_then_says_so_in_one_line(tmp_path: Path, name: str) -> None:
    """A path that is no folder is refused in one line as a caller's mistake."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=rf"no partition's folder: .*/{name}$"):
        PartitionFolder(str(tmp_path / name)).facts()


def test_failing_disk_is_our_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A permission error is permanent and other disk errors may be retried."""
    stored = PartitionFolder(str(folder))
    with pytest.raises(LogUnavailable, match="deeper"):
        stored.read("deeper", 0, 10)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LogNotPermitted, match=r"120\.log: Permission denied"):
        stored.read("00000000000000000120.log", 0, 10)
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(LogNotPermitted, match="orders-3"):
        stored.facts()


@pytest.mark.parametrize(
    ("log_bytes", "batch_bytes", "interval_bytes"),
    [
        pytest.param(256 * MIB, 16_384, 4096, id="usual batches"),
        pytest.param(32 * MIB, 200, 0, id="an index entry for each of many batches"),
        pytest.param(2 * GIB - 1, 16_384, 4096, id="2 GiB", marks=pytest.mark.long),
        pytest.param(2 * GIB - 1, 1_000, 4096, id="2 GiB in small batches", marks=pytest.mark.long),
    ],
)
def test_f123_segment_when_it_is_large_then_takes_no_memory_for_that(
    log_bytes: int, batch_bytes: int, interval_bytes: int
) -> None:
    """A large segment is streamed; only rebuilt indexes grow with it, up to a limit."""
    sizes = map(str, (log_bytes, batch_bytes, interval_bytes))
    said = subprocess.run(
        [sys.executable, "-m", "tests.support.partitions.inspection_process", *sizes],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    told = json.loads(said.stdout)
    assert told["blockers"] == []
    assert told["size"] == log_bytes // batch_bytes * batch_bytes
    assert told["index"] > 100_000
    assert told["bytes"] < MEMORY_BYTES_MAX
