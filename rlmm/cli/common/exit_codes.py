"""Exit codes of commands, and the line on standard error for an error that ends one."""

from __future__ import annotations

import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from rlmm.base.visible_text import visible_block, visible_line

if TYPE_CHECKING:
    from rlmm.errors import RlmmError

EXIT_FOUND = 1
"""The command found what it looks for: a failed scenario, a difference, damage."""
EXIT_USAGE = 2
"""The command or its configuration is wrong; nothing was started."""
EXIT_INTERRUPTED = 130
"""The command was ended by Ctrl-C, as shells say it."""


def error_line(error: RlmmError) -> str:
    return f"rlmm: {error.code}: {visible_line(str(error))}"


def echo_traceback(error: RlmmError) -> None:
    """Print the traceback of *error*, for `--debug`."""
    with suppress(OSError):  # stderr may be closed; the exit code still reports the error
        click.echo(visible_block("".join(traceback.format_exception(error))), err=True, nl=False)
