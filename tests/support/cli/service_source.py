"""A running service as a source."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.state_sources.settings import SourceSettings
from rlmm.state_sources.sidecar_source import ServiceStateSource
from tests.support.engines import World, until_open
from tests.support.server.frame_servers import Listening, RoleDoor, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import Engine
    from rlmm.metadata.events import Event

PLACES = 3


def address(served: Listening) -> str:
    return str(served.path)


@asynccontextmanager
async def asking(sidecar: str, **settings: Any) -> AsyncIterator[ServiceStateSource]:
    source = await ServiceStateSource.open(SourceSettings(sidecar=sidecar, **settings))
    try:
        yield source
    finally:
        await source.close()


@asynccontextmanager
async def served_world(
    world: World, *, role: str = "admin", is_ready: bool = True, **options: Any
) -> AsyncIterator[tuple[Engine, Listening]]:
    settings = options.pop("sidecar", {})
    async with world.engine(**options) as engine:
        if is_ready:
            await until_open(engine, *range(world.partition_count))
        async with listening(engine, door=RoleDoor(role), **settings) as served:
            yield engine, served


@asynccontextmanager
async def looking_into(
    world: World, **options: Any
) -> AsyncIterator[tuple[ServiceStateSource, Engine, Listening]]:
    async with (
        served_world(world, **options) as (engine, served),
        asking(address(served)) as source,
    ):
        yield source, engine, served


def world_of(*events: Event, partition_count: int = PLACES) -> World:
    world = World(partition_count)
    world.store(*events)
    return world
