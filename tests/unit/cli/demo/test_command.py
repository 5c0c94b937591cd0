"""The command: exit codes, what it says of a missing broker, and what it never writes over."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.demo import command
from rlmm.cli.main import cli
from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.cli.demo.screens import Told
    from rlmm.cli.demo.stage import Stage
    from rlmm.cli.demo.world import World


def shown(stage: Stage, world: World, told: Told) -> None:
    """A claim that holds."""
    del world, told
    with stage.screen("shown", "It holds.") as screen:
        screen.check("it does", holds=True)


def failing(stage: Stage, world: World, told: Told) -> None:
    """A claim that does not."""
    del world, told
    with stage.screen("failing", "It holds.") as screen:
        screen.check("it does", holds=False)


def broken(stage: Stage, world: World, told: Told) -> None:
    """A claim that could not be looked at."""
    del world, told
    with stage.screen("broken", "It holds."):
        raise EngineFailed("nobody answers")


@pytest.mark.parametrize(
    ("screens", "status", "told"),
    [
        ((shown, shown), 0, "2 of 2 claims shown"),
        ((shown, failing), 1, "1 of 2 claims shown"),
        ((broken, shown), 1, "0 of 2 claims shown"),
    ],
    ids=["shown", "failing", "broken"],
)
def test_demo_when_a_claim_is_not_shown_then_exits_with_1_and_still_writes_the_report(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    screens: tuple[command.Show, ...],
    status: int,
    told: str,
) -> None:
    """What comes behind a claim that does not hold stands on it, so the story ends there."""
    monkeypatch.setattr(command, "_screens", lambda: screens)
    report = tmp_path / "deep" / "report.html"
    done = CliRunner().invoke(cli, ["demo", "--without-broker", "--report", str(report)])
    assert done.exit_code == status
    assert told in done.stdout
    assert "Without a broker (not wanted)" in done.stdout
    assert "It holds." in report.read_text()
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]


def test_demo_when_a_broker_cannot_be_had_then_says_why_and_goes_on_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both on the terminal and in the report."""
    monkeypatch.setattr(command, "_screens", lambda: (shown,))
    monkeypatch.setenv("PATH", str(tmp_path))
    report = tmp_path / "report.html"
    done = CliRunner().invoke(
        cli, ["demo", "--report", str(report), "--cache", str(tmp_path / "cache")]
    )
    assert done.exit_code == 0
    assert "Without a broker (not installed: java, javac, mvn)" in done.stdout
    assert "not installed: java, javac, mvn" in report.read_text()


def test_demo_when_its_folder_is_not_empty_then_touches_nothing(tmp_path: Path) -> None:
    """Somebody keeps something there."""
    (tmp_path / "mine").write_text("kept")
    done = CliRunner().invoke(cli, ["demo", "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_demo_when_what_tiering_needs_is_not_installed_then_says_what(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And how it is installed."""
    monkeypatch.setitem(sys.modules, "rlmm.cli.demo.made_up", None)
    report = tmp_path / "report.html"
    done = CliRunner().invoke(cli, ["demo", "--without-broker", "--report", str(report)])
    assert done.exit_code != 0
    assert "pip install 'rlmm[" in done.stderr
    assert not report.exists()


def test_history_when_played_then_breaks_no_rule_and_keeps_every_state() -> None:
    """Whatever it appends, the state stays sound, and images give the same state back."""
    done = CliRunner().invoke(cli, ["demo", "--history"])
    assert "Internal rules broken by all this: 0" in done.stdout
    assert done.stdout.rstrip().count("yes") == 3
    assert "NO" not in done.stdout
