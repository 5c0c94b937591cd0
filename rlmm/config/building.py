"""
Building of sections from typed values; a refusal names the key as the user wrote it. Pure.

A key is to blame if the section does not fail in the same way without it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rlmm.config.key_table import KEYS, name_of
from rlmm.config.process import AssignmentKind, LogKind, ServiceMode
from rlmm.config.sections import KIND_OF_SECTION, Config
from rlmm.errors import ConfigError
from rlmm.kafka_client.security.oauth_tokens import FileTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlmm.config.kafka_names import KafkaSetting
    from rlmm.config.key_table import Key

_SERVERS = "kafka_bootstrap_servers"
_LEARNED = "sidecar_clusters_max"
_NOBODY = "localhost:1"
"""Stands in for the servers while they are left out; never asked."""
_LOOKS_LEAST = 3
"""Least looks at partitions in the heartbeat's time: two in a row may be late."""
_LEADING_KEY = re.compile(r"([\w.]+)(?= must )", re.ASCII)


@dataclass(frozen=True, slots=True)
class ConfigurationBuilder:
    values: Mapping[str, Any]
    given: Mapping[str, KafkaSetting]

    def config(self) -> Config:
        """Build and cross-check every section; raises `ConfigError` for the first fault."""
        kind = self._kind()
        mode = self.values.get("mode")
        if mode is None:
            mode = ServiceMode.OBSERVER if kind is LogKind.KAFKA else ServiceMode.SERVE
        derived: dict[str, dict[tuple[str, ...], Any]] = {
            "process": {("mode",): mode},
            "log": {("kind",): kind},
            "kafka": {("is_observer",): mode is ServiceMode.OBSERVER},
        }
        if _SERVERS not in self.values:
            derived["kafka"]["bootstrap_servers",] = ()
            derived["kafka"]["is_learned",] = True
        tokens = self._tokens()
        if tokens is not None:
            derived["kafka"]["security", "token_provider"] = tokens
        sections: dict[str, Any] = {}
        for section in fields(Config):
            name = section.name
            if name == "kafka" and kind is not LogKind.KAFKA:
                sections[name] = None
                continue
            sections[name] = self._section(name, derived.get(name, {}))
        config = Config(**sections)
        self._require_together(config)
        return config

    def _kind(self) -> LogKind:
        """Return `log.kind`, else Kafka if one of its keys is set; two kinds are refused."""
        found: dict[LogKind, KafkaSetting] = {}
        for name in KEYS.keys() & self.values.keys():
            of_kind = KIND_OF_SECTION.get(KEYS[name].section)
            if of_kind is not None and (of_kind not in found or name == _SERVERS):
                found[of_kind] = self.given[name]
        said = self.values.get("log_kind")
        kind: LogKind = said or (LogKind.KAFKA if LogKind.KAFKA in found else LogKind.FILES)
        other = next((given for of_kind, given in found.items() if of_kind is not kind), None)
        if other is not None:
            why = self.given["log_kind"] if said else found[kind]
            msg = f"{other} is of another log than the one of {why}, {kind}: set only one of them"
            raise ConfigError(msg)
        may_learn = _LEARNED in self.values
        if kind is LogKind.KAFKA and _SERVERS not in self.values and not may_learn:
            why = self.given["log_kind"] if said else found[kind]
            msg = (
                f"kafka.bootstrap.servers must be set, because of {why}; or sidecar.clusters_max, "
                "so that a broker may tell them"
            )
            raise ConfigError(msg)
        return kind

    def _tokens(self) -> FileTokens | None:
        name = "kafka_sasl_oauthbearer_token_endpoint_url"
        url = self.values.get(name)
        if url is None:
            return None
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not parts.path:
            msg = (
                f"{self.given[name]} must be a file: URL, got one of {parts.scheme or 'no'}: "
                "let the token be written to a file"
            )
            raise ConfigError(msg)
        return FileTokens(Path(unquote(parts.path)))

    def _section(self, name: str, derived: Mapping[tuple[str, ...], Any]) -> Any:
        keys = [key for key in KEYS.values() if key.section == name]
        is_set = [key for key in keys if key.name in self.values]
        try:
            return self._made(keys, is_set, derived)
        except ConfigError as error:
            blamed = [key for key in is_set if self._is_to_blame(key, keys, is_set, derived, error)]
            raise ConfigError(self._restated(str(error), blamed or is_set)) from error

    def _is_to_blame(
        self,
        key: Key,
        keys: list[Key],
        is_set: list[Key],
        derived: Mapping[tuple[str, ...], Any],
        error: ConfigError,
    ) -> bool:
        try:
            self._made(keys, [other for other in is_set if other is not key], derived)
        except ConfigError as without:
            return str(without) != str(error)
        return True

    def _made(
        self, keys: list[Key], is_set: Iterable[Key], derived: Mapping[tuple[str, ...], Any]
    ) -> Any:
        values: dict[tuple[str, ...], Any] = {}
        if keys[0].section == "kafka":
            values["bootstrap_servers",] = (_NOBODY,)
        values |= {key.field: self.values[key.name] for key in is_set}
        values |= derived
        arguments = {path[0]: value for path, value in values.items() if len(path) == 1}
        parts = {key.field[0]: key.owner for key in keys if len(key.field) > 1}
        for part, owner in parts.items():
            within = {path[1]: value for path, value in values.items() if path[0] == part}
            arguments[part] = owner(**within)
        (owner,) = {key.owner for key in keys if len(key.field) == 1}
        return owner(**arguments)

    def _restated(self, message: str, blamed: list[Key]) -> str:
        """Replace the section's name of a key by the user's key and its source."""
        leading = _LEADING_KEY.match(message)
        if leading is not None:
            for key in blamed:
                if name_of(leading.group()).endswith(key.field[-1]):
                    return f"{self.given[key.name]}{message[leading.end() :]}"
        return f"{', '.join(str(self.given[key.name]) for key in blamed)}: {message}"

    def _require_together(self, config: Config) -> None:
        is_of_cluster = config.process.assignment_kind is AssignmentKind.CLUSTER
        if is_of_cluster and config.log.kind is not LogKind.KAFKA:
            msg = (
                f"{self.given['assignment']} must not be {config.process.assignment}: only a Kafka "
                f"cluster can be asked, and log.kind is {config.log.kind}"
            )
            raise ConfigError(msg)
        if config.kafka is None and config.sidecar.clusters_max:
            msg = (
                f"{self.given[_LEARNED]} is for log.kind = kafka, and log.kind is "
                f"{config.log.kind}: another cluster's metadata lives in another log"
            )
            raise ConfigError(msg)
        least_ms = _LOOKS_LEAST * config.pump.bounds_interval_ms
        if config.http.heartbeat_age_ms_max < least_ms:
            names = ("http_heartbeat_age_ms_max", "pump_bounds_interval_ms")
            said = " and ".join(str(self.given[name]) for name in names if name in self.given)
            msg = (
                f"{said}: http.heartbeat_age_ms_max must be at least {_LOOKS_LEAST} times "
                f"pump.bounds_interval_ms, got {config.http.heartbeat_age_ms_max} and "
                f"{config.pump.bounds_interval_ms}: a process that works would be started anew"
            )
            raise ConfigError(msg)
        self._require_served(config)
        if config.kafka is not None and config.log.num_partitions is not None:
            msg = (
                f"{self.given['log_num_partitions']} is for an embedded log, and log.kind is "
                "kafka: set kafka.topic.num.partitions"
            )
            raise ConfigError(msg)

    def _require_served(self, config: Config) -> None:
        if not config.broker_log.folders:
            return
        given = self.given["broker_log_folders"]
        if config.http.address is None:
            msg = f"{given}: they are served by HTTP, and http.listen is {config.http.listen}"
            raise ConfigError(msg)
        is_known = config.kafka is not None and not config.kafka.is_learned
        if not (is_known or config.broker_log.bootstrap_servers):
            msg = (
                f"{given}: nobody can tell how far their partitions are stable: set "
                "broker_log.bootstrap_servers, as the log is not that of one Kafka cluster"
            )
            raise ConfigError(msg)
