"""The benchmark of the frame server, in its quick form."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from bench import sidecar_ground
from bench.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

has_compiler = pytest.mark.skipif(
    not any(map(shutil.which, sidecar_ground.COMPILERS)), reason="needs a C compiler"
)
ASKED = {
    "server CPU per look-up, rlmm / C": 4.0,
    "16 in one / one by one, time to one client": 0.45,
    "16 in one / one by one, server CPU, 64 clients": 0.45,
    "memory of the server": 20_000.0,
    "p99 beside idle connections / without": 1.5,
}
"""Figures that a run needs even if its replay is too short to be measured."""


@has_compiler
def test_quick_run_states_what_is_asked_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Every figure is there once and positive, with its bound if it has one."""
    output = tmp_path / "run.json"
    arguments = ["sidecar", "--quick", "--folder", str(tmp_path), "--output", str(output)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    recorded: dict[str, Any] = json.loads(output.read_text())
    figures = recorded["figures"]
    assert len({(figure["name"], figure["unit"]) for figure in figures}) == len(figures)
    assert all(figure["value"] >= 0 for figure in figures)
    asked = {one["name"]: one["asked_at_most"] for one in figures if "met" in one}
    assert asked.items() >= ASKED.items()
    assert "echo in C" in done.output
    assert str(tmp_path) not in output.read_text()


def test_run_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The run ends without a compiler before any measurement, with a message and no traceback."""
    monkeypatch.setattr(sidecar_ground, "COMPILERS", ("no-such-compiler",))
    done = CliRunner().invoke(main, ["sidecar", "--quick", "--folder", str(tmp_path)])
    assert done.exit_code == 1
    assert "no C compiler is on the path (no-such-compiler)" in done.output
    assert not list(tmp_path.iterdir())
