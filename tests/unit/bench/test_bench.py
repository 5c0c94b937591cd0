"""The benchmark command: it ends, and prints every asked figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench import suite
from bench.core import main
from bench.figures import Figure, Run
from bench.measure import Collector, held_bytes, percentile

ASKED = {
    "naive, results dropped per batch / decode + apply, collector on, 1,000 events": 1.6,
    "naive, results dropped per batch / decode + apply, collector off, 1,000 events": 1.6,
    "naive, results dropped per batch / decode + apply, 1,000 events": 1.6,
    "naive, results dropped per batch / decode + apply, 2,000 events": 1.6,
    "resident memory, 2,000 events": 750,
    "growth of decode + apply of the whole history, collector off": 2.0,
    "growth of decode + apply of what comes next, collector frozen": 2.0,
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    output = tmp_path_factory.mktemp("bench") / "run.json"
    arguments = ["--events", "1000,2000", "--listed", "200", "--in-this-process"]
    done = CliRunner().invoke(main, [*arguments, "--output", str(output)])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(output.read_text())
    return found | {"output": done.output}


EXPLAINING = (
    "codec.decode to events",
    "compiled walk",
    "results kept",
    "1 record a batch, 50 shards, 2,000",
    "1 record a batch, 1 shard, 2,000",
    "500 records a batch, 1 shard, 2,000",
    "pause max, collector on",
    "pause p99, collector off",
    "segment_for, at random",
    "segment_for, nothing there",
    "highest_offset",
    "size_of_epoch",
    "listing",
    "state images, import",
)


def test_run_states_every_asked_figure_with_its_bound(recorded: dict[str, Any]) -> None:
    """The run prints asked figures with bound and verdict, each once, and those that explain."""
    figures = recorded["figures"]
    found = {
        figure["name"]: figure.get("asked_at_least", figure.get("asked_at_most"))
        for figure in figures
        if "met" in figure
    }
    assert found == ASKED
    assert not [name for name in ASKED if name not in recorded["output"]]
    names = [figure["name"] for figure in figures]
    assert len({(figure["name"], figure["unit"]) for figure in figures}) == len(names)
    assert not [part for part in EXPLAINING if not any(part in name for name in names)]


def test_run_tells_the_machine_but_not_its_name_or_folders(recorded: dict[str, Any]) -> None:
    """A record can be published: cores and versions are in it, no path and no host."""
    assert recorded["machine"]["cores"] >= 1
    assert "Python" in recorded["machine"]["python"]
    text = json.dumps(recorded["machine"])
    assert str(Path.cwd()) not in text
    assert "/" not in text


def test_figure_when_missed_is_explained_by_a_profile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missed figure is reported with a profile that names no folder."""
    monkeypatch.setattr(suite, "APPLY_TO_NAIVE_MIN", 1e9)
    monkeypatch.setattr(suite, "_SMALL_EVENTS_MAX", 1000)
    run = Run(in_this_process=True)
    suite.compare_decoding(run, 1000, Collector.OFF)
    (missed,) = run.asked
    assert not missed.is_met
    printed = capsys.readouterr().out
    assert "asked >= 1e+09: missed" in printed
    profile = run.profiles[missed.name]
    assert "tottime" in profile[0]
    assert any("fast_decoding.py" in line for line in profile)
    assert len(profile) == 13
    assert "/" not in "".join(line.split(None, 5)[-1] for line in profile[1:])


@pytest.mark.parametrize(
    ("value", "at_least", "at_most", "is_met"),
    [
        pytest.param(1.6, 1.6, None, True, id="just enough"),
        pytest.param(1.59, 1.6, None, False, id="too little"),
        pytest.param(2.0, None, 2.0, True, id="not too much"),
        pytest.param(2.01, None, 2.0, False, id="too much"),
        pytest.param(7.0, None, None, True, id="nothing asked"),
    ],
)
def test_figure_is_met_when_it_keeps_its_bound(
    value: float, at_least: float | None, at_most: float | None, is_met: bool
) -> None:
    """Bounds are inclusive; a figure without a bound is never missed."""
    assert Figure("a", value, "times", at_least, at_most).is_met is is_met


def test_sizes_when_they_are_no_numbers_are_refused() -> None:
    """A wrong list of sizes ends with usage help and exit code 2 before anything is measured."""
    done = CliRunner().invoke(main, ["--events", "1000,many"])
    assert done.exit_code == 2
    assert "many" in done.output


def test_measures_count_each_object_once_and_find_percentiles() -> None:
    """A shared object is counted once; a percentile is one of the values."""
    shared = bytes(1000)
    once, twice = held_bytes([shared]), held_bytes([shared, shared])
    assert twice - once < 100
    assert percentile([5, 1, 3], 50) == 3
    assert percentile([5, 1, 3], 99) == 5
