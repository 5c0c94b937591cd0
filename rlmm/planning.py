"""From a configuration to what is built from it. Opens nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlmm.config.process import LogKind, Mode
from rlmm.engine import EngineSettings
from rlmm.service import EnginePlan, Watch, open_files, open_kafka, open_memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.config.sections import Config
    from rlmm.service import OpenLog

LOG_FOLDER = "log"
"""Of the embedded log, in the data folder."""
SNAPSHOT_FOLDER = "snapshots"


def plan_of(config: Config) -> EnginePlan:
    """The engine that *config* describes."""
    process = config.process
    is_kept = config.log.kind is not LogKind.MEMORY
    broker_id = process.cluster_broker
    watch = None
    if broker_id is not None:
        watch = Watch(broker_id, process.assignment_refresh_ms / 1_000)
    return EnginePlan(
        name=config.log.kind,
        open_log=_opener(config),
        assignment=process.listed(),
        settings=EngineSettings(
            config.pump, config.gate, config.write, config.memory, config.snapshot
        ),
        snapshots=process.data_dir / SNAPSHOT_FOLDER if is_kept else None,
        is_observer=process.mode is Mode.OBSERVER,
        watch=watch,
    )


def _opener(config: Config) -> Callable[[], Awaitable[OpenLog]]:
    count = config.log.num_partitions
    if config.kafka is not None:
        return partial(open_kafka, config.kafka)
    if config.log.kind is LogKind.MEMORY:
        return partial(open_memory, count)
    return partial(
        open_files,
        config.process.data_dir / LOG_FOLDER,
        count,
        config.files,
        is_observer=config.process.mode is Mode.OBSERVER,
    )
