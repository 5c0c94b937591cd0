"""Options of commands that load a configuration, and `rlmm config`."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlmm.base.secret import Secret
from rlmm.base.visible_text import visible_line
from rlmm.cli.common.commands import COMMANDS_OF_VARIABLES
from rlmm.cli.common.option_kinds import EVERY_USER, attach, no_secret_properties
from rlmm.cli.common.output import OUTPUTS, print_table
from rlmm.cli.common.shared_flags import is_of_commands
from rlmm.config.key_table import KEYS
from rlmm.config.loading import load
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.config.key_table import Key
    from rlmm.config.loading import LoadedConfiguration

_PARAMETER = "setting_"
_HELP = {
    "data_dir": "Folder of the embedded log and of the snapshots.",
    "mode": "Accept writes (serve), or only read (observer).",
    "assignment": "User partitions that the service answers for.",
    "engine": "What holds the state: the native core, or Python.",
    "log_kind": "Kind of the metadata log.",
    "kafka_bootstrap_servers": "Brokers of the cluster whose metadata topic is read.",
    "kafka_command_config": "client.properties of a Java client.",
    "kafka_server_properties": "server.properties of a broker.",
    "logging_format": "Format of log lines.",
    "logging_level": "Minimum level of log lines.",
}
"""Help of the flags that --help shows. A list of all keys would be too long to read."""
_FILES = (
    click.option(
        "--config", "config_file", type=click.Path(path_type=Path), metavar="FILE",
        help="Configuration file in TOML. The default is the file that RLMM_CONFIG names.",
    ),
    click.option(
        "--command-property", "command_properties", multiple=True, metavar="KEY=VALUE",
        callback=no_secret_properties,
        help="A property of a Java client. Repeatable.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConfigurationSources:
    flags: Mapping[str, str]
    environ: Mapping[str, str]
    file: Path | None
    command_properties: tuple[str, ...]

    def load(self) -> LoadedConfiguration:
        """Load the configuration as it is now; see `rlmm.config.loading.load`."""
        return load(self.flags, self.environ, self.file, self.command_properties)

    def said(self, name: str) -> str | None:
        """Return the unchecked value of a key from its flag, else from the environment."""
        return self.flags.get(name) or self.environ.get(KEYS[name].env)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """
    Add a flag for every key but secrets; *command* receives `configuration`, a
    `LoadedConfiguration`.
    """

    @functools.wraps(command)
    def configured(*, sources: ConfigurationSources, **parameters: Any) -> Any:
        configuration = sources.load()
        for notice in configuration.notices:
            click.echo(f"rlmm: {visible_line(notice)}", err=True)
        return command(configuration=configuration, **parameters)

    return source_options(configured)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """
    Add a flag for every key but secrets; *command* receives `sources` and loads the configuration
    itself.
    """

    @functools.wraps(command)
    def configured(
        *, config_file: Path | None, command_properties: tuple[str, ...], **parameters: Any
    ) -> Any:
        flags = {
            name.removeprefix(_PARAMETER): parameters.pop(name)
            for name in list(parameters)
            if name.startswith(_PARAMETER)
        }
        given = {name: text for name, text in flags.items() if text is not None}
        environ = {
            name: text
            for name, text in os.environ.items()
            if not is_of_commands(name, COMMANDS_OF_VARIABLES)
        }
        sources = ConfigurationSources(given, environ, config_file, command_properties)
        return command(sources=sources, **parameters)

    decorated: Callable[..., Any] = attach([*_FILES, *map(_option, KEYS.values())])(configured)
    return decorated


def _option(key: Key) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    kind = key.kind
    is_choice = isinstance(kind, type) and issubclass(kind, StrEnum)
    words = {Path: "PATH", int: "NUMBER", float: "NUMBER", bool: "true|false"}
    return click.option(
        key.flag,
        f"{_PARAMETER}{key.name}",
        metavar="|".join(kind) if is_choice else words.get(kind, "TEXT"),
        hidden=key.name not in _HELP,
        help=_HELP.get(key.name),
        callback=_no_secret(key) if key.is_secret else None,
    )


def _no_secret(key: Key) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def refuse(_: click.Context, __: click.Parameter, given: str | None) -> None:
        if given is not None:
            msg = f"{key.flag}: {EVERY_USER}; set {key.env}, or {key.path} in a private file"
            beside = KEYS.get(f"{key.name}_file")
            raise ConfigError(msg if beside is None else f"{msg}, or {beside.path}")

    return refuse


@click.group()
def config() -> None:
    """Show the configuration."""


@config.command(
    "show",
    epilog="Every key of docs/configuration.md but secrets is a flag as well: "
    "--files-segment-bytes 64MiB.",
)
@config_options
@click.option("--output", type=click.Choice(OUTPUTS), default="table", show_default=True)
def show_command(*, configuration: LoadedConfiguration, output: str) -> None:
    """
    Show the effective configuration and the source of each value.

    Flags override the environment, then the file, then Java files, then the defaults. Secrets are
    masked. The command starts nothing and uses no network.
    """
    if output == "json":
        document = {
            "settings": [
                {"key": found.path, "value": plain(found.value), "source": found.source}
                for found in configuration.settings
            ],
            "notices": list(configuration.notices),
        }
        click.echo(json.dumps(document, indent=2))
        return
    print_table(
        "configuration",
        ("key", "value", "source"),
        [(found.path, text(found.value), found.source) for found in configuration.settings],
    )


def plain(value: object) -> object:
    """Return a value as JSON; a secret is masked, whether it is set or not."""
    if isinstance(value, Secret):
        return repr(value)
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path | StrEnum) else value


def text(value: object) -> str:
    """Return a value as it is written on a command line; empty if unset."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)
