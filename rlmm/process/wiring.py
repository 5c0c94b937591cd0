"""The wiring of the process: builds plans and servers from a configuration. Opens nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.version import __version__
from rlmm.broker_files.sealed_segments import BrokerLog
from rlmm.config.loading import load
from rlmm.config.process import AssignmentKind, LogKind, ServiceMode
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import AssignmentWatch, EnginePlan, open_files, open_kafka, open_memory
from rlmm.errors import ConfigError
from rlmm.http.server import HttpServer
from rlmm.http.settings import FILE_NAME, NO_FILE
from rlmm.partition_log.descriptors import open_files_max_by_limit
from rlmm.sidecar.cluster_discovery import ProcessEngines, require_no_tables
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.listener import Sidecar
from rlmm.sidecar.session import SessionContext
from rlmm.sidecar.settings import NO_SOCKET, SOCKET_NAME
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.views.status import engine_view
from rlmm.views.values import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.access.authentication import Authenticator
    from rlmm.config.loading import LoadedConfiguration
    from rlmm.config.sections import Config
    from rlmm.engine.engine import Engine
    from rlmm.engine.plan import LogOpener
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.metrics.served_state import ServedState

LOG_FOLDER = "log"
SNAPSHOT_FOLDER = "snapshots"
CLUSTERS_FOLDER = "clusters"


def plans_of(configuration: LoadedConfiguration) -> list[EnginePlan]:
    clusters = configuration.clusters
    if not clusters:
        config = configuration.config
        is_learned = config.kafka is not None and config.kafka.is_learned
        return [] if is_learned else [plan_of(config)]
    embedded = sum(config.log.kind is LogKind.FILES for config in clusters.values())
    plans = []
    for name, config in clusters.items():
        if config.files.open_files_max is None and embedded:
            most = max(1, open_files_max_by_limit() // embedded)
            shared = replace(config.files, open_files_max=most)
            plans.append(plan_of(replace(config, files=shared), name))
        else:
            plans.append(plan_of(config, name))
    return plans


def observing(configuration: LoadedConfiguration) -> LoadedConfiguration:
    """Return the configuration as that of an observer, which writes into no log."""

    def observer(config: Config) -> Config:
        return replace(config, process=replace(config.process, mode=ServiceMode.OBSERVER))

    clusters = {name: observer(config) for name, config in configuration.clusters.items()}
    return replace(configuration, config=observer(configuration.config), clusters=clusters)


def folder_of(config: Config, cluster: str | None = None) -> Path:
    folder = config.process.data_dir
    return folder if cluster is None else folder / CLUSTERS_FOLDER / cluster


def plan_of(config: Config, cluster: str | None = None) -> EnginePlan:
    if config.kafka is not None and config.kafka.is_learned:
        raise ConfigError("kafka.bootstrap.servers must be set: no broker can tell them here")
    process = config.process
    is_kept = config.log.kind is not LogKind.MEMORY
    broker_id = process.cluster_broker
    watch = None
    if broker_id is not None:
        watch = AssignmentWatch(broker_id, process.assignment_refresh_ms / 1_000)
    return EnginePlan(
        name=config.log.kind if cluster is None else cluster,
        open_log=_opener(config, folder_of(config, cluster)),
        assignment=process.listed(),
        settings=EngineSettings(
            config.pump, config.gate, config.write, config.memory, config.snapshot
        ),
        snapshots=folder_of(config, cluster) / SNAPSHOT_FOLDER if is_kept else None,
        is_observer=process.mode is ServiceMode.OBSERVER,
        watch=watch,
        copying_warn_s=_copying_warn_s(config),
        where=_where(config, folder_of(config, cluster)),
        is_named=cluster is not None,
    )


def _copying_warn_s(config: Config) -> float | None:
    is_asked = config.log.kind is LogKind.KAFKA
    return config.process.copy_disabled_warn_ms / 1_000 if is_asked else None


def learned_plan(config: Config, cluster_id: str, servers: tuple[str, ...]) -> EnginePlan:
    """Return the engine of a cluster that a broker reported, in all else as *config* says."""
    assert config.kafka is not None, cluster_id
    kafka = replace(
        config.kafka, bootstrap_servers=servers, cluster_id=cluster_id, is_learned=False
    )
    plan = plan_of(replace(config, kafka=kafka), cluster_id)
    return replace(plan, cluster_id=cluster_id, is_named=False)


def engines_of(configuration: LoadedConfiguration) -> ProcessEngines:
    config = configuration.config
    clusters_max = config.sidecar.clusters_max or 0
    require_no_tables(configuration.clusters, clusters_max)
    return ProcessEngines(
        config.process.data_dir,
        partial(learned_plan, config),
        clusters_max=clusters_max,
        follows_brokers=partial(_follows_brokers, configuration),
    )


def _follows_brokers(configuration: LoadedConfiguration, name: str) -> bool:
    config = configuration.clusters.get(name, configuration.config)
    return config.process.assignment_kind is AssignmentKind.BROKER


def sidecar_of(
    configuration: LoadedConfiguration, engines: ProcessEngines, authenticator: Authenticator
) -> Sidecar:
    config = configuration.config
    each = [*configuration.clusters.values()] or [config]
    is_observer = all(one.process.mode is ServiceMode.OBSERVER for one in each)
    context = SessionContext(
        config.sidecar,
        Clusters(engines, config.sidecar.assignment_limits),
        authenticator,
        FrameServerCounters(),
        _status_of,
        f"rlmm {__version__}",
        ServiceMode.OBSERVER if is_observer else ServiceMode.SERVE,
    )
    said = config.sidecar.unix_path
    path = config.process.data_dir / SOCKET_NAME if said is None else Path(said)
    may_fail = said is None and is_observer
    return Sidecar(context, None if said == NO_SOCKET else path, may_do_without=may_fail)


def _status_of(engine: Engine) -> dict[str, object]:
    now_s = asyncio.get_running_loop().time()
    shown = engine_view(engine.statistics(), now_s=now_s, now_ms=SYSTEM_CLOCK.now_ms())
    fields: dict[str, object] = plain(shown)
    return fields


def token_file_of(configuration: LoadedConfiguration) -> Path | None:
    """Return the file of the service's token for its own user, if it makes one."""
    config = configuration.config
    said = config.http.token_file
    if said == NO_FILE or config.http.address is None:
        return None
    return config.process.data_dir / FILE_NAME if said is None else Path(said)


def http_of(
    configuration: LoadedConfiguration,
    sources: ServedState,
    authenticator: Authenticator,
    token_file: Path | None,
) -> HttpServer:
    return HttpServer(sources, configuration.config.http, authenticator, token_file)


def broker_log_of(configuration: LoadedConfiguration) -> BrokerLog | None:
    """Return the served log folders, if any; reads the file of `broker_log.command_config`."""
    settings = configuration.config.broker_log
    if not settings.folders:
        return None
    # Not for services that serve no log folder.
    from rlmm.kafka_client.offsets.log_ends import LastStableOffsets  # noqa: PLC0415

    timeout_s = settings.ask_timeout_ms / 1_000
    return BrokerLog(
        settings, LastStableOffsets(_cluster_of_stable_offsets(configuration.config), timeout_s)
    )


def _cluster_of_stable_offsets(config: Config) -> KafkaSettings:
    settings = config.broker_log
    kafka = config.kafka
    if settings.bootstrap_servers:
        said = {"kafka_bootstrap_servers": ",".join(settings.bootstrap_servers)}
        if settings.command_config is not None:
            said["kafka_command_config"] = str(settings.command_config)
        try:
            kafka = load(said).config.kafka
        except ConfigError as error:
            msg = f"broker_log.command_config: {error}"
            raise ConfigError(msg) from error
    assert kafka is not None, "the configuration was checked"
    topic = replace(kafka.topic, is_created=False)
    return replace(kafka, is_observer=True, topic=topic)


def _where(config: Config, folder: Path) -> str:
    if config.kafka is not None:
        return f"the log at {', '.join(config.kafka.bootstrap_servers)}"
    is_kept = config.log.kind is not LogKind.MEMORY
    return f"the log in {folder / LOG_FOLDER}" if is_kept else "the log in memory"


def _opener(config: Config, folder: Path) -> Callable[[], Awaitable[LogOpener]]:
    count = config.log.num_partitions
    if config.kafka is not None:
        return partial(open_kafka, config.kafka, folder / SNAPSHOT_FOLDER)
    if config.log.kind is LogKind.MEMORY:
        return partial(open_memory, count)
    return partial(
        open_files,
        folder / LOG_FOLDER,
        count,
        config.files,
        is_observer=config.process.mode is ServiceMode.OBSERVER,
    )
