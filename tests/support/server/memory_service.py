"""A service over a topic in memory, on an event loop in a thread: for callers that wait."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from rlmm.base.loop_thread import LoopThread
from rlmm.engine.engine import EngineSettings
from rlmm.metadata.assignment import Assignment
from rlmm.pump.settings import PumpSettings
from spark_tiering.tier_metadata.settings import SidecarAccess
from tests.support.engines import ROOM, World, until_open
from tests.support.server.frame_servers import listening

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.log.memory.script import LogScript

PLACES = 3
SETTINGS = EngineSettings(memory=ROOM, pump=PumpSettings(retry_first_ms=50, retry_last_ms=200))


class ServedMetadata:
    def __init__(self, assignment: Assignment | None = None) -> None:
        self._assignment = assignment or Assignment.everything()
        self._thread = LoopThread("served-metadata")
        self._opened = AsyncExitStack()
        self._service = AsyncExitStack()
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.wait(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._thread.wait(self._close())
        finally:
            self._thread.close()

    @property
    def access(self) -> SidecarAccess:
        return SidecarAccess(self.address, timeout_ms=30_000)

    def place_of(self, partition: object) -> int:
        return self._world.place(partition)  # type: ignore[arg-type]

    def tell(self, action: Callable[[LogScript], object]) -> None:
        async def act() -> None:
            action(self._world.script)

        self._thread.wait(act())

    def hang_up(self) -> None:
        self._thread.wait(self._service.aclose())

    async def _open(self) -> None:
        self._world = World(PLACES)
        engine = await self._opened.enter_async_context(
            self._world.engine(SETTINGS, assignment=self._assignment)
        )
        if self._assignment == Assignment.everything():
            await until_open(engine, *range(PLACES))
        served = await self._service.enter_async_context(listening(engine))
        self.address = str(served.path)

    async def _close(self) -> None:
        await self._service.aclose()
        await self._opened.aclose()
