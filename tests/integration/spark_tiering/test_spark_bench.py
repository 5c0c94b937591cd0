"""The benchmark of copies in its quick form, and the store that it writes to."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench import spark_copy
from bench.fast_store import KEPT_BYTES, fast_store
from bench.figures import Run
from bench.spark_ground import (
    Passing,
    environment,
    log_bytes,
    segments_of,
    store_settings,
    write_log_folder,
)
from spark_tiering.execution.in_process import InProcess
from spark_tiering.executor.segment_inspection import inspect_with_state
from spark_tiering.segments.log_folder import PartitionFolder
from spark_tiering.segments.segment_inspection import USUAL_RULES
from spark_tiering.segments.segment_listing import list_segments
from spark_tiering.stores.content import BytesContent
from spark_tiering.stores.opening import open_store
from spark_tiering.stores.results import (
    ObjectAbsent,
    ObjectConflict,
    ObjectFacts,
    ObjectIdentical,
    RangeBeyondObject,
)
from tests.support.repository.tree import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from spark_tiering.stores.protocol import ObjectStore

ASKED = {
    "copy job / boto3 put_object": ("asked_at_least", 0.9),
    "driver overhead per 1,000 segments": ("asked_at_most", 1.0),
    "memory above the baseline, in one request": ("asked_at_most", 200.0),
    "memory above the baseline, in parts": ("asked_at_most", 200.0),
    "memory above the baseline, zstd chunks": ("asked_at_most", 200.0),
}
EXPLAINING = {
    "boto3 put_object, as it comes": "MB/s",
    "boto3 put_object, checksum given, body not signed": "MB/s",
    "copy job on Spark, STARTED to FINISHED": "MB/s",
    "copy job, reading and planning before it": "s",
    "the same tasks as one job of Spark's": "s",
    "time in tasks / slots": "s",
}


@pytest.mark.timeout(400)  # two sessions of Spark's, on a busy machine
def test_quick_run_states_every_figure_and_what_is_asked_of_it(tmp_path: Path) -> None:
    """The quick benchmark prints each figure once with its bound and leaves no folder."""
    output = tmp_path / "run.json"
    command = [sys.executable, "-m", "bench", "spark", "--quick", "--processes", "2"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path), "--output", str(output)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    recorded: dict[str, Any] = json.loads(output.read_text())
    figures = {figure["name"]: figure for figure in recorded["figures"]}
    assert len(figures) == len(recorded["figures"])
    asked = {name: figure for name, figure in figures.items() if "met" in figure}
    assert asked.keys() == ASKED.keys()
    for name, (bound, value) in ASKED.items():
        assert asked[name][bound] == value
        assert name in done.stdout
    for name, unit in EXPLAINING.items():
        assert figures[name]["unit"] == unit
        assert figures[name]["value"] > 0
    assert recorded["sizes"]["segments"] == spark_copy.QUICK.segments
    assert recorded["processes"] == 2
    assert str(tmp_path) not in json.dumps(recorded)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with environment(), fast_store() as endpoint, open_store(store_settings(endpoint)) as opened:
        yield opened


@pytest.mark.parametrize("size_bytes", [10, KEPT_BYTES, KEPT_BYTES + 1, 3_000_000])
def test_object_when_put_then_tells_its_sum_and_stays(store: ObjectStore, size_bytes: int) -> None:
    """A second put finds equal content and refuses other content, in both stores."""
    key, content = f"a/{size_bytes}", BytesContent(bytes(size_bytes))
    store.put(key, content)
    facts = store.head(key)
    assert isinstance(facts, ObjectFacts)
    assert (facts.size_bytes, facts.crc64nvme) == content.sum
    assert isinstance(store.put(key, content), ObjectIdentical)
    assert isinstance(store.put(key, BytesContent(b"other")), ObjectConflict)


def test_small_object_when_there_is_read_listed_and_deleted(store: ObjectStore) -> None:
    """A small object can be written, read, listed and deleted."""
    store.put("job&s/1.json", BytesContent(b"0123456789"))
    store.put("job&s/2.json", BytesContent(b"x"))
    assert store.get("job&s/1.json", 2, 5) == b"2345"
    assert store.get("job&s/1.json", 8, 70_000) == b"89"
    assert isinstance(store.get("job&s/1.json", 10, 20), RangeBeyondObject)
    assert [one.key for one in store.list("job&s/")] == ["job&s/1.json", "job&s/2.json"]
    store.delete("job&s/1.json")
    assert isinstance(store.get("job&s/1.json", 0, 1), ObjectAbsent)
    assert isinstance(store.head("job&s/1.json"), ObjectAbsent)


def test_traits_when_the_store_is_probed_then_the_first_writer_wins(store: ObjectStore) -> None:
    """The probed store returns checksums and refuses a second put."""
    traits = store.probe("probed/")
    assert traits.refuses_second_put
    assert traits.tells_sums


def test_log_folder_of_the_benchmark_has_sound_segments(tmp_path: Path) -> None:
    """The benchmark's log folder has sound segments, so that it measures copies and not repairs."""
    folder = write_log_folder(tmp_path / "log", partitions=2, segments=3, segment_bytes=100_000)
    segments = segments_of(folder)
    assert len(segments) == 6
    assert all(path.is_file() for files in segments for path in files)
    assert 6 * 80_000 < log_bytes(segments) <= 6 * 100_000
    files = PartitionFolder(str(folder / "copied-1"))
    listed = list_segments(files.facts())
    assert len(listed) == 4
    for segment in listed[:-1]:
        report = inspect_with_state(files, segment, listed, 0, USUAL_RULES)
        assert not report.findings
        assert not report.blockers


def test_missed_bound_has_a_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A figure above its bound is followed by a profile."""
    sizes = spark_copy.QUICK
    monkeypatch.setattr(spark_copy, "OVERHEAD_S_MAX", -1e9)
    run = Run()
    with environment(), fast_store() as endpoint:
        ground = spark_copy.Ground(run, sizes, Passing(InProcess()), endpoint, tmp_path)
        spark_copy.measure_overhead(ground)
    (missed,) = run.asked
    assert not missed.is_met
    assert any("tottime" in line for line in run.profiles[missed.name])
