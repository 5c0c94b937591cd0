"""What `rlmm demo` shows of the commands that look at the state: asked as an operator asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rlmm.cli.demo_commands import run_command, shown
from rlmm.views.values import iso_time

if TYPE_CHECKING:
    from pathlib import Path


def show_commands(socket: Path, since_ms: int, number: int) -> None:
    """
    Ask the service at *socket* by the commands themselves: how it stands, what it holds, why an
    offset is found, what happened, and what is different since *since_ms*.
    """
    click.echo(f"{number}. What an operator is shown, by the same socket\n")
    for words in (
        ["status"],
        ["segments", "list", "--topic", "payments", "--sort=-start", "--limit", "3"],
        ["explain", "payments-0@100"],
        ["history", "payments-0", "--last", "2"],
        ["diff", "--from", str(iso_time(since_ms)), "--topic", "orders|clicks", "--summary"],
    ):
        click.echo(f"$ rlmm {' '.join(_quoted(word) for word in words)}")
        for line in shown(run_command([*words, "--sidecar", str(socket)])):
            click.echo(line)
        click.echo()


def _quoted(word: str) -> str:
    return f"'{word}'" if "|" in word else word
