"""Commands that `rlmm demo` runs as an operator would, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.cli.common.exit_codes import EXIT_FOUND
from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEADLINE_S: Final = 120.0
_ROWS_MAX: Final = 4


class CommandResult(NamedTuple):
    answer: str
    progress: str


def run_command(
    words: list[str], *, finds: bool = False, environ: Mapping[str, str] | None = None
) -> CommandResult:
    """Run `rlmm`; raises `EngineFailed` for an exit code other than 0, or 1 with *finds*."""
    command = [sys.executable, "-m", "rlmm", *words, "--output", "table"]
    if environ is None:
        environ = {name: text for name, text in os.environ.items() if not name.startswith("RLMM_")}
    done = subprocess.run(  # noqa: S603  # our own program
        command, capture_output=True, text=True, check=False, timeout=_DEADLINE_S, env=environ
    )
    if done.returncode != (EXIT_FOUND if finds else 0):
        told = (done.stderr.strip() or done.stdout.strip())[-2_000:]
        msg = f"rlmm {' '.join(words)} ended with status {done.returncode}: {told}"
        raise EngineFailed(msg)
    return CommandResult(done.stdout, done.stderr)


def shown(text: str) -> Iterator[str]:
    """Return the first rows of a long table, and every line below it."""
    lines = text.splitlines()
    blank = lines.index("") if "" in lines else len(lines)
    is_long = blank > 2 * _ROWS_MAX
    yield from lines[: 1 + _ROWS_MAX] if is_long else lines[:blank]
    if is_long:
        yield "..."
    yield from lines[blank:]
