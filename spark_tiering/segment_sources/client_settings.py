"""Settings of a Kafka client, read from a Java `client.properties`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.config import client_settings as config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlmm.kafka_client.settings import KafkaSettings

_NODE_ID = "tiering"
"""Stands in our client ids, so that an operator sees whose connections these are."""


def client_settings(
    bootstrap_servers: str | Sequence[str],
    command_config: Mapping[str, str] | str | Path | None,
    timeout_s: float,
) -> KafkaSettings:
    """
    Return the settings of a client of the cluster behind *bootstrap_servers*, `host:port` each.
    *command_config* is the path of a `client.properties`, or properties. Raises `ConfigError` for a
    property that can neither be taken over nor left out. One without an equivalent is logged where
    a file has it, and refused where the caller passes it.
    """
    if not isinstance(bootstrap_servers, str):
        bootstrap_servers = ",".join(bootstrap_servers)
    file: Path | None = None
    properties: list[str] = []
    if isinstance(command_config, Mapping):
        properties = [f"{key}={value}" for key, value in command_config.items()]
    elif command_config is not None:
        file = Path(command_config)
    return config.client_settings(
        bootstrap_servers, file, properties, timeout_s=timeout_s, node_id=_NODE_ID
    )
