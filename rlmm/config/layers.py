"""
Where values stand: flags, environment, the TOML file. Each source becomes one layer of values.

A layer keeps for every value how its key was written and where, so that whatever is wrong with it
is told in the user's own words. Reads the TOML file and nothing else.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.config.kafka_names import CLIENT_ALIASES, Given, client_values
from rlmm.config.keys import ENV_PREFIX, KEYS, name_of, nearest
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""Names the TOML file, where `--config` does not."""
ENVIRONMENT = "environment"
FLAG = "flag"

_KAFKA = "kafka_"
_KUBERNETES = re.compile(
    rf"{ENV_PREFIX}(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
"""Variables that Kubernetes sets for every service of a name that begins with ours."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The values of one source, by the name of their key."""

    values: dict[str, Given] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    """Keys of a Java file that have no equivalent, as they are written there."""


def flags_layer(flags: Mapping[str, str]) -> Layer:
    """The texts of flags, by the names of their keys."""
    return Layer({name: Given(text, KEYS[name].flag, FLAG) for name, text in flags.items()})


def command_properties_layer(assignments: tuple[str, ...]) -> Layer:
    """Single properties of a Java client given by flag, as `KEY=VALUE`."""
    given = {}
    for assignment in assignments:
        key, assigned, value = assignment.partition("=")
        if not assigned:
            msg = f"--command-property ({FLAG}) must be KEY=VALUE, got {key!r}"
            raise ConfigError(msg)
        given[key.strip()] = Given(value, f"--command-property {key.strip()}", FLAG)
    values, unknown = client_values(given)
    if unknown:
        msg = f"{unknown[0]} ({FLAG}) has no equivalent here"
        raise ConfigError(msg)
    return Layer(values)


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """The variables that begin with our prefix; one that means nothing is refused."""
    given = {}
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        name = variable.removeprefix(ENV_PREFIX).lower()
        if not _is_known(name) and _KUBERNETES.fullmatch(variable):
            continue
        given[name] = Given(text, variable, ENVIRONMENT)
    return _layer(given, [key.env for key in KEYS.values()])


def toml_layer(path: Path) -> Layer:
    """The configuration file; tables and dots are one and the same in it."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"the configuration file {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"the configuration file {path} is no TOML: {error}"
        raise ConfigError(msg) from error
    given: dict[str, Given] = {}
    for spelled, value in _flat(document):
        name = name_of(spelled)
        if name in given:
            msg = f"{spelled} ({path}) is given twice, also as {given[name].written}"
            raise ConfigError(msg)
        given[name] = Given(value, spelled, str(path))
    return _layer(given, [key.path for key in KEYS.values()])


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its whole path."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_known(name: str) -> bool:
    return name in KEYS or name.removeprefix(_KAFKA) in CLIENT_ALIASES


def _layer(given: dict[str, Given], spellings: list[str]) -> Layer:
    """A layer of what is known; what is not is refused with the nearest thing that is."""
    values = {name: found for name, found in given.items() if name in KEYS}
    of_kafka = {}
    for name, found in given.items():
        if name in values:
            continue
        alias = name.removeprefix(_KAFKA)
        if not name.startswith(_KAFKA) or alias not in CLIENT_ALIASES:
            msg = f"{found} is not a key{nearest(found.written, spellings)}"
            raise ConfigError(msg)
        of_kafka[CLIENT_ALIASES[alias]] = found
    translated, _ = client_values(of_kafka)
    return Layer({**translated, **values})
