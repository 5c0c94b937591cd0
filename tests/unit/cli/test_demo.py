"""The demonstration, and what the README shows of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner

from rlmm.cli.main import cli

if TYPE_CHECKING:
    import pytest

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")


def test_demo_when_run_then_shows_what_the_readme_shows() -> None:
    """Every line of output that the README quotes is printed, to the letter."""
    result = CliRunner().invoke(cli, ["demo"])
    assert result.exit_code == 0
    blocks = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    quoted = next(block for block in blocks if "4. What" in block)
    printed = result.stdout.splitlines()
    missing = [line for line in quoted.splitlines() if line not in (*printed, "...")]
    assert not missing


def test_demo_when_run_then_breaks_no_rule_and_keeps_every_state() -> None:
    """Whatever it appends, the state stays sound, and images give the same state back."""
    result = CliRunner().invoke(cli, ["demo"])
    assert "Internal rules broken by all this: 0" in result.stdout
    assert result.stdout.rstrip().count("yes") == 3
    assert "NO" not in result.stdout


def test_python_of_the_readme_when_run_then_works(capsys: pytest.CaptureFixture[str]) -> None:
    """The snippet can be pasted as it stands."""
    snippet = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    exec(compile(snippet, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("46 ()")
    assert "SegmentMetadata(" in printed
