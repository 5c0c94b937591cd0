"""Opening of the source that a command line names; each kind is imported when it is opened."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from rlmm.state_sources.protocol import StateSourceKind

if TYPE_CHECKING:
    from rlmm.inspection.replay import Progress
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.state_sources.protocol import StateSource
    from rlmm.state_sources.settings import SourceSettings

NODE_ID = "cli"
"""Stands in our client ids, so that an operator sees whose connections these are."""


async def open_source(settings: SourceSettings, *, progress: Progress | None = None) -> StateSource:
    """
    Open the source that *settings* name; the caller closes it. Raises `ConfigError` for
    contradicting settings, and the connection error of a service; a cluster is connected at the
    first question.
    """
    if settings.partition_count is not None and settings.kind is not StateSourceKind.FOLDERS:
        msg = "--partition-count is for --log-dirs: whoever holds the topic knows it"
        raise ConfigError(msg)
    kafka = kafka_settings_of(settings)
    if settings.kind is StateSourceKind.KAFKA:
        from rlmm.state_sources.kafka_source import KafkaSource  # noqa: PLC0415

        assert kafka is not None, "servers are named"
        return await KafkaSource.open(
            kafka, timeout_s=settings.timeout_s, snapshot_cache=settings.snapshot_cache
        )
    async with AsyncExitStack() as opened:
        cluster = None
        if kafka is not None:
            from rlmm.state_sources.brokers import Brokers  # noqa: PLC0415

            cluster = await Brokers.open(kafka, settings.timeout_s)
            opened.push_async_callback(cluster.close)
        source: StateSource
        if settings.kind is StateSourceKind.FOLDERS:
            from rlmm.state_sources.folders_source import FoldersSource  # noqa: PLC0415

            source = await FoldersSource.open(
                settings.log_dirs,
                timeout_s=settings.timeout_s,
                partition_count=settings.partition_count,
                cluster=cluster,
                progress=progress,
            )
        else:
            from rlmm.state_sources.sidecar_source import ServiceStateSource  # noqa: PLC0415

            source = await ServiceStateSource.open(settings, cluster=cluster)
        opened.pop_all()
    return source


def kafka_settings_of(settings: SourceSettings) -> KafkaSettings | None:
    """Return the client settings of the named cluster; None without one."""
    if not settings.bootstrap_servers:
        if settings.command_config is not None or settings.command_properties:
            msg = "--command-config and --command-property are for --bootstrap-server: name one"
            raise ConfigError(msg)
        return None
    from rlmm.config.client_settings import client_settings  # noqa: PLC0415

    return client_settings(
        settings.bootstrap_servers,
        settings.command_config,
        settings.command_properties,
        timeout_s=settings.timeout_s,
        node_id=NODE_ID,
    )
