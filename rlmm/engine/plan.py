"""The plan of one engine. Making it opens nothing; opening its log raises its errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.threads import in_own_thread
from rlmm.errors import RlmmError
from rlmm.log.files.files_log import FilesLog
from rlmm.snapshot.catalog import topics_remembered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from rlmm.engine.engine import EngineSettings
    from rlmm.engine.part_group import Run
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.assignment import Assignment
    from rlmm.partition_log.settings import LogSettings


@dataclass(frozen=True, slots=True)
class LogOpener:
    log: MetadataLog
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class AssignmentWatch:
    broker_id: int
    refresh_s: float


@dataclass(frozen=True, slots=True)
class EnginePlan:
    name: str
    open_log: Callable[[], Awaitable[LogOpener]]
    assignment: Assignment
    settings: EngineSettings
    snapshots: Path | None
    is_observer: bool
    watch: AssignmentWatch | None = None
    """Without it the assignment changes only by calls."""
    copying_warn_s: float | None = None
    """Seconds after which a tiered topic that is not copied is worth a warning; `None`: never."""
    cluster_id: str | None = None
    """The cluster that the log must belong to, where that is known."""
    where: str = "its log"
    """The folder or address of the log, for messages."""
    is_named: bool = False
    """Whether the configuration names the engine; then its errors begin with the name."""

    def name_in(self, error: BaseException) -> None:
        """Put the name of the cluster in front of *error*, where clusters have names."""
        name = f"clusters.{self.name}: "
        if self.is_named and isinstance(error, RlmmError) and not str(error).startswith(name):
            error.args = (f"{name}{error}", *error.args[1:])


async def open_files(
    folder: Path, partition_count: int | None, settings: LogSettings, *, is_observer: bool
) -> LogOpener:
    log = await FilesLog.open(
        folder, partition_count=partition_count, settings=settings, is_observer=is_observer
    )
    return LogOpener(log, log.run)


async def open_kafka(settings: KafkaSettings, snapshots: Path | None = None) -> LogOpener:
    """Creates no topic where *snapshots* holds states of another one of the cluster."""
    from rlmm.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415  # not for other kinds of logs

    async def remember(cluster_id: str) -> frozenset[str]:
        if snapshots is None:
            return frozenset()
        look = partial(topics_remembered, snapshots, cluster_id)
        return await in_own_thread("topics-remembered", look)

    return LogOpener(await KafkaLog.open(settings, remember))


async def open_memory(partition_count: int | None) -> LogOpener:
    from rlmm.log.memory.memory_log import MemoryLog  # noqa: PLC0415  # not for other kinds of logs
    from rlmm.log.memory.topic import MemoryTopic  # noqa: PLC0415

    topic = MemoryTopic() if partition_count is None else MemoryTopic(partition_count)
    return LogOpener(MemoryLog(topic))
