"""The options of `rlmm tier`: sources, places, topics and limits. No flag takes a secret."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from rlmm.cli.common.option_kinds import (
    CalledAsFlag,
    file_option,
    rate_option,
    switch,
    text_option,
    with_options,
)
from rlmm.cli.common.parameter_types import POSITIVE_SIZE, POSITIVE_TIME, SIZE, TIME
from rlmm.cli.tier_common.object_store import STORE, StoreChoice, store_of
from rlmm.errors import ConfigError
from spark_tiering.copy_job.request import NO_BROKER, ClusterAccess, JobRequest, WaitLimits
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import OBJECTS_MAX, Budgets, SegmentSelection
from spark_tiering.execution.settings import SUBMITTED, ExecutionSettings, is_submitted
from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.executor.throttle import PaceLimits
from spark_tiering.segment_sources.settings import LogDirSettings, SidecarSourceSettings
from spark_tiering.stores.local_settings import LocalSettings
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess

if TYPE_CHECKING:
    from collections.abc import Collection

    from spark_tiering.segment_sources.opening import SourceSettings
    from spark_tiering.tier_metadata.opening import AccessSettings

LOG_FOLDER, SNAPSHOT_FOLDER = "log", "snapshots"
"""In the folder of an embedded log, which `rlmm serve --data-dir` takes as well."""

_FILE = click.Path(dir_okay=False, path_type=str)
_FOLDER = click.Path(file_okay=False, path_type=str)

_SOURCE = (
    click.option(
        "--log-dir", "log_dirs", cls=CalledAsFlag, multiple=True, type=_FOLDER,
        help="A log directory of a broker, by its path on driver and executors. May be repeated.",
    ),
    click.option(
        "--source-sidecar", "source_sidecars", cls=CalledAsFlag, multiple=True, metavar="URL",
        help="https://host:port of a sidecar that serves the segments of its broker. May be "
        "repeated.",
    ),
    file_option("--source-token-file", "The file with the token for them."),
    switch("--source-plaintext-token", "Send it to other machines without TLS."),
    file_option("--source-ca-file", "CA certificates for them."),
    file_option("--source-cert-file", "The client certificate for them."),
    file_option("--source-key-file", "The key of that certificate."),
    click.option(
        "--bootstrap-server", default="", metavar="HOST:PORT,...",
        help="The cluster: it answers last stable offsets, and which topics are tiered.",
    ),
    file_option("--command-config", "A client.properties file of Kafka."),
    switch("--offline", "Ask no cluster: for copied directories, and brokers that are down."),
)  # fmt: skip
_METADATA = (
    text_option(
        "--sidecar", "SOCKET|HOST:PORT", "The service with the metadata: a Unix socket, or TCP."
    ),
    file_option("--sidecar-token-file", "The file with the token for it."),
    switch("--sidecar-plaintext-token", "Send it to another machine without TLS."),
    file_option("--sidecar-ca-file", "CA certificates; turns TLS on."),
    file_option("--sidecar-cert-file", "The client certificate for it."),
    file_option("--sidecar-key-file", "The key of that certificate."),
    click.option(
        "--embedded", default="", type=_FOLDER, metavar="FOLDER",
        help="Keep the metadata log in FOLDER. Without this and --sidecar it is the topic of the "
        "cluster, for copies that brokers --adopt.",
    ),
)  # fmt: skip
_WANTED = (
    click.option(
        "--topic", "topics", cls=CalledAsFlag, multiple=True, metavar="PATTERN",
        help="Topics to copy: orders, logs-*. May be repeated; none means all.",
    ),
    click.option(
        "--without-topic", "without_topics", cls=CalledAsFlag, multiple=True, metavar="PATTERN",
        help="Topics not to copy, even if --topic names them. May be repeated.",
    ),
    click.option(
        "--min-age", type=TIME, default="0s", metavar="TIME",
        help="Copy segments of at least this age: 12h, 7d.",
    ),
    click.option(
        "--keep-local", type=SIZE, default="0", metavar="SIZE",
        help="Leave the newest bytes of each partition: 10GiB.",
    ),
    click.option(
        "--compacted", is_flag=True,
        help="Copy topics with cleanup.policy=compact, too, as the cleaner left them. With "
        "--offline this holds for every topic: offsets without records are not damage.",
    ),
    click.option(
        "--max-bytes", type=POSITIVE_SIZE, metavar="SIZE",
        help="The most bytes of one job.",
    ),
    click.option(
        "--max-objects", type=click.IntRange(1, OBJECTS_MAX), default=OBJECTS_MAX,
        help="The most objects of one job; three for each segment.",
    ),
    click.option("--max-requests", type=click.IntRange(1), help="The most requests of one job."),
    click.option(
        "--broker-id", type=int, default=NO_BROKER,
        help="The broker id of the copies in the metadata.",
    ),
)  # fmt: skip
_ENGINE = (
    click.option(
        "--master", default=None, metavar="MASTER",
        help="local[4], spark://host:7077, yarn, k8s://..., sc://host. By default Spark runs on "
        "this machine, with a task for each processor; under spark-submit as that says.",
    ),
    switch("--no-spark", "Run in this process, one unit after the other."),
    click.option(
        "--spark-conf", multiple=True, metavar="NAME=VALUE",
        help="A Spark setting. May be repeated.",
    ),
    file_option("--spark-log", "The file for the log of Spark."),
)  # fmt: skip
_RUNNING = (
    *_ENGINE,
    click.option("--compress/--no-compress", default=False, help="Compress chunks with zstd."),
    click.option(
        "--chunk-size", type=POSITIVE_SIZE, metavar="SIZE",
        help="The size of a chunk; 4MiB by default.",
    ),
    rate_option("--max-mb-per-s", "The throughput limit of the job."),
    rate_option("--max-requests-per-s", "The limit of requests to the store, of the job."),
    file_option("--stop-file", "Stop between segments when this file exists."),
    click.option(
        "--time-limit", type=POSITIVE_TIME, metavar="TIME",
        help="Begin no segment after this time.",
    ),
    click.option(
        "--segment-timeout", type=POSITIVE_TIME, default="1h", show_default=True, metavar="TIME",
        help="The longest time for one segment; the next run copies one that takes longer.",
    ),
)  # fmt: skip
DECIDED_BY_PLANS = (
    "topics", "without_topics", "min_age", "keep_local", "compacted", "max_bytes", "max_objects",
    "max_requests", "broker_id",
)  # fmt: skip
"""Names of flags that a saved plan decides; `tier run --plan` refuses them."""


def topic_flags() -> list[Any]:
    return [
        click.option(
            "--topic", "topics", cls=CalledAsFlag, multiple=True, metavar="PATTERN",
            help="Topics to look at: orders, logs-*. May be repeated; none means all.",
        ),
        click.option(
            "--without-topic", "without_topics", cls=CalledAsFlag, multiple=True,
            metavar="PATTERN", help="Topics to leave out, even if --topic names them.",
        ),
    ]  # fmt: skip


def running_flags() -> list[Any]:
    return list(_ENGINE)


def request_of(flags: dict[str, Any]) -> JobRequest:
    """Return the job of the flags, as an archive. Raise `ConfigError` for contradicting flags."""
    store = store_of(flags)
    limit_ms = flags["time_limit"]
    chunk = {} if flags["chunk_size"] is None else {"chunk_bytes": flags["chunk_size"]}
    mb_per_s = flags["max_mb_per_s"]
    return JobRequest(
        CopyMode.ARCHIVE,
        _source(flags),
        _metadata(flags),
        store.settings,
        store.prefix,
        _cluster(flags),
        SegmentSelection(
            tuple(flags["topics"]),
            tuple(flags["without_topics"]),
            flags["min_age"],
            flags["keep_local"],
            flags["compacted"],
        ),
        Budgets(flags["max_bytes"], flags["max_objects"], flags["max_requests"]),
        CopyOptions(flags["compress"], **chunk),
        PaceLimits(None if mb_per_s is None else mb_per_s * 1_000_000, flags["max_requests_per_s"]),
        engine_of(flags),
        flags["broker_id"],
        WaitLimits(unit_s=flags["segment_timeout"] / 1_000),
        flags["stop_file"],
        None if limit_ms is None else limit_ms / 1_000,
    )


def _source(flags: dict[str, Any]) -> SourceSettings:
    folders, addresses = flags["log_dirs"], flags["source_sidecars"]
    if bool(folders) is bool(addresses):
        msg = "segments come from --log-dir or from --source-sidecar: name one of the two"
        raise ConfigError(msg)
    if folders:
        return LogDirSettings(tuple(str(Path(folder).absolute()) for folder in folders))
    return SidecarSourceSettings(
        tuple(addresses),
        flags["source_ca_file"],
        flags["source_cert_file"],
        flags["source_key_file"],
        flags["source_token_file"],
        is_plaintext_token=flags["source_plaintext_token"],
    )


def _cluster(flags: dict[str, Any]) -> ClusterAccess | None:
    servers = flags["bootstrap_server"]
    if bool(servers) is flags["offline"]:
        msg = "name the cluster with --bootstrap-server, or say --offline where none is to be asked"
        raise ConfigError(msg)
    return ClusterAccess(servers, flags["command_config"]) if servers else None


def _metadata(flags: dict[str, Any]) -> AccessSettings:
    sidecar, folder = flags["sidecar"], flags["embedded"]
    if sidecar and folder:
        msg = "the metadata is at --sidecar or in --embedded, not in both"
        raise ConfigError(msg)
    if sidecar:
        return SidecarAccess(
            sidecar,
            token_file=flags["sidecar_token_file"],
            ca_file=flags["sidecar_ca_file"],
            certificate_file=flags["sidecar_cert_file"],
            key_file=flags["sidecar_key_file"],
            is_plaintext_token=flags["sidecar_plaintext_token"],
        )
    if not folder and not flags["bootstrap_server"]:
        msg = "name the metadata: --sidecar, --embedded or --bootstrap-server"
        raise ConfigError(msg)
    if folder:
        kept = Path(folder).absolute()
        return EmbeddedAccess(folder=kept / LOG_FOLDER, snapshots=kept / SNAPSHOT_FOLDER)
    config = flags["command_config"]
    return EmbeddedAccess(
        bootstrap_servers=flags["bootstrap_server"], command_config=Path(config) if config else None
    )


def engine_of(flags: dict[str, Any]) -> ExecutionSettings:
    """Raise `ConfigError` for contradicting flags."""
    if flags["no_spark"]:
        if flags["master"]:
            msg = "--no-spark and --master contradict each other"
            raise ConfigError(msg)
        return ExecutionSettings()
    conf = {}
    for one in flags["spark_conf"]:
        name, is_pair, value = one.partition("=")
        if not is_pair or not name:
            msg = f"--spark-conf takes NAME=VALUE, got {one!r}"
            raise ConfigError(msg)
        conf[name] = value
    here = SUBMITTED if is_submitted() else f"local[{os.cpu_count() or 1}]"
    return ExecutionSettings(flags["master"] or here, conf=conf, log_file=flags["spark_log"])


def flags_given(names: Collection[str]) -> list[str]:
    """Return the flags called *names* that stand on the command line, as they are written."""
    context = click.get_current_context()
    return [
        option.opts[0]
        for option in context.command.params
        if option.name in names
        and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


def only_looking(request: JobRequest) -> JobRequest:
    """Return *request* without the right to create a folder or an embedded log."""
    store, metadata = request.store, request.metadata
    if isinstance(store, LocalSettings):
        store = replace(store, is_made=False)
    if isinstance(metadata, EmbeddedAccess):
        metadata = replace(metadata, is_begun=False)
    return replace(request, store=store, metadata=metadata)


def adopting(request: JobRequest) -> JobRequest:
    return replace(request, mode=CopyMode.ADOPT)


def _store_of_jobs(flags: dict[str, Any]) -> StoreChoice:
    """Return the store of jobs that ran; a folder that does not exist is not made."""
    choice = store_of(flags)
    if isinstance(choice.settings, LocalSettings):
        return replace(choice, settings=replace(choice.settings, is_made=False))
    return choice


store_options: Final = with_options(STORE, _store_of_jobs)
"""Adds the flags of a store; the command gets a `StoreChoice`."""
job_options: Final = with_options((*_SOURCE, *_METADATA, *STORE, *_WANTED, *_RUNNING), request_of)
"""Adds the flags of a whole job; the command gets a `JobRequest`."""
