"""
The command `rlmm`: its subcommands, and the one place where an error becomes an exit code.

Subcommands are named here and imported when they are used, so that `rlmm --version` stays quick
however many there are. Exit codes: 0 fine, 1 something was found, 2 wrong usage or configuration, 3
cannot connect, 4 not ready, 5 a part of the service failed, 6 a part would not end.
"""

from __future__ import annotations

import importlib
import traceback
from contextlib import suppress
from typing import Any

import click

from rlmm import __version__
from rlmm.cli.shared_flags import command_prefix, flags_behind, name_variables
from rlmm.errors import RlmmError

EXIT_FOUND = 1
"""
The command did its work and what it looked for was there: a failed scenario, a difference, damage.
"""
EXIT_USAGE = 2
"""The command or its configuration is wrong; nothing was started."""
EXIT_INTERRUPTED = 130
"""The command was ended by Ctrl-C, as shells say it."""

SUBCOMMANDS = {
    "check": "rlmm.cli.check:check",
    "config": "rlmm.cli.config:config",
    "conformance": "rlmm.cli.conformance:conformance",
    "demo": "rlmm.cli.demo.command:demo",
    "diff": "rlmm.cli.diff:diff",
    "doctor": "rlmm.cli.doctor:doctor",
    "events": "rlmm.cli.events:events",
    "explain": "rlmm.cli.explain:explain",
    "history": "rlmm.cli.history:history",
    "lag": "rlmm.cli.lag:lag",
    "offsets": "rlmm.cli.lag:offsets",
    "preflight": "rlmm.cli.preflight:preflight",
    "rehearse-compaction": "rlmm.cli.rehearse_compaction:rehearse_compaction",
    "segments": "rlmm.cli.segments:segments",
    "serve": "rlmm.cli.serve:serve_command",
    "snapshot": "rlmm.cli.snapshot.write:snapshot",
    "status": "rlmm.cli.status:status",
    "stuck": "rlmm.cli.stuck:stuck",
    "support-bundle": "rlmm.cli.support_bundle:support_bundle",
    "tier": "rlmm.cli.tier.command:tier",
    "usage": "rlmm.cli.usage:usage",
    "verify": "rlmm.cli.verify:verify",
}
"""Name of each subcommand -> where its click command stands, as module:attribute."""
SHORT_HELP = {
    "check": "Judge thresholds once: exit code 0 when all is well, 1 when not.",
    "config": "Look at the configuration.",
    "conformance": "Compare an implementation with Kafka's recorded answers.",
    "demo": "Tell one story in nine screens: a broker, copies by Spark, a kill, a disaster.",
    "diff": "Show what differs between two moments: segments, how far was copied, deletions.",
    "doctor": "Examine the settings of the metadata topic, brokers and topics.",
    "events": "Show the events of the metadata topic, decoded, and what became of each.",
    "explain": "Explain why an offset is found in the tier, or is not, and what becomes of it.",
    "history": "Show every event about a segment or a user partition, and what became of it.",
    "lag": "Show how far copies are behind, and when disks are full.",
    "offsets": "Show where each log and its tier begin and end.",
    "preflight": "Show what depends on the tier, before a move or a deletion.",
    "rehearse-compaction": "Play the log cleaner through, before anyone turns compaction on.",
    "segments": "List segments, describe one, find the one that holds an offset.",
    "serve": "Follow a metadata log, answer from it and take writes, until SIGTERM or SIGINT.",
    "snapshot": "Look at snapshots, check them, copy them out and in.",
    "status": "Show how each metadata partition stands, and sums.",
    "stuck": "Show copies and deletions that are open for too long.",
    "support-bundle": "Pack what somebody who helps needs to see.",
    "tier": "Copy cold segments to a store of objects, and look after what is there.",
    "usage": "Sum up bytes and segments, waste, what goes soon, and cost.",
    "verify": "Look for holes, overlaps and what nobody would find.",
}
"""
The line that help has of each, as the command itself says it: a list of commands imports none. A
command that has no line here is asked for it.
"""
WITH_OWN_VARIABLES = frozenset({"config", "conformance", "demo", "serve", "snapshot", "tier"})
"""Those that say themselves which variables of the environment they take, or take none."""
COMMANDS_OF_VARIABLES = (SUBCOMMANDS.keys() - WITH_OWN_VARIABLES) | {"tier"}
"""Whose flags are variables of the environment that a configuration does not mean."""


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
        if cmd_name not in WITH_OWN_VARIABLES:
            name_variables(command, command_prefix(cmd_name))
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Flags that commands share are taken before the command as well."""
        return super().parse_args(ctx, flags_behind(args, SUBCOMMANDS))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing what says its line here."""
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
        """
        Run the subcommand; whatever goes wrong on purpose leaves as one line and an exit code.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)
        except RlmmError as error:
            if ctx.params.get("is_debug"):
                traceback.print_exception(error)
            with suppress(OSError):  # nobody reads it: the exit code says it as well
                click.echo(error_line(error), err=True)
            ctx.exit(error.exit_code)
        except click.FileError as error:
            error.show()
            ctx.exit(EXIT_USAGE)  # click's own choice is 1, which here means: something was found


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Completion: eval "$(_RLMM_COMPLETE=bash_source rlmm)" in .bashrc, zsh_source in '
    ".zshrc; _RLMM_COMPLETE=fish_source rlmm | source in fish. Flags of commands that look at the "
    "state are variables, too: RLMM_OUTPUT=json, RLMM_SEGMENTS_LIST_SORT=size.",
)
@click.version_option(__version__, prog_name="rlmm", message="%(prog)s %(version)s")
@click.option(
    "--debug", "is_debug", is_flag=True, envvar="RLMM_DEBUG", help="Show where an error comes from."
)
def cli(*, is_debug: bool) -> None:
    """Hold and answer the metadata of Kafka's tiered storage."""


def main() -> None:
    """Entry point of the installed command and of `python -m rlmm`; never returns."""
    cli(prog_name="rlmm")
