"""
Loading of the configuration from all of its sources.

Flags override the environment, which overrides the TOML file, then a Java `client.properties`, then
a broker's `server.properties`, then the defaults. Every fault is one `ConfigError` that names the
key as it was written, its source, the allowed values and the value found.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlmm.config.building import ConfigurationBuilder
from rlmm.config.java_files import client_layer, server_layer
from rlmm.config.key_table import ENV_PREFIX, KEYS
from rlmm.config.layers import (
    CLUSTERS,
    CONFIG_VARIABLE,
    Layer,
    command_properties_layer,
    environment_layer,
    flags_layer,
    toml_layer,
)
from rlmm.config.merging import merged
from rlmm.config.process import LogKind
from rlmm.config.sections import KIND_OF_SECTION
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlmm.config.key_table import Key
    from rlmm.config.sections import Config


DEFAULT = "default"
FOLLOWS = "follows from the section kafka"
"""Source of a kind of log that follows from other keys."""

_JAVA_FILES = {"kafka_command_config": client_layer, "kafka_server_properties": server_layer}


@dataclass(frozen=True, slots=True)
class ConfigurationValue:
    key: Key
    value: object
    source: str
    cluster: str | None = None

    @property
    def path(self) -> str:
        return self.key.path if self.cluster is None else _written(self.cluster, self.key.path)


@dataclass(frozen=True, slots=True)
class LoadedConfiguration:
    config: Config
    """With clusters, only the settings of the process mean anything."""
    settings: tuple[ConfigurationValue, ...]
    notices: tuple[str, ...]
    clusters: Mapping[str, Config] = field(default_factory=dict)
    """The whole configuration of each cluster, by name; empty where no table names any."""


def load(
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    command_properties: tuple[str, ...] = (),
) -> LoadedConfiguration:
    """
    Read, merge and check all sources; *flags* are texts by key, *file* is the TOML file.

    `RLMM_CONFIG` names *file* where it is absent. The default is an embedded log in the working
    directory.
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
) -> LoadedConfiguration:
    if file is None and environ.get(CONFIG_VARIABLE):
        file = Path(environ[CONFIG_VARIABLE])
    said = [flags_layer(flags), command_properties_layer(command_properties)]
    written = Layer() if file is None else toml_layer(file)
    variables = environment_layer(environ, written.clusters)
    common = [*said, variables, written]
    if not written.clusters:
        return _resolved(common)
    merged(common)  # what is no value at all is told as the common one that it is
    process = _resolved(of_the_process(common))
    settings = [found for found in process.settings if not found.key.is_of_cluster]
    notices: list[str] = []
    clusters = {}
    used = of_the_process(common)
    for name, table in written.clusters.items():
        own = [variables.clusters.get(name, Layer()), table]
        try:
            loaded, taken = _cluster(name, own, common)
        except ConfigError as error:
            if str(error).startswith((_written(name, ""), ENV_PREFIX)):
                raise
            msg = f"{CLUSTERS}.{name}: {error}"
            raise ConfigError(msg) from error
        used += taken
        clusters[name] = loaded.config
        settings += loaded.settings
        notices += loaded.notices
    require_used(common, used)
    return LoadedConfiguration(
        process.config, tuple(settings), tuple(dict.fromkeys(notices)), clusters
    )


def _cluster(
    name: str, own: list[Layer], common: Sequence[Layer]
) -> tuple[LoadedConfiguration, list[Layer]]:
    own, notices = _with_java_files(own)
    said, _ = merged(own)
    taken = inherited(common, own, said)
    loaded = _resolved(without(taken, _JAVA_FILES.keys() & said), above=own)
    settings = []
    for found in loaded.settings:
        if found.key.is_of_cluster:
            where = f" [{CLUSTERS}.{name}]" if found.key.name in said else ""
            settings.append(replace(found, source=f"{found.source}{where}", cluster=name))
    return replace(loaded, settings=tuple(settings), notices=(*notices, *loaded.notices)), taken


def _written(cluster: str, path: str) -> str:
    return f"{CLUSTERS}.{cluster}.{path}"


def _resolved(layers: Sequence[Layer], above: Sequence[Layer] = ()) -> LoadedConfiguration:
    """Return the configuration of *above*, then *layers*, then the Java files that they name."""
    layers, notices = _with_java_files(layers)
    building = ConfigurationBuilder(*merged([*above, *layers]))
    config = building.config()
    sources = {name: given.source for name, given in building.given.items()}
    if config.kafka is not None:
        sources.setdefault("log_kind", FOLLOWS)
    return LoadedConfiguration(config, tuple(_settings(config, sources)), notices)


def _with_java_files(layers: Sequence[Layer]) -> tuple[list[Layer], tuple[str, ...]]:
    """Return the layers with their Java files below them, and notices of unused keys."""
    named, _ = merged(layers)
    found, notices = list(layers), []
    for name, read in _JAVA_FILES.items():
        if name in named:
            layer = read(named[name])
            found.append(layer)
            if layer.unused:
                unused = f"{len(layer.unused)} of its keys have no equivalent and are not used"
                notices.append(f"{named[name]}: {unused}: {', '.join(layer.unused)}")
    return found, tuple(notices)


def _one_line(message: str) -> str:
    """Return the message as one printable line; keys and paths may contain any character."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in message)


def _settings(config: Config, sources: Mapping[str, str]) -> list[ConfigurationValue]:
    found = []
    for name, key in KEYS.items():
        if KIND_OF_SECTION.get(key.section, config.log.kind) is not config.log.kind:
            continue
        value: Any = getattr(config, key.section)
        for part in key.field:
            value = getattr(value, part)
        found.append(ConfigurationValue(key, value, sources.get(name, DEFAULT)))
    return found


_KIND = "log_kind"
_COUNT = "log_num_partitions"


def of_the_process(layers: Iterable[Layer]) -> list[Layer]:
    return [_of(layer, lambda key: not key.is_of_cluster) for layer in layers]


def inherited(
    common: Iterable[Layer], own: Sequence[Layer], said: Mapping[str, object]
) -> list[Layer]:
    """Return the *common* settings of a cluster with layers *own* and their typed values *said*."""
    kinds = _kinds(own, said)
    if not kinds:
        return list(common)

    def is_for_it(key: Key) -> bool:
        if key.name == _COUNT:
            return kinds != {LogKind.KAFKA}
        return key.name != _KIND and KIND_OF_SECTION.get(key.section) in {None, *kinds}

    return [_of(layer, is_for_it) for layer in common]


def without(layers: Iterable[Layer], names: Iterable[str]) -> list[Layer]:
    left_out = set(names)
    return [_of(layer, lambda key: key.name not in left_out) for layer in layers]


def require_used(common: Iterable[Layer], used: Iterable[Layer]) -> None:
    """Refuse a key of the *common* layers that no cluster has inherited."""
    names = {name for layer in used for name in layer.values} | {_KIND}
    for layer in common:
        for name, found in layer.values.items():
            if name not in names:
                msg = f"{found} is for none of the clusters: each follows another kind of log"
                raise ConfigError(msg)


def _kinds(own: Iterable[Layer], said: Mapping[str, object]) -> set[LogKind]:
    kind = said.get(_KIND)
    if isinstance(kind, LogKind):
        return {kind}
    sections = {KEYS[name].section for layer in own for name in layer.values}
    return {KIND_OF_SECTION[section] for section in sections if section in KIND_OF_SECTION}


def _of(layer: Layer, is_wanted: Callable[[Key], bool]) -> Layer:
    values = {name: found for name, found in layer.values.items() if is_wanted(KEYS[name])}
    return replace(layer, values=values)
