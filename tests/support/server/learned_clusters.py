"""Clusters at addresses, and a process that learns them: each with its metadata in memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import LogUnavailable
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.log.protocol import LogStatistics
from rlmm.metadata.assignment import Assignment
from rlmm.metrics.served_state import ServedState
from rlmm.pump.settings import PumpSettings
from rlmm.sidecar.cluster_discovery import ProcessEngines
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.settings import AssignmentLimits
from tests.support.engines import ROOM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from rlmm.views.readiness import ProcessStatus

AWAY = LogUnavailable, "nobody answers"
QUICK = EngineSettings(pump=PumpSettings(retry_first_ms=50, retry_last_ms=200), memory=ROOM)


@dataclass(frozen=True, slots=True)
class RemoteStatistics(LogStatistics):
    is_connected: bool


class RemoteLog(MemoryLog):
    def __init__(self, topic: MemoryTopic, is_lost: Callable[[], bool]) -> None:
        super().__init__(topic)
        self._remote = topic
        self._is_lost = is_lost

    def statistics(self) -> RemoteStatistics:  # type: ignore[override]
        return RemoteStatistics(self._remote.fault is None and not self._is_lost())


class Addresses:
    def __init__(self, folder: Path, clusters_max: int) -> None:
        self.folder = folder
        self.at: dict[str, MemoryTopic] = {}
        """The topic at each address; other addresses do not answer."""
        self.opened: list[tuple[str, str]] = []
        self.lost = False
        """Whether the logs that are open do not reach anybody."""
        self.opening: BaseException | None = None
        """The error of opening a log, while it is set."""
        self.failing: asyncio.Queue[BaseException] = asyncio.Queue()
        """The next error of a followed log."""
        self.engines = ProcessEngines(
            folder, self._plan, clusters_max=clusters_max, follows_brokers=lambda _: True
        )
        self.service = Service({"clusters": self.engines.run})
        self.engines.begin(self.service)
        self.clusters = Clusters(self.engines, AssignmentLimits(10))

    def put(self, address: str, cluster_id: str) -> MemoryTopic:
        topic = self.at[address] = MemoryTopic(1)
        topic.cluster_id = cluster_id
        return topic

    def standing(self) -> ProcessStatus:
        sources = ServedState("test")
        sources.begin(self.service)
        return sources.standing()

    def looked(self, cluster_id: str) -> list[str]:
        places = [address for name, address in self.opened if name == cluster_id]
        return [one for one, before in zip(places, [None, *places], strict=False) if one != before]

    def _plan(self, cluster_id: str, servers: tuple[str, ...]) -> EnginePlan:
        address = ",".join(servers)

        async def open_log() -> LogOpener:
            self.opened.append((cluster_id, address))
            if self.opening is not None:
                raise self.opening
            topic = self.at.get(address)
            if topic is None:
                topic = MemoryTopic(1)
                topic.fault = AWAY
            return LogOpener(RemoteLog(topic, lambda: self.lost), self._beside)

        return EnginePlan(
            cluster_id,
            open_log,
            Assignment.awaited(),
            QUICK,
            None,
            is_observer=False,
            cluster_id=cluster_id,
        )

    async def _beside(self) -> None:
        raise await self.failing.get()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Addresses]:
        task = asyncio.create_task(self.service.run())
        try:
            yield self
        finally:
            self.service.refuse("the test is over")
            task.cancel()
            await asyncio.wait([task])
            await self.service.close()
        if not task.cancelled():
            task.result()
