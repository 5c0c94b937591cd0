"""Waiting until an answer is fresh enough: one deadline for all that one question waits for."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.engine.freshness import wait_fresh
from rlmm.errors import LogUnavailable, NotReady
from rlmm.gate.settings import GateSettings
from rlmm.http import queries
from rlmm.http.settings import HttpSettings
from rlmm.library.remote_log_metadata import RemoteLogMetadata
from rlmm.log.memory.partition import BoundsFault
from rlmm.sidecar import waiting_requests
from rlmm.wire.options import FreshnessOptions
from rlmm.wire.values import partition_value
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP
from tests.support.engines import ROOM, World, until_open

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition

    Waiting = Callable[[Engine, list[TopicIdPartition], int | None], Awaitable[object]]

PLACES = 3
CONFIGURED = EngineSettings(memory=ROOM, gate=GateSettings(wait_timeout_ms=2_000))
AT_LEAST = {0: 0}


async def by_frames(
    engine: Engine, partitions: list[TopicIdPartition], timeout_ms: int | None
) -> object:
    session: Any = SimpleNamespace(
        engine=lambda: engine, broker=None, is_served=lambda _: True, reads=lambda: engine.reads
    )
    lookups = [[partition_value(one), 0, 5] for one in partitions]
    options = FreshnessOptions(AT_LEAST, linearizable=True, timeout_ms=timeout_ms)
    return await waiting_requests.read(session, "segments_for", [lookups], options)


async def by_http(
    engine: Engine, partitions: list[TopicIdPartition], timeout_ms: int | None
) -> object:
    values: dict[str, Any] = {"at_least": AT_LEAST, "linearizable": True}
    if timeout_ms is not None:
        values["timeout_ms"] = timeout_ms
    await queries.wait_fresh(engine, partitions, values, HttpSettings())
    return None


async def by_library(
    engine: Engine, partitions: list[TopicIdPartition], timeout_ms: int | None
) -> object:
    running = asyncio.current_task()
    assert running is not None
    return await RemoteLogMetadata(engine, running).highest_offset(
        partitions[0],
        0,
        at_least=AT_LEAST,
        linearizable=True,
        timeout_s=None if timeout_ms is None else timeout_ms / 1_000,
    )


@pytest.mark.parametrize("timeout_ms", [2_000, None], ids=["said", "as configured"])
@pytest.mark.parametrize("wait", [by_frames, by_http, by_library])
async def test_question_when_it_waits_twice_then_one_deadline_bounds_both_waits(
    wait: Waiting, timeout_ms: int | None
) -> None:
    """The second wait gets the rest of the deadline."""
    world = World(PLACES)
    partitions = [world.partition_on(place) for place in range(PLACES)]
    loop = asyncio.get_running_loop()
    async with world.engine(CONFIGURED) as engine:
        await until_open(engine, *range(PLACES))
        for place in range(PLACES):
            world.script.fail_bounds(place, BoundsFault.HANGS)
        loop.call_later(1.5, world.store, started(segment_id(1, partitions[0])))
        begun_s = loop.time()
        with pytest.raises(LogUnavailable):
            await wait(engine, partitions, timeout_ms)
        assert loop.time() - begun_s == pytest.approx(2.0)


@pytest.mark.parametrize("wait", [by_frames, by_http])
async def test_question_about_many_metadata_partitions_then_one_deadline_bounds_them_all(
    wait: Waiting,
) -> None:
    """One deadline covers all metadata partitions; the error names the last one behind."""
    world = World(PLACES)
    partitions = [world.partition_on(place) for place in range(PLACES)]
    world.store(started(segment_id(1, partitions[0])))
    loop = asyncio.get_running_loop()
    async with world.engine(CONFIGURED) as engine:
        await until_open(engine, *range(PLACES))
        for place in range(PLACES):
            world.script.stall(place)
            world.store(started(segment_id(2, partitions[place])))
        for place in range(PLACES - 1):
            loop.call_later(1.5 + place / 10, world.script.resume, place)
        begun_s = loop.time()
        with pytest.raises(NotReady) as caught:
            await wait(engine, partitions, None)
        assert loop.time() - begun_s == pytest.approx(2.0)
        assert caught.value.metadata_partition == PLACES - 1


async def test_question_about_many_then_asks_the_log_once_and_sees_what_all_of_them_hold() -> None:
    """The engine asks the log one question for all metadata partitions."""
    world = World(PLACES)
    partitions = [world.partition_on(place) for place in range(PLACES)]
    log = world.log()
    asked: list[set[int]] = []
    bounds = log.bounds

    async def counted(places: Any, *, timeout_s: float) -> Any:
        asked.append(set(places))
        return await bounds(places, timeout_s=timeout_s)

    async with world.engine(CONFIGURED, log=log) as engine:
        await until_open(engine, *range(PLACES))
        log.bounds = counted  # type: ignore[method-assign, assignment]
        for partition in partitions:
            world.store(started(segment_id(1, partition)))
        await wait_fresh(
            engine, [*partitions, *partitions], None, linearizable=True, timeout_s=None
        )
        assert engine.read_token() == dict.fromkeys(range(PLACES), 0)
        assert asked[:1] == [set(range(PLACES))]
        await wait_fresh(engine, [], None, linearizable=True, timeout_s=None)


async def test_look_ups_at_once_by_the_library_then_are_as_fresh_as_one() -> None:
    """Each look-up of a batch sees every event stored before the call and has its own answer."""
    world = World(PLACES)
    place = world.place(TP)
    running = asyncio.current_task()
    assert running is not None
    world.store(started("a"))
    async with world.engine(CONFIGURED) as engine:
        await until_open(engine, place)
        world.script.stall(place)
        world.store(finished("a"))
        metadata = RemoteLogMetadata(engine, running)
        asking = asyncio.create_task(
            metadata.segments_for([(TP, 0, 50), (TP, 1, 50)], linearizable=True)
        )
        await asyncio.sleep(1)
        assert not asking.done()
        world.script.resume(place)
        found, absent = await asking
        assert found == engine.reads.segment(segment_id("a"))
        assert absent is None
