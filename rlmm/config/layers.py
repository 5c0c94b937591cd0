"""
Layers of the configuration: flags, environment and TOML file, and one per source and cluster.

A layer keeps the spelling and the source of every key, so that messages use the user's words.
"""

from __future__ import annotations

import errno
import os
import re
import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlmm.base.private_files import require_private
from rlmm.config.kafka_names import CLIENT_ALIASES, KafkaSetting, client_values
from rlmm.config.key_table import ENV_PREFIX, KEYS, name_of, nearest
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

CONFIG_VARIABLE = f"{ENV_PREFIX}CONFIG"
"""Names the TOML file, where `--config` does not."""
ENVIRONMENT = "environment"
FLAG = "flag"

FILE_BYTES_MAX = 1 << 20
"""No configuration is longer; a device that never ends is."""

CLUSTERS = "clusters"

_KAFKA = "kafka_"
_CLUSTER_VARIABLES = f"{ENV_PREFIX}{CLUSTERS.upper()}_"
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_KUBERNETES = re.compile(
    rf"{ENV_PREFIX}(?:\w+_)?(?:SERVICE_(?:HOST|PORT(?:_\w+)?)"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
"""Variables that Kubernetes sets for every service of a name that begins with ours."""


@dataclass(frozen=True, slots=True)
class Layer:
    values: dict[str, KafkaSetting] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    """Keys of a Java file that have no equivalent, as they are written there."""
    clusters: Mapping[str, Layer] = field(default_factory=dict)
    """Layers of single clusters, by name."""


def flags_layer(flags: Mapping[str, str]) -> Layer:
    return Layer({name: KafkaSetting(text, KEYS[name].flag, FLAG) for name, text in flags.items()})


def command_properties_layer(assignments: tuple[str, ...]) -> Layer:
    given = {}
    for assignment in assignments:
        key, assigned, value = assignment.partition("=")
        if not assigned:
            msg = f"--command-property ({FLAG}) must be KEY=VALUE, got {key!r}"
            raise ConfigError(msg)
        given[key.strip()] = KafkaSetting(value, f"--command-property {key.strip()}", FLAG)
    values, unknown = client_values(given)
    if unknown:
        msg = f"{unknown[0]} ({FLAG}) has no equivalent here"
        raise ConfigError(msg)
    return Layer(values)


def environment_layer(environ: Mapping[str, str], clusters: Iterable[str] = ()) -> Layer:
    """
    Return the variables with our prefix; an unknown variable is refused.

    Variables of one of *clusters* have its name before the key, as `RLMM_CLUSTERS_PROD_MODE`.
    """
    given = {}
    names = {f"{_CLUSTER_VARIABLES}{name_of(name).upper()}_": name for name in clusters}
    of_clusters: dict[str, dict[str, KafkaSetting]] = {}
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        prefix = _prefix_of(variable, names)
        if prefix:
            name = variable.removeprefix(prefix).lower()
            of_clusters.setdefault(prefix, {})[name] = KafkaSetting(text, variable, ENVIRONMENT)
            continue
        name = variable.removeprefix(ENV_PREFIX).lower()
        if not _is_known(name) and _KUBERNETES.fullmatch(variable):
            continue
        given[name] = KafkaSetting(text, variable, ENVIRONMENT)
    own = {
        names[prefix]: _cluster_layer(
            values, [prefix + key.name.upper() for key in KEYS.values()], names[prefix]
        )
        for prefix, values in of_clusters.items()
    }
    return replace(_layer(given, [key.env for key in KEYS.values()]), clusters=own)


def _prefix_of(variable: str, prefixes: Iterable[str]) -> str:
    """
    Return the prefix of a cluster's variable; empty for other variables.

    Of two prefixes the one whose rest is a key counts; the longer one if neither rest is a key.
    """
    fitting = sorted(filter(variable.startswith, prefixes), key=len)
    known = [prefix for prefix in fitting if _is_known(variable.removeprefix(prefix).lower())]
    return (known or fitting or [""])[-1]


def toml_layer(path: Path) -> Layer:
    """Read the TOML file; one with secrets must be private."""
    try:
        layer = _toml_layer(path)
    except OSError as error:
        msg = f"the configuration file {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    except (ValueError, RecursionError) as error:
        # Beside what the parser objects to: numbers of thousands of digits, too deep tables.
        msg = f"the configuration file {path} is no TOML: {error}"
        raise ConfigError(msg) from error
    names = [name for one in (layer, *layer.clusters.values()) for name in one.values]
    if any(KEYS[name].is_secret for name in names):
        require_private(path, "the configuration file")
    return layer


def file_bytes(path: Path) -> bytes:
    """
    Return the content of a configuration file; raises `OSError` also if it is too long. A command
    takes a pipe, so that a shell may give it what another program prints.
    """
    with path.open("rb") as file:
        found = file.read(FILE_BYTES_MAX + 1)
    if len(found) > FILE_BYTES_MAX:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return found


def _toml_layer(path: Path) -> Layer:
    document = tomllib.loads(file_bytes(path).decode("utf-8"))
    clusters = document.pop(CLUSTERS, None)
    common = _layer(_table(document, path), [key.path for key in KEYS.values()])
    return common if clusters is None else replace(common, clusters=_clusters(clusters, path))


def _clusters(clusters: object, path: Path) -> dict[str, Layer]:
    if not isinstance(clusters, dict) or not clusters:
        msg = f"{CLUSTERS} ({path}) must be tables, one for each cluster: [{CLUSTERS}.NAME]"
        raise ConfigError(msg)
    found: dict[str, Layer] = {}
    alike: dict[str, str] = {}
    for name, table in clusters.items():
        if not _CLUSTER_NAME.fullmatch(name):
            msg = (
                f"{CLUSTERS}.{name} ({path}) must have a name of at most 100 letters, digits, '.', "
                f"'_' and '-' that begins with a letter or a digit, got {name[:200]!r}"
            )
            raise ConfigError(msg)
        if not isinstance(table, dict):
            msg = f"{CLUSTERS}.{name} ({path}) must be a table, got {type(table).__name__}"
            raise ConfigError(msg)
        other = alike.setdefault(name_of(name), name)
        if other != name:
            msg = (
                f"{CLUSTERS}.{name} ({path}) must differ from {CLUSTERS}.{other} by more than "
                "capitals, dots, dashes and underscores"
            )
            raise ConfigError(msg)
        prefix = f"{CLUSTERS}.{name}."
        spellings = [prefix + key.path for key in KEYS.values()]
        found[name] = _cluster_layer(_table(table, path, prefix), spellings, name)
    return found


def _table(table: Mapping[str, Any], path: Path, prefix: str = "") -> dict[str, KafkaSetting]:
    given: dict[str, KafkaSetting] = {}
    for spelled, value in _flat(table):
        name, written = name_of(spelled), f"{prefix}{spelled}"
        if name in given:
            msg = f"{written} ({path}) is given twice, also as {given[name].written}"
            raise ConfigError(msg)
        try:
            repr(value)
        except (ValueError, RecursionError) as error:
            msg = f"{written} ({path}) cannot be meant: {error}"
            raise ConfigError(msg) from error
        given[name] = KafkaSetting(value, written, str(path))
    return given


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _is_known(name: str) -> bool:
    return name in KEYS or name.removeprefix(_KAFKA) in CLIENT_ALIASES


def _cluster_layer(given: dict[str, KafkaSetting], spellings: list[str], cluster: str) -> Layer:
    """Return the layer of one cluster; a key of the whole process is refused."""
    layer = _layer(given, spellings)
    for name, found in layer.values.items():
        key = KEYS[name]
        if not key.is_of_cluster:
            msg = (
                f"{found} cannot be set for {cluster} alone: {key.path} belongs to the process, "
                "set it outside of the clusters"
            )
            raise ConfigError(msg)
    return layer


def _layer(given: dict[str, KafkaSetting], spellings: list[str]) -> Layer:
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
