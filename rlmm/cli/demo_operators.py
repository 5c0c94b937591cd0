"""What `rlmm demo` shows of the commands that look at the state: asked as an operator asks them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click

from rlmm.errors import EngineFailed
from rlmm.views.values import iso_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEADLINE_S = 60.0
_ROWS_MAX = 4
"""Of a table with a line for each metadata partition, most of which are empty."""


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
        for line in _shortened(_answer(words, socket).splitlines()):
            click.echo(line)
        click.echo()


def _answer(words: list[str], socket: Path) -> str:
    command = [sys.executable, "-m", "rlmm", *words, "--sidecar", str(socket), "--output", "table"]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("RLMM_")}
    done = subprocess.run(  # noqa: S603  # our own program
        command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S, env=environ
    )
    if done.returncode != 0:
        msg = f"rlmm {' '.join(words)} ended with status {done.returncode}: {done.stderr.strip()}"
        raise EngineFailed(msg)
    return done.stdout


def _shortened(lines: list[str]) -> Iterator[str]:
    """The first rows, and whatever is said below them; all where it is little more than that."""
    blank = lines.index("") if "" in lines else len(lines)
    is_long = blank > 2 * _ROWS_MAX
    yield from lines[: 1 + _ROWS_MAX] if is_long else lines[:blank]
    if is_long:
        yield "..."
    yield from lines[blank:]


def _quoted(word: str) -> str:
    return f"'{word}'" if "|" in word else word
