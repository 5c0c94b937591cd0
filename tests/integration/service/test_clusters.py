"""One service for several clusters: each with its own log, folder, snapshots and fate."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.config.loading import load
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import ConfigError, LogDamaged, Stopped, UnknownPartition
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.process.wiring import plans_of
from rlmm.pump.settings import PumpSettings
from rlmm.snapshot.folder_check import stored_below
from rlmm.snapshot.settings import SnapshotSettings
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import ROOM, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.engine.engine import Engine
    from rlmm.log.protocol import LogIdentity

SETTINGS = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=50),
    snapshot=SnapshotSettings(free_bytes_min=0),
    memory=ROOM,
)
DEADLINE_S = 30.0
"""Reached only when something is broken."""


def plan(name: str, topic: MemoryTopic) -> EnginePlan:
    async def opened() -> LogOpener:
        return LogOpener(MemoryLog(topic))

    return EnginePlan(
        name, opened, Assignment.everything(), SETTINGS, None, is_observer=False, is_named=True
    )


@asynccontextmanager
async def running(*plans: EnginePlan) -> AsyncIterator[tuple[Service, asyncio.Task[None]]]:
    service = Service({})
    for each in plans:
        await service.add(each)
    task = asyncio.create_task(service.run())
    try:
        for name in list(service.engines):
            await ready(service, name)
        yield service, task
    finally:
        service.refuse("the test is over")
        task.cancel()
        await asyncio.wait([task])
        await service.flush()
        await service.close()


async def ready(service: Service, name: str) -> Engine:
    engine = service.engines[name]
    assert await engine.wait_all_ready(timeout_s=DEADLINE_S) == []
    return engine


async def kept_positions(folder: Path) -> list[int]:
    found = await asyncio.to_thread(lambda: list(stored_below(folder)))
    return [stored.position for stored in found]


def identity(engine: Engine) -> LogIdentity:
    assert engine.identity is not None
    return engine.identity


async def test_service_when_it_has_two_clusters_then_separate(file: Path, tmp_path: Path) -> None:
    """Each cluster has its own folder and state and restarts from its own snapshots."""
    plans = plans_of(await asyncio.to_thread(partial(load, file=file)))
    segments = {name: segment_id(name, tp(name)) for name in ("east", "west")}
    async with running(*plans) as (service, _):
        for name, segment in segments.items():
            await service.engines[name].write(started(segment))
            await service.engines[name].write(finished(segment))
        identities = {name: identity(engine) for name, engine in service.engines.items()}
    assert identities["east"].cluster_id != identities["west"].cluster_id
    clusters = tmp_path / "data" / "clusters"
    assert await asyncio.to_thread(os.listdir, tmp_path / "data") == ["clusters"]
    for name in segments:
        assert sorted(await asyncio.to_thread(os.listdir, clusters / name)) == ["log", "snapshots"]
        assert await kept_positions(clusters / name / "snapshots") == [2]
    async with running(*plans) as (service, _):
        for name, segment in segments.items():
            engine = service.engines[name]
            assert engine is service.engine_of(identities[name].cluster_id)
            assert identity(engine) == identities[name]
            assert [found.id for found in engine.reads.segments(segment.partition)] == [segment]
            restored = engine.statistics().restored
            assert restored is not None
            assert restored.restored == 1
        with pytest.raises(UnknownPartition):
            service.engines["east"].reads.segments(segments["west"].partition)
        assert service.engine_of("nobody's") is None
        assert service.engine_of(UNKNOWN_CLUSTER_ID) is None


async def test_service_when_two_clusters_are_one_then_is_refused() -> None:
    """The service refuses two names of one log and names both."""
    topic = MemoryTopic(1)
    service = Service({})
    for name in ("one", "two"):
        await service.add(plan(name, topic))
    async with asyncio.timeout(DEADLINE_S):
        with pytest.RaisesGroup(
            pytest.RaisesExc(ConfigError, match=r"^clusters\.two: one and two follow one and the"),
            flatten_subgroups=True,
        ):
            await service.run()
    await service.close()


async def test_service_when_two_logs_are_of_one_cluster_then_neither_is_that_clusters() -> None:
    """Two topics of one cluster may be followed, and the cluster id alone then selects neither."""
    topics = [MemoryTopic(1), MemoryTopic(1)]
    topics[1].cluster_id = topics[0].cluster_id
    async with running(plan("one", topics[0]), plan("two", topics[1])) as (service, _):
        with pytest.raises(ConfigError, match="one and two follow different topics"):
            service.engine_of(topics[0].cluster_id)


async def test_service_when_an_engine_is_added_while_it_runs_then_answers_for_it_as_well() -> None:
    """The service answers for a cluster that is added while it runs."""
    late = MemoryTopic(1)
    async with running(plan("first", MemoryTopic(1))) as (service, task):
        await service.add(plan("late", late))
        engine = await ready(service, "late")
        await engine.write(started(segment_id("a")))
        assert len(engine.reads.segments(tp())) == 1
        assert service.engine_of(late.cluster_id) is engine
        assert not task.done()
    with pytest.raises(Stopped):
        engine.reads.segments(tp())


@pytest.mark.parametrize("error", [LogDamaged("torn"), ConfigError("two counts"), KeyError("x")])
async def test_service_when_a_late_engine_fails_then_its_caller_is_told(error: Exception) -> None:
    """Only the caller gets the error, the other engines go on, and the name is free again."""

    async def refused() -> LogOpener:
        raise error

    async with running(plan("first", MemoryTopic(1))) as (service, task):
        bad = replace(plan("late", MemoryTopic(1)), open_log=refused)
        with pytest.raises(type(error)) as caught:
            await service.add(bad)
        assert caught.value is error
        assert isinstance(error, KeyError) or str(error).startswith("clusters.late: ")
        assert list(service.engines) == ["first"]
        await service.add(plan("late", MemoryTopic(1)))
        await ready(service, "late")
        await ready(service, "first")
        assert not task.done()


async def test_service_when_a_name_is_taken_or_being_opened_then_another_is_refused() -> None:
    """A name is refused while an engine of that name runs or is being opened."""
    gate = asyncio.Event()
    topic = MemoryTopic(1)

    async def slow() -> LogOpener:
        await gate.wait()
        return LogOpener(MemoryLog(topic))

    async with running() as (service, _):
        opening = asyncio.create_task(service.add(replace(plan("a", topic), open_log=slow)))
        await asyncio.sleep(0)
        with pytest.raises(ConfigError, match="two engines are called a"):
            await service.add(plan("a", MemoryTopic(1)))
        gate.set()
        await opening
        await ready(service, "a")


async def test_service_when_it_stops_then_no_engine_is_added() -> None:
    """A stopping service adds no engine, neither a new one nor one that is being opened."""
    gate = asyncio.Event()
    log = MemoryLog(MemoryTopic(1))

    async def slow() -> LogOpener:
        await gate.wait()
        return LogOpener(log)

    async with running() as (service, _):
        slowly = replace(plan("a", MemoryTopic(1)), open_log=slow)
        opening = asyncio.create_task(service.add(slowly))
        await asyncio.sleep(0)
        service.refuse("the service is stopping")
        with pytest.raises(Stopped, match="the service is stopping"):
            await service.add(plan("b", MemoryTopic(1)))
        gate.set()
        with pytest.raises(Stopped, match="the service is stopping"):
            await opening
    with pytest.raises(Exception, match="closed"):
        await log.identity(timeout_s=1)


async def test_service_when_it_has_failed_then_no_engine_is_added() -> None:
    """After the failure of a part the service adds no engine."""
    async with running(plan("first", MemoryTopic(1))) as (service, task):
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(Stopped):
            await service.add(plan("late", MemoryTopic(1)))


async def test_service_when_a_late_engine_is_one_that_is_there_then_it_alone_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An added engine on a log that is followed already ends alone, with a callers' error."""
    topic = MemoryTopic(1)
    async with running(plan("first", topic)) as (service, task):
        late = await service.add(plan("late", topic))
        await until(lambda: list(service.engines) == ["first"], DEADLINE_S)
        assert "first and late follow one and the same log" in caplog.text
        with pytest.raises(Exception, match="first and late follow"):
            await late.wait_all_ready(timeout_s=DEADLINE_S)
        await (await ready(service, "first")).write(started(segment_id("a")))
        await service.add(plan("other", MemoryTopic(1)))
        await ready(service, "other")
        assert not task.done()


async def test_service_when_a_configured_log_is_reached_last_then_the_late_engine_goes() -> None:
    """The configured engine stays and the added one ends, whichever connects first."""
    topic, other = MemoryTopic(1), MemoryTopic(1)
    gate = asyncio.Event()

    class Slow(MemoryLog):
        async def identity(self, *, timeout_s: float) -> LogIdentity:
            await gate.wait()
            return await super().identity(timeout_s=timeout_s)

    async def opened() -> LogOpener:
        return LogOpener(Slow(topic))

    service = Service({})
    await service.add(replace(plan("configured", topic), open_log=opened))
    task = asyncio.create_task(service.run())
    await asyncio.sleep(0)
    late = await service.add(plan("late", topic))
    await ready(service, "late")
    await service.add(plan("other", other))
    gate.set()
    await ready(service, "configured")
    assert sorted(service.engines) == ["configured", "other"]
    with pytest.raises(Stopped, match="configured and late follow one and the same log"):
        late.reads.segments(tp())
    await ready(service, "other")
    task.cancel()
    await asyncio.wait([task])
    await service.close()
