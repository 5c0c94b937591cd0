"""Writes and look-ups through a client of raw frames."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rlmm.metadata.assignment import Assignment
from rlmm.wire.values import segment_value, update_value
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until_open
from tests.support.server.frame_servers import RoleDoor, listening
from tests.support.server.raw_frames import FrameClient, greeted, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.metadata.segment import SegmentMetadata

PLACES = 3
ORDERS = tp("orders", 7)
OTHER = tp("others", 1)


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[tuple[World, FrameClient]]:
    world = World(PLACES)
    role = options.pop("role", "admin")
    said = options.pop("said", {})
    async with world.engine(**options) as engine:
        if engine.assignment == Assignment.everything():
            await until_open(engine, *range(PLACES))
        async with (
            listening(engine, door=RoleDoor(role)) as served,
            greeted(served.path, **said) as client,
        ):
            yield world, client


async def add(client: FrameClient, segment: SegmentMetadata) -> Any:
    return await client.call("add_segment", wire(segment.id.partition), segment_value(segment))


async def copy(client: FrameClient, label: int, start: int = 0, last: int = 99) -> SegmentMetadata:
    segment = started(segment_id(label, ORDERS), start, last)
    await add(client, segment)
    await client.call("update_segment", *update_value(finished(segment.id)))
    return segment


def packed(segment: SegmentMetadata, state: int = 1) -> list[Any]:
    value: list[Any] = list(segment_value(segment))
    value[6] = [list(pair) for pair in segment.epochs]
    value[9] = state
    return value
