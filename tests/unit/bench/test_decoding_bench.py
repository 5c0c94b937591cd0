"""The decoding benchmark in its quick form prints every asked figure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from bench import decoding
from bench.__main__ import COMMANDS
from bench.figures import Run
from rlmm.records.compression import Compression

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CODECS = [codec.name.lower() for codec in Compression]


def test_quick_run_states_every_figure_and_what_is_asked_of_it(tmp_path: Path) -> None:
    """The run has both sides, the ratio and its bound for each codec, with and without headers."""
    output = tmp_path / "run.json"
    done = CliRunner().invoke(COMMANDS["decoding"], ["--quick", "--output", str(output)])
    assert done.exit_code == 0, done.output
    recorded: dict[str, Any] = json.loads(output.read_text())
    figures = {figure["name"]: figure for figure in recorded["figures"]}
    expected = {}
    for what, bound in (("no headers", 1.2), ("2 headers", 3.0)):
        for codec in CODECS:
            ratio = f"decoder / aiokafka's parser feeding Arrow, {codec}, {what}"
            expected[ratio] = bound
            assert ratio in done.output
            assert figures[f"decoder, {codec}, {what}"]["unit"] == "M records/s"
            assert figures[f"aiokafka's parser feeding Arrow, {codec}, {what}"]["value"] > 0
    asked = {name: each["asked_at_least"] for name, each in figures.items() if "met" in each}
    assert asked == expected
    assert len(figures) == 3 * len(expected)
    assert recorded["sizes"]["log_bytes"] == decoding.QUICK.log_bytes


def test_run_when_codecs_are_named_then_only_these_are_measured(tmp_path: Path) -> None:
    """The run measures only the named codecs."""
    output = tmp_path / "run.json"
    arguments = ["--quick", "--codec", "lz4", "--output", str(output)]
    assert CliRunner().invoke(decoding.main, arguments).exit_code == 0
    names = [figure["name"] for figure in json.loads(output.read_text())["figures"]]
    assert len(names) == 6
    assert all(", lz4, " in name for name in names)


def test_ratio_when_it_is_missed_then_a_profile_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run prints a profile for a missed figure."""
    monkeypatch.setattr(decoding, "PLAIN_MIN", 1e9)
    run = Run()
    decoding.compare(run, decoding.QUICK, Compression.NONE, has_headers=False)
    (missed,) = run.asked
    assert not missed.is_met
    assert any("tottime" in line for line in run.profiles[missed.name])
