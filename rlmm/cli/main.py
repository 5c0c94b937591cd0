"""
The command `rlmm`: its subcommands, and the one place where an error becomes an exit code.

Subcommands are named here and imported when they are used, so that `rlmm --version` stays quick
however many there are. Exit codes: 0 fine, 1 something was found, 2 wrong usage or configuration, 3
cannot connect, 4 not ready, 5 a part of the service failed, 6 a part would not end.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import click

from rlmm import __version__
from rlmm.errors import RlmmError

EXIT_FOUND = 1
"""
The command did its work and what it looked for was there: a failed scenario, a difference, damage.
"""
EXIT_USAGE = 2
"""The command or its configuration is wrong; nothing was started."""

SUBCOMMANDS = {
    "config": "rlmm.cli.config:config",
    "conformance": "rlmm.cli.conformance:conformance",
    "demo": "rlmm.cli.demo:demo",
    "serve": "rlmm.cli.serve:serve_command",
    "snapshot": "rlmm.cli.snapshot_write:snapshot",
    "tier": "rlmm.cli.tier:tier",
}
"""Name of each subcommand -> where its click command stands, as module:attribute."""


def error_line(error: RlmmError) -> str:
    """What a person is told of an error that ends a command: one line."""
    return f"rlmm: {error.code}: {' '.join(str(error).split())}"


class CommandGroup(click.Group):
    """The root group: finds subcommands when they are asked for, and is the boundary for errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All subcommands, by name."""
        return sorted({*super().list_commands(ctx), *SUBCOMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, imported now; none when there is no such name."""
        if cmd_name not in SUBCOMMANDS:
            return super().get_command(ctx, cmd_name)
        module_name, _, attribute = SUBCOMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module_name), attribute)
        assert isinstance(command, click.Command), SUBCOMMANDS[cmd_name]
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """
        Run the subcommand; whatever goes wrong on purpose leaves as one line and an exit code.
        """
        try:
            return super().invoke(ctx)
        except RlmmError as error:
            with suppress(OSError):  # nobody reads it: the exit code says it as well
                click.echo(error_line(error), err=True)
            ctx.exit(error.exit_code)
        except click.FileError as error:
            error.show()
            ctx.exit(EXIT_USAGE)  # click's own choice is 1, which here means: something was found


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Completion: eval "$(_RLMM_COMPLETE=bash_source rlmm)"',
)
@click.version_option(__version__, prog_name="rlmm", message="%(prog)s %(version)s")
def cli() -> None:
    """Hold and answer the metadata of Kafka's tiered storage."""


def main() -> None:
    """Entry point of the installed command and of `python -m rlmm`; never returns."""
    cli(prog_name="rlmm")
