"""The benchmark of the whole engine, in its quick form and without a broker; and all of them."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from bench import engine, engine_replay, engine_writes
from bench.__main__ import COMMANDS, main
from bench.engine_replay import compare_ingest
from bench.figures import Run
from bench.ticker import Noticed
from rlmm.base import native_core
from rlmm.metadata.segment import SegmentMetadata

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


STATED = {
    "`files` to queryable, batches of 500": "events/s wall",
    "`files` to queryable, batches of 1": "events/s cpu",
    "turn of the loop while idle, p50": "ms",
    "turn of the loop during a replay at full speed, max": "ms",
    "turn of the loop during snapshots, p99": "ms",
    "slowest read during snapshots": "ms",
    "start to queryable from snapshots": "s",
    "save / write + fsync of the same bytes": "times",
    "load / read of the same bytes": "times",
    "writes, `files`, 1 in flight": "writes/s",
    "verdict p99, `files`, 64 in flight": "ms",
    "verdict p50, `files`, 1,000 in flight": "ms",
    "visible in a second service p99, `files`": "ms",
    "at most during a start by replay": "B/live segment",
}
"""Figures that are to be shown without a broker, by name and unit."""


def test_quick_run_states_every_figure_and_what_is_asked_of_it(tmp_path: Path) -> None:
    """The run prints each figure once with its bound, writes its file, and removes its folder."""
    arguments = ["engine", "--quick", "--without-broker", "--folder", str(tmp_path)]
    try:
        done = CliRunner().invoke(main, [*arguments, "--output", str(tmp_path / "run.json")])
    finally:
        gc.unfreeze()  # the service sets apart what it holds, for good
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    recorded: dict[str, Any] = json.loads((tmp_path / "run.json").read_text())
    values = {(figure["name"], figure["unit"]): figure["value"] for figure in recorded["figures"]}
    assert len(values) == len(recorded["figures"])
    for name, unit in STATED.items():
        assert values[name, unit] > 0
        assert name in done.output
    asked = [figure for figure in recorded["figures"] if "met" in figure]
    assert "slowest read during snapshots" in {figure["name"] for figure in asked}
    for figure in asked:
        assert figure["asked_at_most"] == 20.0
        assert figure["met"] is (figure["value"] <= 20.0)
    assert recorded["sizes"]["segments"] == engine.QUICK.segments
    assert recorded["machine"]["cores"] >= 1
    assert len(recorded["load_average_before_and_after"]) == 2
    assert str(tmp_path) not in json.dumps(recorded)


def test_ingest_when_it_is_too_slow_beside_getmany_is_explained_by_a_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The run reports a missed ratio for wall and CPU time, and prints one profile."""

    class OnDisk:
        records = 20_000

        def settings(self) -> Path:
            return tmp_path / "ingest-500"

    async def write(bootstrap: str, count: int, per_batch: int) -> OnDisk:
        assert (bootstrap, count, per_batch) == ("broker:9092", 20_000, 500)
        return OnDisk()

    async def read_getmany(written: OnDisk) -> int:
        return written.records

    monkeypatch.setattr(engine_replay, "write", write)
    monkeypatch.setattr(engine_replay, "read_getmany", read_getmany)
    # The time of the native core is no function's of Python.
    monkeypatch.setattr(native_core._PROCESS, "engine", native_core.ShardEngine.PYTHON)
    run = Run(in_this_process=True)
    compare_ingest(run, tmp_path, "broker:9092", {500: 20_000})
    asked = [figure.name for figure in run.asked]
    assert asked == [
        f"broker to queryable / getmany, batches of 500, {kind}" for kind in ("wall", "cpu")
    ]
    assert [figure.at_least for figure in run.asked] == [0.4, 0.4]
    (profile,) = run.profiles.values()
    assert any("_shard.py" in line for line in profile)


def test_events_that_are_written_are_whole_copies_of_different_segments() -> None:
    """Every segment is begun and finished, and none is begun twice."""
    partitions = engine_writes.user_partitions()
    adds, ends = engine_writes.copies(partitions, 5, 100)
    assert [event.id for event in adds] == [event.id for event in ends]
    assert len({event.id for event in adds}) == 100
    assert {event.id.partition for event in adds} == set(partitions)
    assert all(isinstance(event, SegmentMetadata) for event in adds)


def test_noticed_turns_are_judged_by_the_slowest_read_alone() -> None:
    """The benchmark judges the longest wait; percentiles only explain."""
    noticed = Noticed([1_000, 2_000, 30_000], [10, 20, 30], [5, 25_000])
    figures = noticed.figures("then", 20.0)
    values = {figure.name: figure.value for figure in figures}
    assert values["turn of the loop then, max"] == 30.0
    assert values["own CPU between two turns then, p50"] == 0.02
    (asked,) = [figure for figure in figures if figure.is_asked]
    assert asked.name == "slowest read then"
    assert not asked.is_met


def test_command_without_a_name_or_with_a_wrong_one_shows_usage() -> None:
    """The command lists every benchmark with its options, and ends with 2 for an unknown one."""
    done = CliRunner().invoke(main, [])
    assert done.exit_code == 0
    for name, command in COMMANDS.items():
        assert name in done.output
        assert not [one for one in command.params if one.opts[0] not in done.output]
    done = CliRunner().invoke(main, ["engin"])
    assert done.exit_code == 2
    assert "engin" in done.output
