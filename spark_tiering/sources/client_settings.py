"""How a client gets into the cluster: read from what Java's own tools are given."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.config.loading import load
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlmm.log.kafka.settings import KafkaSettings

_log = logging.getLogger(__name__)

_NODE_ID = "tiering"
"""Stands in our client ids, so that an operator sees whose connections these are."""


def client_settings(
    bootstrap_servers: str | Sequence[str],
    command_config: Mapping[str, str] | str | Path | None,
    timeout_s: float,
) -> KafkaSettings:
    """
    The settings of a client of the cluster behind *bootstrap_servers*, `host:port` each.

    *command_config* is the path of a `client.properties`, or single properties. Raises
    `ConfigError` for what can neither be taken over nor left out, such as a keystore that is not
    PEM. What has no equivalent here is told of in a file, and refused where it was given by itself.
    """
    if timeout_s <= 0:
        msg = f"a time-out has to be positive, got {timeout_s:g} s"
        raise ConfigError(msg)
    if not isinstance(bootstrap_servers, str):
        bootstrap_servers = ",".join(bootstrap_servers)
    flags = {"kafka_bootstrap_servers": bootstrap_servers}
    properties: tuple[str, ...] = ()
    if command_config is not None:
        if isinstance(command_config, Mapping):
            properties = tuple(f"{key}={value}" for key, value in command_config.items())
        else:
            flags["kafka_command_config"] = str(command_config)
    loaded = load(flags, command_properties=properties)
    for notice in loaded.notices:
        _log.warning("%s", notice)
    settings = loaded.config.kafka
    assert settings is not None, "servers are named"
    timeout_ms = max(1, min(int(timeout_s * 1000), settings.request_timeout_ms))
    return replace(settings, node_id=_NODE_ID, request_timeout_ms=timeout_ms)
