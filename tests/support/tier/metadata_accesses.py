"""Every kind of access that a job has to the metadata, each over something real."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.metadata.assignment import Assignment
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess
from tests.support.engines import World, until_open
from tests.support.server.frame_servers import RoleDoor, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from spark_tiering.tier_metadata.opening import AccessSettings
    from spark_tiering.tier_metadata.protocol import TierMetadata

KINDS = ("sidecar", "sidecar-as-broker", "embedded")
COUNT = 3
BROKER_ID = 4_000
WAIT_S = 20.0


class Awaited:
    def __init__(self, metadata: TierMetadata) -> None:
        self.metadata = metadata

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            return asyncio.to_thread(getattr(self.metadata, name), *args)

        return call


@asynccontextmanager
async def opened(settings: AccessSettings) -> AsyncIterator[Any]:
    metadata = await asyncio.to_thread(open_metadata_access, settings)
    try:
        yield Awaited(metadata)
    finally:
        await asyncio.to_thread(metadata.close)


@asynccontextmanager
async def serving(
    world: World, *, assignment: Assignment | None = None, role: str = "admin", **said: Any
) -> AsyncIterator[SidecarAccess]:
    options = {"assignment": assignment or Assignment.awaited(), **said.pop("options", {})}
    async with (
        world.engine(**options) as engine,
        listening(engine, door=RoleDoor(role), follows_brokers=assignment is None) as served,
    ):
        if assignment == Assignment.everything():
            await until_open(engine, *range(world.partition_count))
        yield SidecarAccess(str(served.path), **said)


@asynccontextmanager
async def access_of(kind: str, folder: Path) -> AsyncIterator[Any]:
    if kind == "embedded":
        async with opened(EmbeddedAccess(folder=folder / "log", partition_count=COUNT)) as access:
            yield access
        return
    world = World(COUNT)
    is_broker = kind == "sidecar-as-broker"
    said: dict[str, Any] = {"broker_id": BROKER_ID} if is_broker else {}
    assignment = None if is_broker else Assignment.everything()
    async with (
        serving(world, assignment=assignment, **said) as settings,
        opened(settings) as access,
    ):
        yield access
