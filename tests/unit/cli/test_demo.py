"""The demonstration, and what the README shows of it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from rlmm.cli.main import cli

if TYPE_CHECKING:
    import pytest

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")


def test_demo_when_run_then_shows_what_the_readme_shows() -> None:
    """Every line of output that the README quotes is printed, to the letter."""
    result = CliRunner().invoke(cli, ["demo"])
    assert result.exit_code == 0, result.output
    blocks = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    quoted = next(block for block in blocks if "5. Killed" in block)
    printed = result.stdout.splitlines()
    missing = [line for line in quoted.splitlines() if line not in (*printed, "...")]
    assert not missing


def test_demo_when_given_a_folder_then_leaves_log_and_snapshots_there(tmp_path: Path) -> None:
    """The folder can be looked at afterwards, and is a log like any other."""
    result = CliRunner().invoke(cli, ["demo", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "log" / "__remote_log_metadata-0").is_dir()
    assert list((tmp_path / "snapshots").rglob("*"))


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
