"""
The cluster file in the data folder: id and address of each learned cluster.

Invariant: it is whole, of the last write or of the one before. A malformed file is refused and left
for operators to look at.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rlmm.base.private_files import read_regular
from rlmm.errors import ConfigError, InvalidArgument
from rlmm.kafka_client.settings import address_of
from rlmm.snapshot.atomic import SNAPSHOT_DISK, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LEARNED_FILE: Final = "clusters.json"
VERSION: Final = 1
_FILE_BYTES_MAX: Final = 1024 * 1024
_SERVERS_MAX: Final = 100
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", re.ASCII)


def require_cluster_id(cluster_id: str) -> None:
    if not _CLUSTER_ID.fullmatch(cluster_id):
        msg = (
            "a cluster id has 1 to 100 letters, digits, '_', '-' and '.', and no '.' in front, got "
            f"{cluster_id[:100]!a}"
        )
        raise InvalidArgument(msg)


def require_servers(bootstrap: str) -> tuple[str, ...]:
    """Return the addresses that a broker reported; `InvalidArgument` for malformed ones."""
    servers = tuple(filter(None, (server.strip() for server in bootstrap.split(","))))
    if not 1 <= len(servers) <= _SERVERS_MAX:
        msg = f"bootstrap must name 1 to {_SERVERS_MAX} servers, got {len(servers)}"
        raise InvalidArgument(msg)
    for server in servers:
        try:
            address_of(server)
        except ConfigError:
            msg = f"bootstrap must be host:port, got {server[:100]!a}"
            raise InvalidArgument(msg) from None
    return servers


def learned_bytes(clusters: Mapping[str, str]) -> bytes:
    listed = [{"cluster_id": name, "bootstrap": where} for name, where in clusters.items()]
    return json.dumps({"version": VERSION, "clusters": listed}, indent=1).encode() + b"\n"


def read_learned_bytes(content: bytes) -> dict[str, str]:
    """Return the address of each cluster; `ValueError` names a fault."""
    if len(content) > _FILE_BYTES_MAX:
        raise ValueError("it is too large")
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    listed = found.get("clusters") if isinstance(found, dict) else None
    if not isinstance(listed, list) or found.get("version") != VERSION:
        msg = f"it is no list of clusters of version {VERSION}"
        raise ValueError(msg)
    clusters: dict[str, str] = {}
    for one in listed:
        name = one.get("cluster_id") if isinstance(one, dict) else None
        where = one.get("bootstrap") if isinstance(one, dict) else None
        if not isinstance(name, str) or not isinstance(where, str) or name in clusters:
            raise ValueError("a cluster in it has no id and address of its own")
        try:
            require_cluster_id(name)
            require_servers(where)
        except InvalidArgument as error:
            raise ValueError(str(error)) from None
        clusters[name] = where
    return clusters


def read_learned(folder: Path) -> dict[str, str]:
    """Return the address of each learned cluster; `ConfigError` names a bad file."""
    path = folder / LEARNED_FILE
    try:
        return read_learned_bytes(read_regular(path, _FILE_BYTES_MAX + 1))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        msg = (
            f"{path}, where the clusters stand that brokers told of, cannot be used: {why}; "
            "remove it, and brokers will tell again"
        )
        raise ConfigError(msg) from error


def write_learned(folder: Path, clusters: Mapping[str, str]) -> None:
    write_atomically(SNAPSHOT_DISK, folder / LEARNED_FILE, [learned_bytes(clusters)])
