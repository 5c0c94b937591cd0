"""A request from a broker: it ends the pause before the next attempt to reach the log."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from rlmm.errors import LogNotPermitted, TopicAbsent
from tests.support.engines import World, until, until_open
from tests.support.logs.scripted_log import ScriptedLog

LONG_S = 100.0


async def test_f95_log_when_there_is_a_sign_of_life_then_is_tried_at_once() -> None:
    """Failure scenario F95: the pause of ten seconds that runs is not waited out."""
    world = World()
    log = ScriptedLog(world.topic)
    world.script.lose_brokers()
    loop = asyncio.get_running_loop()
    async with world.engine(log=log) as engine:
        await asyncio.sleep(LONG_S)
        asked = len(log.identities_asked_s)
        await until(lambda: len(log.identities_asked_s) > asked)
        await asyncio.sleep(1)
        world.script.restore()
        signed_s = loop.time()
        engine.wake()
        await until_open(engine, 0, 1, 2)
        assert log.identities_asked_s[-1] == pytest.approx(signed_s)
        assert engine.statistics().pump.is_connected
        engine.wake()  # of one that is reached, nothing


class Woken(ScriptedLog):
    signs = 0

    def wake(self) -> None:
        self.signs += 1


async def test_f95_sign_of_life_when_the_log_has_pauses_of_its_own_then_it_is_told() -> None:
    """Failure scenario F95: the log gets the sign of life even if it was reached before."""
    world = World()
    log = Woken(world.topic)
    world.script.lose_brokers()
    async with world.engine(log=log) as engine:
        engine.wake()
        assert log.signs == 1
        world.script.restore()
        await until_open(engine, 0, 1, 2)
        engine.wake()
        assert log.signs == 2


async def test_f95_log_when_signs_of_life_come_in_a_flood_then_keeps_the_first_pause() -> None:
    """The log makes at most four attempts a second, however many signs arrive (F95)."""
    world = World()
    log = ScriptedLog(world.topic)
    world.script.lose_brokers()
    async with world.engine(log=log) as engine:
        await asyncio.sleep(LONG_S)
        log.identities_asked_s.clear()
        for _ in range(1_000):
            engine.wake()
            await asyncio.sleep(0.005)
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert len(pauses) > 10
        assert min(pauses) >= 0.25 - 1e-6
        log.identities_asked_s.clear()
        await asyncio.sleep(LONG_S)  # without signs they become rare again
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert pauses[-3:] == pytest.approx([10] * 3)


@pytest.mark.parametrize("kind", [LogNotPermitted, TopicAbsent], ids=lambda kind: kind.__name__)
async def test_f95_log_that_answers_when_there_are_signs_of_life_then_is_not_asked_more_often(
    kind: type[Exception],
) -> None:
    """Failure scenario F95: a password that is refused is not tried more often for a hello."""
    world = World()
    log = ScriptedLog(world.topic)
    log.fails_identity = [kind("as ever") for _ in range(100)]
    async with world.engine(log=log) as engine:
        for _ in range(100):
            engine.wake()
            await asyncio.sleep(0.5)
        pauses = [after - before for before, after in pairwise(log.identities_asked_s)]
        assert pauses == pytest.approx([0.25, 0.5, 1, 2, 4, 8, 10, 10, 10])
