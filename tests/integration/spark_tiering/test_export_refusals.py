"""`rlmm tier export` refuses contradicting requests in one line before it does anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from tests.support.cli.tier_command import forget_environment

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: dict[str, tuple[list[str], str]] = {
    "no such token": (["--since", "rlmm-plan-1.AAAA"], "no token"),
    "no such file": (["--since", "nowhere.json"], "nowhere.json"),
    "no plan": (["--since", "{log}"], "no frozen plan"),
    "since and from": (["--since", "rlmm-plan-1.AAAA", "--from-offset", "1"], "--from-offset"),
    "token and topic": (["--token", "rlmm-plan-1.AAAA", "--topic", "a"], "--topic"),
    "both beginnings": (["--from-offset", "1", "--from-time", "0"], "say one"),
    "backwards": (["--from-offset", "2", "--to-offset", "1"], "before the beginning"),
    "no range": (["--range", "orders-3"], "orders-3@1000:2000"),
    "range of nothing": (["--range", "orders@1:2"], "names no partition"),
    "range twice": (["--range", "orders-3@1:2", "--range", "orders-3@3:4"], "twice"),
    "manifests and metadata": (["--from-manifests"], "--embedded"),
    "one offset": (["--at", "7"], "PARTITION:7"),
    "both on standard output": (["--save", "-", "--output", "json"], "say one"),
    "check and since": (["--check", "{log}", "--since", "rlmm-plan-1.AAAA"], "--since"),
    "check of no plan": (["--check", "{log}"], "no frozen plan"),
    "file that is there": (["--save", "{log}"], "there already"),
    "token of nothing": (["--token", "{log}"], "no frozen plan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_export_when_flags_contradict_each_other_then_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command refuses contradicting flags in one line before it asks or makes anything."""
    forget_environment(monkeypatch, tmp_path)
    arguments, why = REFUSED[name]
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(100))
    flags = ["--embedded", str(tmp_path / "archive"), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(
        cli, ["tier", "export", *flags, *(one.replace("{log}", str(log)) for one in arguments)]
    )
    assert result.exit_code == 2, result.output
    assert why in result.stderr
    assert "Traceback" not in result.output
    assert sorted(one.name for one in tmp_path.iterdir()) == [log.name]
