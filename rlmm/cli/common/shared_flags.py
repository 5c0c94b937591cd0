"""
Flags that all queries share, and their environment variables: names only. They may precede the
command. Every flag is a variable as well: a shared one by its own name, `RLMM_SIDECAR`;
`RLMM_SEGMENTS_LIST_OUTPUT` applies to that command only and takes precedence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

PREFIX: Final = "RLMM_"

WITH_VALUE: Final = (
    "sidecar", "cluster", "token_file", "ca_file", "cert_file", "key_file", "bootstrap_server",
    "command_config", "command_property", "log_dirs", "partition_count", "snapshot_cache", "wait",
    "timeout", "at", "output",
)  # fmt: skip
ALONE: Final = ("tls", "plaintext_token", "wide", "no_headers", "quiet", "debug")


class SharedOption(click.Option):
    pass


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def shared_variable(name: str) -> str:
    return PREFIX + name.upper()


def command_prefix(command: str) -> str:
    """Return the prefix of variables that apply to *command* only."""
    return f"{PREFIX}{command.upper().replace('-', '_')}"


def name_variables(command: click.Command, prefix: str) -> None:
    """Give each flag of *command*, and of its subcommands, its variables."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None:
            flag = max(option.opts, key=len).removeprefix("--").replace("-", "_").upper()
            shared = [PREFIX + flag] if isinstance(option, SharedOption) else []
            option.envvar = [f"{prefix}_{flag}", *shared]
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            name_variables(below, f"{prefix}_{name.upper().replace('-', '_')}")


def is_of_commands(variable: str, commands: Collection[str]) -> bool:
    """Return whether *variable* names a flag: a shared one, or one of *commands*."""
    name = variable.removeprefix(PREFIX).lower()
    return variable.startswith(PREFIX) and (
        name in WITH_VALUE
        or name in ALONE
        or any(variable.startswith(f"{command_prefix(one)}_") for one in commands)
    )


def flags_behind(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Move shared flags behind the command. Other words before it, and `--debug`, stay."""
    taking = {flag_of(name) for name in WITH_VALUE}
    alone = {flag_of(name) for name in ALONE} - {"--debug"}
    before: list[str] = []
    moved: list[str] = []
    left = list(words)
    while left and left[0] not in commands:
        word = left.pop(0)
        if word in taking and left:
            moved += [word, left.pop(0)]
        elif word in alone or word.partition("=")[0] in taking:
            moved.append(word)
        else:
            before.append(word)
    if not left:
        return list(words)
    end = left.index("--") if "--" in left else len(left)
    return [*before, *left[:end], *moved, *left[end:]]
