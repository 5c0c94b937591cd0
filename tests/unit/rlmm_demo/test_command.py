"""The command: exit codes, the error without a broker, and files that it never overwrites."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.errors import EngineFailed
from rlmm_demo import command
from rlmm_demo.broker import jars
from rlmm_demo.world import made_up_world
from rlmm_demo.world.made_up_world import MadeUpWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld


def shown(stage: DemoStage, world: DemoWorld, facts: DemoFigures, *, holds: bool = True) -> None:
    del world, facts
    with stage.screen("shown", "It holds.") as screen:
        screen.check("it does", holds=holds)


def failing(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    shown(stage, world, facts, holds=False)


def broken(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
    del world, facts
    with stage.screen("broken", "It holds."):
        raise EngineFailed("nobody answers")


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the path of the report of a demo with one screen, whose claim is shown."""
    monkeypatch.setattr(command, "_screens", lambda: (shown,))
    return tmp_path / "deep" / "report.html"


def demo(report: Path, *flags: str) -> Result:
    return CliRunner().invoke(cli, ["demo", "--report", str(report), *flags])


@contextmanager
def handled(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    """Handle a signal as a parent of the demo would have set it."""
    before = signal.signal(number, handler)
    try:
        yield
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("screens", "status", "count"),
    [((shown, shown), 0, 2), ((shown, failing), 1, 1), ((broken, shown), 1, 0)],
    ids=["shown", "failing", "broken"],
)
def test_demo_when_a_claim_is_not_shown_then_exits_with_1_and_still_writes_the_report(
    monkeypatch: pytest.MonkeyPatch,
    report: Path,
    screens: tuple[command.Show, ...],
    status: int,
    count: int,
) -> None:
    """The demo ends at the first claim that fails, because later screens depend on it."""
    monkeypatch.setattr(command, "_screens", lambda: screens)
    done = demo(report, "--without-broker")
    assert done.exit_code == status
    assert f"{count} of 2 claims shown" in done.stdout
    assert "Without a broker (not wanted)" in done.stdout
    assert "It holds." in report.read_text()
    assert [path.name for path in report.parent.iterdir()] == ["report.html"]


def test_demo_when_a_broker_cannot_be_had_then_says_why_and_goes_on_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path
) -> None:
    """The terminal and the report name the missing programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = demo(report, "--cache", str(tmp_path / "cache"))
    assert done.exit_code == 0
    assert "Without a broker (not installed: java, javac, mvn)" in done.stdout
    assert "not installed: java, javac, mvn" in report.read_text()


def test_demo_when_the_cache_cannot_be_written_then_goes_on_without_a_broker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path
) -> None:
    """The demo runs without a broker where its cache cannot be written."""
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(jars, "_check_version", lambda _: None)
    (tmp_path / "file").write_text("no folder")
    cache = tmp_path / "file" / "cache"
    done = demo(report, "--cache", str(cache))
    assert done.exit_code == 0, done.output
    assert f"Without a broker ({cache}: " in done.stdout


def test_demo_when_its_folder_is_not_empty_then_touches_nothing(tmp_path: Path) -> None:
    """The demo refuses a folder that holds files."""
    (tmp_path / "mine").write_text("kept")
    done = CliRunner().invoke(cli, ["demo", "--folder", str(tmp_path)])
    assert done.exit_code == 2
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("flag", ["--report", "--folder"])
def test_demo_when_a_place_cannot_be_written_then_says_so_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path, flag: str
) -> None:
    """The demo refuses a report that cannot be written before the first screen."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")
    done = demo(report, "--without-broker", flag, "file/deep/place")
    assert done.exit_code == 2
    assert "file/deep" in done.stderr
    assert "It holds." not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_demo_when_asked_to_end_or_its_terminal_is_closed_then_ends_what_it_started(
    monkeypatch: pytest.MonkeyPatch, report: Path, number: signal.Signals
) -> None:
    """The demo closes its world, and the exit code names the signal."""
    left = []

    class Leaving(MadeUpWorld):
        def __exit__(self, *error: object) -> None:
            left.append(error[0])

    monkeypatch.setattr(made_up_world, "MadeUpWorld", Leaving)
    monkeypatch.setattr(command, "_screens", lambda: (lambda *_: signal.raise_signal(number),))
    with handled(number, signal.SIG_DFL):
        done = demo(report, "--without-broker")
    assert done.exit_code == 128 + number
    assert left == [SystemExit]


def test_demo_when_its_terminal_is_closed_while_jars_are_made_then_ends_in_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, report: Path
) -> None:
    """A signal also ends Maven, which takes longest of all."""
    left = []

    def make(_: Path) -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            left.append("Maven")

    monkeypatch.setattr(jars, "make_jars", make)
    with handled(signal.SIGHUP, signal.SIG_DFL):
        done = demo(report, "--cache", str(tmp_path / "cache"))
    assert done.exit_code == 128 + signal.SIGHUP
    assert left == ["Maven"]


def test_demo_when_under_nohup_then_goes_on(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    """The demo keeps ignoring the signal that nohup ignores."""

    def closed(stage: DemoStage, world: DemoWorld, facts: DemoFigures) -> None:
        signal.raise_signal(signal.SIGHUP)
        shown(stage, world, facts)

    monkeypatch.setattr(command, "_screens", lambda: (closed,))
    with handled(signal.SIGHUP, signal.SIG_IGN):
        done = demo(report, "--without-broker")
    assert done.exit_code == 0, done.output


def test_demo_when_library_lacks_then_named(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    """The message names the command that installs the missing library."""
    module = ModuleType("rlmm_demo.world.made_up_world")

    def lacking(_: str) -> None:
        raise ModuleNotFoundError(name="zstandard")

    module.__getattr__ = lacking  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "rlmm_demo.world.made_up_world", module)
    done = demo(report, "--without-broker")
    assert done.exit_code != 0
    assert "pip install 'rlmm[" in done.stderr
    assert not report.exists()


def test_history_when_played_then_breaks_no_rule_and_keeps_every_state() -> None:
    """Faulty events break no rule of the state, and images restore the same state."""
    done = CliRunner().invoke(cli, ["demo", "--history"])
    assert "Internal rules broken by all this: 0" in done.stdout
    assert done.stdout.rstrip().count("yes") == 3
    assert "NO" not in done.stdout


def test_history_when_a_folder_is_named_then_is_refused(tmp_path: Path) -> None:
    """A folder that would be ignored is refused."""
    done = CliRunner().invoke(cli, ["demo", "--history", "--folder", str(tmp_path / "new")])
    assert (done.exit_code, "--history keeps nothing" in done.stderr) == (2, True)
