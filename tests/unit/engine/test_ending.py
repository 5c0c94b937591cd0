"""An engine that is cancelled ends, whatever it is in the middle of."""

from __future__ import annotations

import asyncio

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from tests.support.engines import ROOM, LoopClock, World, no_memory, until_open


async def test_f101_engine_when_cancelled_while_the_topic_is_made_anew_then_ends() -> None:
    """A cancellation that meets the end of the old topic's reading is not forgotten for it."""
    for steps in range(20):
        world = World(partition_count=3)
        engine = Engine(
            world.log(),
            EngineSettings(memory=ROOM),
            parts=EngineParts(clock=LoopClock(), measure_memory=no_memory),
        )
        running = asyncio.create_task(engine.run())
        await until_open(engine, 0, 1, 2)
        world.script.recreate_topic()
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=60)
        assert running.cancelled(), f"{steps} steps after the topic was made anew"
