"""Settings of a Kafka client, read from the files of Kafka's own tools."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from rlmm.config.loading import load
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rlmm.kafka_client.settings import KafkaSettings

_log = logging.getLogger(__name__)


def client_settings(
    bootstrap_servers: str,
    command_config: Path | None = None,
    command_properties: Sequence[str] = (),
    *,
    timeout_s: float,
    node_id: str,
) -> KafkaSettings:
    """
    Return a read-only client's settings for *bootstrap_servers* (`host:port`, comma separated).

    *command_config* is a `client.properties`; *command_properties*, `KEY=VALUE` each, override it.
    *node_id* becomes part of client ids. Raises `ConfigError` for a property that can neither be
    applied nor ignored. One without an equivalent is logged if it is in the file, else refused.
    """
    if timeout_s <= 0:
        msg = f"a time-out has to be positive, got {timeout_s:g} s"
        raise ConfigError(msg)
    flags = {"kafka_bootstrap_servers": bootstrap_servers}
    if command_config is not None:
        flags["kafka_command_config"] = str(command_config)
    loaded = load(flags, command_properties=tuple(command_properties))
    for notice in loaded.notices:
        _log.warning("%s", notice)
    settings = loaded.config.kafka
    assert settings is not None, "servers are named"
    timeout_ms = max(1, min(int(timeout_s * 1000), settings.request_timeout_ms))
    return replace(settings, node_id=node_id, request_timeout_ms=timeout_ms)
