"""
The configuration of a process, from everywhere it may stand.

Flags are above the environment, that is above the TOML file, that is above a Java
`client.properties`, that is above a broker's `server.properties`; the sections' defaults are below
all. Files are read, no network is touched, and whatever is wrong is one `ConfigError` that names
the key as it was written, its source, what is allowed and what was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.config.building import Building
from rlmm.config.java_files import client_layer, server_layer
from rlmm.config.keys import KEYS
from rlmm.config.layers import (
    CONFIG_VARIABLE,
    command_properties_layer,
    environment_layer,
    flags_layer,
    toml_layer,
)
from rlmm.config.merging import merged
from rlmm.config.sections import KIND_OF_SECTION
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlmm.config.keys import Key
    from rlmm.config.sections import Config

DEFAULT = "default"
"""Source of what nobody set."""
FOLLOWS = "follows from the section kafka"
"""Source of a kind of log that was not said."""

_JAVA_FILES = {"kafka_command_config": client_layer, "kafka_server_properties": server_layer}


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of one key that counts here, and where it comes from."""

    key: Key
    value: object
    source: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration, where each value comes from, and what should be told once."""

    config: Config
    settings: tuple[Setting, ...]
    notices: tuple[str, ...]


def load(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    command_properties: tuple[str, ...] = (),
) -> Loaded:
    """
    Read, merge and check everything. *flags* are texts by the names of their keys; *file* is the
    TOML file, and `RLMM_CONFIG` names it where that is None.

    Nothing given at all is a configuration too: an embedded log below the current folder.
    """
    try:
        return _load(flags or {}, environ or {}, file, command_properties)
    except ConfigError as error:
        line = _one_line(str(error))
        if line == str(error):
            raise
        raise ConfigError(line) from error


def _load(
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    file: Path | None,
    command_properties: tuple[str, ...],
) -> Loaded:
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    layers = [
        flags_layer(flags),
        command_properties_layer(command_properties),
        environment_layer(environ),
    ]
    if file is not None:
        layers.append(toml_layer(file))
    notices = []
    named, _ = merged(layers)
    for name, read in _JAVA_FILES.items():
        if name in named:
            layer = read(named[name])
            layers.append(layer)
            if layer.unused:
                notices.append(_unused(named[name], layer.unused))
    building = Building(*merged(layers))
    config = building.config()
    sources = {name: given.source for name, given in building.given.items()}
    if config.kafka is not None:
        sources.setdefault("log_kind", FOLLOWS)
    return Loaded(config, tuple(_settings(config, sources)), tuple(notices))


def _one_line(message: str) -> str:
    """A message whose keys and paths may hold anything, as one line that can be printed."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in message)


def _unused(path: Path, keys: tuple[str, ...]) -> str:
    return f"{path}: {len(keys)} of its keys have no equivalent and are not used: {', '.join(keys)}"


def _settings(config: Config, sources: Mapping[str, str]) -> list[Setting]:
    """Every key that counts with this kind of log; the sections of other kinds are left out."""
    found = []
    for name, key in KEYS.items():
        if KIND_OF_SECTION.get(key.section, config.log.kind) is not config.log.kind:
            continue
        value: Any = getattr(config, key.section)
        for part in key.field:
            value = getattr(value, part)
        found.append(Setting(key, value, sources.get(name, DEFAULT)))
    return found
