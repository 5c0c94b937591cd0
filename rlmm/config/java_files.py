"""
Java files: a `client.properties`, and a broker's `server.properties`.

Of a broker's file only its id, the manager's keys and the address of the listener that it names are
taken.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.base.java_properties import ENCODING, parse_properties
from rlmm.config.kafka_names import KafkaSetting, client_values, is_client_key
from rlmm.config.layers import Layer, file_bytes
from rlmm.errors import ConfigError
from rlmm.kafka_client.settings import SecurityProtocol

if TYPE_CHECKING:
    from pathlib import Path

_METADATA = "remote.log.metadata."
_PREFIX_KEY = f"{_METADATA}manager.impl.prefix"
_PREFIX = "rlmm.config."
_LISTENER_KEY = f"{_METADATA}manager.listener.name"
_COMMON = f"{_METADATA}common.client."
_ROLES = {role: f"{_METADATA}{role}." for role in ("consumer", "producer", "admin")}
_OWNERS = {
    "max.request.size": "producer",
    "buffer.memory": "producer",
    "fetch.max.wait.ms": "consumer",
    "fetch.max.bytes": "consumer",
}
"""Keys that only one of the manager's clients has a use for."""
_LISTENER = re.compile(r"(\w+)://(.*):([0-9]+)", re.ASCII)
_EVERYWHERE = {"", "0.0.0.0", "[::]"}  # noqa: S104  recognised here, not bound to


def client_layer(path: Path) -> Layer:
    values, unused = client_values(_read(path, "command_config"))
    return Layer(values, tuple(unused))


def server_layer(path: Path) -> Layer:
    given = _read(path, "server_properties")
    prefix = _PREFIX
    if _PREFIX_KEY in given:
        prefix = str(given.pop(_PREFIX_KEY).value)
    manager = {
        key.removeprefix(prefix): given.pop(key) for key in list(given) if key.startswith(prefix)
    }
    client = _listener(given)
    number = given.pop("node.id", None) or given.get("broker.id")
    given.pop("broker.id", None)
    if number is not None:
        client["node.id"] = number
    of_clients, unused_by_clients = _of_clients(manager)
    client |= of_clients
    for key, found in manager.items():
        # Only the manager's own keys may become ours: one named like a client's is none.
        client[key if key.startswith(_METADATA) else f"{prefix}{key}"] = found
    values, unused = client_values(client)
    rest = [found.written for found in given.values()]
    return Layer(values, (*unused_by_clients, *unused, *rest))


def _read(path: Path, named_by: str) -> dict[str, KafkaSetting]:
    try:
        text = file_bytes(path).decode(ENCODING)
    except OSError as error:
        msg = f"kafka.{named_by}: {path} cannot be read: {error.strerror}"
        raise ConfigError(msg) from error
    try:
        found = parse_properties(text)
    except ConfigError as error:
        msg = f"kafka.{named_by}: {path}: {error}"
        raise ConfigError(msg) from error
    return {entry.key: KafkaSetting(entry.value, entry.key, str(path)) for entry in found}


def _of_clients(manager: dict[str, KafkaSetting]) -> tuple[dict[str, KafkaSetting], list[str]]:
    """
    Return the client properties in *manager* by the client's keys, and those without equivalent.

    The clients of a manager must agree on the value of a key, because rlmm has one client.
    """
    common = _taken(manager, _COMMON)
    client: dict[str, KafkaSetting] = {}
    unused = {found.written: None for key, found in common.items() if not is_client_key(key)}
    for role, prefix in _ROLES.items():
        for key, found in {**common, **_taken(manager, prefix)}.items():
            if not is_client_key(key):
                unused[found.written] = None
                continue
            if _OWNERS.get(key, role) != role:
                continue
            if client.setdefault(key, found).value != found.value:
                msg = (
                    f"{found} differs from {client[key].written}: there is one client here, "
                    f"so give {key} under {_COMMON} only"
                )
                raise ConfigError(msg)
    return client, list(unused)


def _taken(manager: dict[str, KafkaSetting], prefix: str) -> dict[str, KafkaSetting]:
    return {
        key.removeprefix(prefix): manager.pop(key)
        for key in list(manager)
        if key.startswith(prefix)
    }


def _listener(given: dict[str, KafkaSetting]) -> dict[str, KafkaSetting]:
    named = given.get(_LISTENER_KEY)
    if named is None:
        return {}
    name = str(named.value)
    for key in ("advertised.listeners", "listeners"):
        for listener in _listed(given, key):
            match = _LISTENER.fullmatch(listener)
            if match is None or match.group(1).upper() != name.upper() or match.group(3) == "0":
                continue
            del given[_LISTENER_KEY]
            host = "localhost" if match.group(2) in _EVERYWHERE else match.group(2)
            found = given.pop(key)
            client = {
                "bootstrap.servers": KafkaSetting(f"{host}:{match.group(3)}", key, found.source)
            }
            protocol = _protocol(given, named)
            return {**client, **({"security.protocol": protocol} if protocol else {})}
    return {}


def _protocol(given: dict[str, KafkaSetting], named: KafkaSetting) -> KafkaSetting | None:
    name = str(named.value)
    key = "listener.security.protocol.map"
    for entry in _listed(given, key):
        listener, _, protocol = entry.partition(":")
        if listener.upper() == name.upper():
            return replace(given.pop(key), value=protocol)
    return replace(named, value=name.upper()) if name.upper() in set(SecurityProtocol) else None


def _listed(given: dict[str, KafkaSetting], key: str) -> list[str]:
    found = given.get(key)
    return [] if found is None else [part.strip() for part in str(found.value).split(",")]
