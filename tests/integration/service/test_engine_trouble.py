"""The failure of one engine among several: its report, and no effect on the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.engine.service import Service
from rlmm.errors import ConfigError, LogDamaged, Stopped
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.topic import MemoryTopic
from rlmm.process.run import serve
from rlmm.snapshot.snapshot_writer import FlushResult
from tests.integration.service.test_clusters import DEADLINE_S, plan, ready, running
from tests.support.engines import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.engine.engine import Engine


def refusing(name: str, error: Exception, before: Callable[[], Awaitable[object]]) -> EnginePlan:
    async def refused() -> LogOpener:
        await before()
        raise error

    return replace(plan(name, MemoryTopic(1)), open_log=refused)


class ClosingBadly(MemoryLog):
    async def close(self) -> None:
        await super().close()
        raise ZeroDivisionError("at the end")


@pytest.mark.parametrize("error", [LogDamaged("torn"), OSError(5, "disk"), ConfigError("two")])
async def test_service_when_a_late_engine_fails_of_its_log_then_it_alone_goes(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed engine ends with an error for callers, its log closes, and its name is free."""
    gate = asyncio.Event()
    log = ClosingBadly(MemoryTopic(1))

    async def beside() -> None:
        await gate.wait()
        raise error

    async def opened() -> LogOpener:
        return LogOpener(log, beside)

    async with running(plan("first", MemoryTopic(1))) as (service, task):
        late = await service.add(replace(plan("late", MemoryTopic(1)), open_log=opened))
        gate.set()
        await until(lambda: list(service.engines) == ["first"], DEADLINE_S)
        with pytest.raises(Stopped, match=r"torn|disk|two"):
            await late.wait_all_ready(timeout_s=DEADLINE_S)
        await until(lambda: "while late was closed: ZeroDivisionError" in caplog.text, DEADLINE_S)
        await service.add(plan("late", MemoryTopic(1)))
        await ready(service, "late")
        await ready(service, "first")
        assert not task.done()


async def test_service_when_an_engine_was_taken_off_then_missing_until_it_is_there_again() -> None:
    """A new engine of the same name waits until the log of the former one is closed."""
    gate, closed = asyncio.Event(), asyncio.Event()

    class ClosingLate(MemoryLog):
        async def close(self) -> None:
            await gate.wait()
            await super().close()
            closed.set()

    async def opened() -> LogOpener:
        return LogOpener(ClosingLate(MemoryTopic(1)))

    dropped: list[tuple[str, str]] = []
    async with running(plan("first", MemoryTopic(1))) as (service, _):
        service.on_dropped = lambda name, why: dropped.append((name, why))
        await service.add(replace(plan("late", MemoryTopic(1)), open_log=opened))
        removing = asyncio.create_task(service.remove("late", "it has moved"))
        adding = asyncio.create_task(service.add(plan("late", MemoryTopic(1))))
        await asyncio.sleep(0.05)
        assert (service.missing, dropped) == ({"late": "it has moved"}, [("late", "it has moved")])
        assert not removing.done()
        assert not adding.done()
        gate.set()
        await asyncio.wait([removing, adding])
        assert closed.is_set()
        await ready(service, "late")
        assert service.missing == {}
        await service.remove("first", "only one that came late is taken off")
        await ready(service, "first")


async def test_service_when_an_engine_cannot_be_opened_nor_closed_then_who_asked_hears_the_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The caller gets the first error, and the log shows the error of the clean-up."""
    log = ClosingBadly(MemoryTopic(1))

    async def opened() -> LogOpener:
        service.refuse("it stops now")
        return LogOpener(log)

    async with running() as (service, _):
        with pytest.raises(Stopped, match="it stops now"):
            await service.add(replace(plan("late", MemoryTopic(1)), open_log=opened))
    assert "while late was closed: ZeroDivisionError('at the end')" in caplog.text


async def test_service_when_snapshots_hang_then_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine writes its own snapshots, and the service names the one that hangs."""
    flushed: list[str] = []
    gate = asyncio.Event()

    async def flush(engine: Engine) -> FlushResult:
        name = next(name for name, one in service.engines.items() if one is engine)
        if name == "one":
            await gate.wait()
        flushed.append(name)
        return FlushResult()

    monkeypatch.setattr("rlmm.engine.engine.Engine.flush", flush)
    async with running(plan("one", MemoryTopic(1)), plan("two", MemoryTopic(1))) as (service, _):
        flushing = asyncio.create_task(service.flush())
        await until(lambda: flushed == ["two"], DEADLINE_S)
        assert "snapshots of one" in {task.get_name() for task in asyncio.all_tasks()}
        assert not flushing.done()
        gate.set()
        assert list(await flushing) == ["one", "two"]


async def test_service_when_several_logs_close_badly_then_each_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first failure is raised, and none is lost."""
    service = Service({})
    for name in ("one", "two"):

        async def opened() -> LogOpener:
            return LogOpener(ClosingBadly(MemoryTopic(1)))

        await service.add(replace(plan(name, MemoryTopic(1)), open_log=opened))
    with pytest.raises(ZeroDivisionError):
        await service.close()
    for name in ("one", "two"):
        assert f"{name}: while it was closed: ZeroDivisionError('at the end')" in caplog.text


async def test_service_when_it_starts_then_all_logs_are_opened_at_a_time() -> None:
    """All logs are opened at the same time, and the order of engines is kept."""
    gate, opening, started = asyncio.Event(), [], asyncio.Event()

    def slow(name: str) -> EnginePlan:
        async def opened() -> LogOpener:
            opening.append(name)
            await gate.wait()
            return LogOpener(MemoryLog(MemoryTopic(1)))

        return replace(plan(name, MemoryTopic(1)), open_log=opened)

    services: list[Service] = []

    def begin(service: Service) -> None:
        services.append(service)
        started.set()

    plans = [slow("one"), plan("two", MemoryTopic(1)), slow("three")]
    task = asyncio.create_task(serve(plans, DEADLINE_S, on_started=begin))
    await until(lambda: opening == ["one", "three"], DEADLINE_S)
    gate.set()
    async with asyncio.timeout(DEADLINE_S):
        await started.wait()
    assert list(services[0].engines) == ["one", "two", "three"]
    task.cancel()
    await asyncio.wait([task])


async def test_service_when_several_logs_cannot_be_opened_then_the_first_by_name_is_told() -> None:
    """The process ends with the error of the first log by name, and no opening is left."""
    tried = asyncio.Event()

    async def at_once() -> None:
        tried.set()

    async def a_little_later() -> None:
        await tried.wait()
        for _ in range(50):
            await asyncio.sleep(0)

    plans = [
        refusing("one", LogDamaged("torn"), a_little_later),
        refusing("two", ConfigError("two counts"), at_once),
        refusing("three", ConfigError("never"), asyncio.Event().wait),
    ]
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(LogDamaged, match=r"^clusters\.one: torn"):
            await serve(plans, DEADLINE_S)
