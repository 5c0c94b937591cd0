"""
What one engine of a process is built from: its plan, and the ways to open a log.

Values and constructors only. Invariant: making a plan opens nothing; all that can fail of the log
or the disk fails when the plan's log is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rlmm.base.threads import in_own_thread
from rlmm.errors import RlmmError
from rlmm.log.files.files_log import FilesLog
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.snapshot.catalog import topics_remembered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from rlmm.engine.engine import EngineSettings
    from rlmm.engine.task_group import Run
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.log.protocol import MetadataLog
    from rlmm.metadata.assignment import Assignment
    from rlmm.partition_log.settings import LogSettings


@dataclass(frozen=True, slots=True)
class LogOpener:
    """A log, and what has to run beside it."""

    log: MetadataLog
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class AssignmentWatch:
    """A broker whose assignment is followed."""

    broker_id: int
    refresh_s: float


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """Everything that one engine is built from."""

    name: str
    open_log: Callable[[], Awaitable[LogOpener]]
    assignment: Assignment
    settings: EngineSettings
    snapshots: Path | None
    is_observer: bool
    watch: AssignmentWatch | None = None
    """Whose assignment is followed; else it changes only when somebody says so."""
    copying_warn_s: float | None = None
    """After how long a tiered topic that is not copied is worth a warning; None: nobody asks."""
    cluster_id: str | None = None
    """Whose log it has to be, where that is known."""
    where: str = "its log"
    """Which log that is, for people: a folder, an address."""
    is_named: bool = False
    """Whether it was given its name, as one of several: then its errors begin with it."""

    def tell_of(self, error: BaseException) -> None:
        """Where clusters have names, an error says which one it is about."""
        name = f"clusters.{self.name}: "
        if self.is_named and isinstance(error, RlmmError) and not str(error).startswith(name):
            error.args = (f"{name}{error}", *error.args[1:])


async def open_files(
    folder: Path, partition_count: int | None, settings: LogSettings, *, is_observer: bool
) -> LogOpener:
    """The embedded log in *folder*."""
    log = await FilesLog.open(
        folder, partition_count=partition_count, settings=settings, is_observer=is_observer
    )
    return LogOpener(log, log.run)


async def open_kafka(settings: KafkaSettings, snapshots: Path | None = None) -> LogOpener:
    """The metadata topic of a cluster; no empty one where *snapshots* has states of another."""

    async def remember(cluster_id: str) -> frozenset[str]:
        if snapshots is None:
            return frozenset()
        look = partial(topics_remembered, snapshots, cluster_id)
        return await in_own_thread("topics-remembered", look)

    return LogOpener(await KafkaLog.open(settings, remember))


async def open_memory(partition_count: int | None) -> LogOpener:
    """A topic that is gone with the process."""
    topic = MemoryTopic() if partition_count is None else MemoryTopic(partition_count)
    return LogOpener(MemoryLog(topic))
