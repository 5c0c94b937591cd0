"""The demonstration, and what the README shows of it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlmm.cli.demo_behind import COPIES
from rlmm.cli.main import cli

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demonstration keeps its log."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    """What the demonstration prints, when all went well."""
    result = CliRunner().invoke(cli, ["demo", "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_demo_when_run_then_shows_what_the_readme_shows(shown: str) -> None:
    """Every line of output that the README quotes is printed, to the letter."""
    blocks = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    quoted = next(block for block in blocks if "5. Killed" in block)
    missing = [line for line in quoted.splitlines() if line not in (*shown.splitlines(), "...")]
    assert not missing


def test_demo_when_its_second_service_is_behind_then_refuses_by_socket_and_http(shown: str) -> None:
    """By both it is not ready while records are left to read, and answers behind them."""
    _, _, told = shown.partition("6. It refuses while it is behind\n")
    assert [re.split(r" {2,}", line) for line in told.splitlines()[:3]] == [
        ["asked", "while it is behind", "when it has caught up"],
        ["the size of payments-0", "not-ready: replaying", "246320"],
        ["/readyz", "503 not-ready", "200 ready"],
    ]
    left = re.search(r"(\d+) records were left to read when it was asked", told)
    assert left is not None
    assert 0 < int(left[1]) <= 2 * COPIES + 32


@pytest.mark.usefixtures("shown")
def test_demo_when_given_a_folder_then_leaves_log_and_snapshots_there(folder: Path) -> None:
    """The folder can be looked at afterwards, and is a log like any other."""
    assert (folder / "log" / "__remote_log_metadata-0").is_dir()
    assert list((folder / "snapshots").rglob("*"))


def test_history_when_played_then_breaks_no_rule_and_keeps_every_state() -> None:
    """Whatever it appends, the state stays sound, and images give the same state back."""
    result = CliRunner().invoke(cli, ["demo", "--history"])
    assert "Internal rules broken by all this: 0" in result.stdout
    assert result.stdout.rstrip().count("yes") == 3
    assert "NO" not in result.stdout


def test_python_of_the_readme_when_run_then_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The snippet can be pasted as it stands."""
    snippet = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    scope: dict[str, Any] = {}
    exec(compile(snippet, "README.md", "exec"), scope)
    asyncio.run(scope["main"](str(tmp_path)))
    printed = capsys.readouterr().out
    assert printed.startswith("Applied(remark=None) 0\n[SegmentMetadata(")
