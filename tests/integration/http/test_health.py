"""Health and readiness of the process from its start to its end."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener
from rlmm.errors import LogUnavailable, PartFailed
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.memory.script import LogScript
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.metrics.served_state import ServedState
from rlmm.process.run import serve
from rlmm.pump.settings import PumpSettings
from tests.support.builders import segment_id, started
from tests.support.engines import ROOM, World, until, until_open, until_state
from tests.support.logs.misbehaving_logs import BrokenLog
from tests.support.server.http_servers import VERSION, process_of, showing

PLACES = 3
QUICK = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=20, lag_ms_max=50, retry_first_ms=1, retry_last_ms=5),
    memory=ROOM,
)


async def test_health_when_the_service_is_starting_then_it_is_not_ready_f94() -> None:
    """The server answers before the service exists: alive and not ready."""
    sources = ServedState(VERSION)
    async with showing(sources=sources) as client:
        live, ready, begun = [await client.get(path) for path in ("/livez", "/readyz", "/startupz")]
        assert (live.status, live.shown["status"]) == (200, "alive")
        assert (ready.status, ready.shown["status"]) == (503, "starting")
        assert (begun.status, begun.headers["Retry-After"]) == (503, "1")
        metrics = await client.metrics()
        assert (metrics["rlmm_ready"], metrics["rlmm_started"]) == (0, 0)


async def test_readyz_when_a_log_is_being_opened_then_it_is_named() -> None:
    """Readiness names a log that is still in recovery."""
    process = process_of()
    process.expected = ("prod",)
    async with showing(process=process) as client:
        found = await client.get("/readyz")
        assert (found.status, found.shown["status"]) == (503, "starting")
        (cluster,) = found.shown["clusters"]
        assert (cluster["cluster"], cluster["reason"]) == ("prod", "opening")
        assert "prod" in found.shown["detail"]
        assert (await client.get("/livez")).status == 200


async def test_readyz_when_no_cluster_is_followed_then_it_is_not_ready() -> None:
    """A service that follows no cluster yet is not ready."""
    async with showing(process=process_of()) as client:
        found = await client.get("/readyz")
        assert (found.status, found.shown["status"]) == (503, "not-ready")


async def test_readyz_when_a_learned_cluster_is_missing_then_named_f100() -> None:
    """F100: the process is not ready but alive, as a restart would stop the other clusters."""
    world = World(PLACES)
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        process = process_of(here=engine)
        process.miss("gone", "its disk is full")
        async with showing(process=process) as client:
            found = await client.get("/readyz")
            assert (found.status, found.shown["status"]) == (503, "not-ready")
            assert found.shown["detail"] == "gone is not followed now: its disk is full"
            clusters = {one["cluster"]: one for one in found.shown["clusters"]}
            assert clusters["here"]["is_ready"]
            assert not clusters["gone"]["is_ready"]
            assert clusters["gone"]["reason"] == "missing"
            assert clusters["gone"]["detail"] == "its disk is full"
            assert (await client.metrics())["rlmm_ready"] == 0
            assert [(await client.get(path)).status for path in ("/livez", "/startupz")] == [
                200
            ] * 2
            status = await client.get("/v1/status")
            assert status.shown["process"]["missing"] == {"gone": "its disk is full"}
            assert not status.shown["is_ready"]
            refused = await client.get("/v1/read-token", cluster="gone")
            assert (refused.status, refused.shown["error"]["code"]) == (503, "not-ready")
            assert "its disk is full" in refused.shown["error"]["message"]
            refused = await client.get("/v1/read-token")
            assert refused.shown["error"]["code"] == "wrong-cluster"
            assert "gone, here" in refused.shown["error"]["message"]


async def test_readyz_when_nobody_has_said_what_is_assigned_then_it_is_not_ready_f94() -> None:
    """The process is not ready before its first assignment, even if the log is reached."""
    world = World(PLACES)
    async with world.engine(assignment=Assignment.awaited()) as engine, showing(engine) as client:
        await until(lambda: engine.identity is not None)
        found = await client.get("/readyz")
        (cluster,) = found.shown["clusters"]
        assert (found.status, cluster["reason"]) == (503, "assignment-unknown")
        assert cluster["assigned"] is None
        engine.reconcile(Assignment.of_metadata([1]))
        await until_open(engine, 1)
        found = await client.get("/readyz", verbose="true")
        (cluster,) = found.shown["clusters"]
        assert (found.status, cluster["assigned"], cluster["open"]) == (200, 1, 1)
        assert [one["metadata_partition"] for one in cluster["metadata_partitions"]] == [1]


async def test_readyz_when_a_partition_is_not_open_then_it_says_which_and_how_far() -> None:
    """Readiness lists closed partitions with reason, position and target, or all on request."""
    world = World(PLACES)
    partition = world.partition_on(2)
    world.store(started(segment_id("a", partition)))
    world.script.stall(2)
    async with world.engine(QUICK) as engine, showing(engine) as client:
        await until_open(engine, 0, 1)
        found = await client.get("/readyz")
        assert (found.status, found.shown["status"]) == (503, "not-ready")
        (cluster,) = found.shown["clusters"]
        (place,) = cluster["metadata_partitions"]
        assert (place["metadata_partition"], place["position"], place["target"]) == (2, 0, 1)
        assert (place["state"], place["records_left"]) == ("replaying", 1)
        assert place["why"]
        everything = await client.get("/readyz?verbose")
        assert len(everything.shown["clusters"][0]["metadata_partitions"]) == PLACES
        assert (await client.get("/startupz")).status == 503
        assert (await client.get("/livez")).status == 200, "a replay is no reason to be killed"
        world.script.resume(2)
        await until_open(engine, 2)
        assert (await client.get("/readyz")).status == 200
        assert (await client.get("/startupz")).status == 200


async def test_startupz_when_a_partition_falls_behind_then_it_stays_started() -> None:
    """A service that was ready once stays started."""
    world = World(PLACES)
    async with world.engine(QUICK) as engine, showing(engine) as client:
        await until_open(engine, *range(PLACES))
        world.script.stall(2)
        world.store(started(segment_id("b", world.partition_on(2))))
        await until_state(engine, "stale", 2)
        ready, begun = await client.get("/readyz"), await client.get("/startupz")
        assert (ready.status, begun.status) == (503, 200)
        assert ready.shown["clusters"][0]["metadata_partitions"][0]["why"] == "behind"


async def test_health_when_the_service_stops_then_readiness_is_the_first_to_say_so() -> None:
    """A service in an orderly stop is alive and not ready."""
    world = World(PLACES)
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        process = process_of(memory=engine)
        async with showing(process=process) as client:
            assert (await client.get("/readyz")).status == 200
            process.refuse("the service is stopping")
            found = await client.get("/readyz")
            assert (found.status, found.shown["status"]) == (503, "stopping")
            assert (await client.get("/livez")).status == 200
            assert (await client.metrics())["rlmm_stopping"] == 1


async def test_health_when_a_part_has_failed_then_the_process_is_not_alive_f100() -> None:
    """From the failure of a part on the process is not alive."""
    world = World(PLACES)
    async with world.engine() as engine:
        await until_open(engine, *range(PLACES))
        process = process_of(memory=engine)
        async with showing(process=process) as client:
            process.failure = str(PartFailed("pump has failed"))
            live, ready = await client.get("/livez"), await client.get("/readyz")
            assert (live.status, live.shown["status"]) == (503, "failed")
            assert (ready.status, ready.shown["status"]) == (503, "failed")
            assert "pump has failed" in live.shown["detail"]
            assert (await client.metrics())["rlmm_failed"] == 1


async def test_service_when_a_part_fails_then_health_tells_until_the_process_is_over_f100() -> None:
    """The exit code names the failure, and HTTP shows it until the process ends."""
    topic = MemoryTopic(PLACES)
    LogScript(topic).write(0, encode_any(started(segment_id("a"))))
    log = BrokenLog(topic)
    log.is_broken = True

    async def open_log() -> LogOpener:
        await asyncio.sleep(0)
        return LogOpener(log)

    plan = EnginePlan("memory", open_log, Assignment.everything(), QUICK, None, is_observer=False)
    sources = ServedState(VERSION)
    async with showing(sources=sources) as client:
        with pytest.raises(PartFailed):
            await serve([plan], 10.0, on_made=sources.begin)
        live, ready = await client.get("/livez"), await client.get("/readyz")
        assert (live.status, ready.status) == (503, 503)
        assert "ZeroDivisionError" in live.shown["detail"]


async def test_livez_when_the_pump_stands_still_then_the_process_is_not_alive_f100() -> None:
    """A process whose reading has stopped is not alive, even if its event loop runs."""
    world = World(PLACES)
    async with world.engine() as engine, showing(engine, heartbeat_age_ms_max=200) as client:
        await until_open(engine, *range(PLACES))
        judged_s = engine.standing().judged_s
        assert judged_s is not None
        loop = asyncio.get_running_loop()
        engine._pump._judged_s = judged_s - 1_000
        found = await client.get("/livez")
        assert (found.status, found.shown["status"]) == (503, "stuck")
        assert found.shown["heartbeat_age_s"]["c0"] >= 1_000
        engine._pump._judged_s = loop.time()
        assert (await client.get("/livez")).status == 200


async def test_health_when_the_log_is_not_reached_then_it_lives_and_says_why_f95() -> None:
    """A process that starts before Kafka is alive, with a gauge, a rising counter and a reason."""
    world = World(PLACES)
    log = AwayLog(world.topic)
    async with world.engine(QUICK, log=log) as engine, showing(engine) as client:
        await until(lambda: engine.statistics().pump.connect_attempts > 3)
        metrics = await client.metrics()
        assert metrics['rlmm_connected{cluster="c0"}'] == 0
        assert metrics['rlmm_connect_attempts_total{cluster="c0"}'] > 3
        assert (await client.get("/livez")).status == 200
        (cluster,) = (await client.get("/readyz")).shown["clusters"]
        assert (cluster["reason"], cluster["detail"]) == ("connecting", "nobody is there")
        log.is_away = False
        await until_open(engine, *range(PLACES))
        assert (await client.metrics())['rlmm_connected{cluster="c0"}'] == 1


class AwayLog(MemoryLog):
    """A log that cannot be reached while it is away."""

    is_away = True

    async def identity(self, *, timeout_s: float) -> object:  # type: ignore[override]
        if self.is_away:
            raise LogUnavailable("nobody is there")
        return await super().identity(timeout_s=timeout_s)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/startupz", "/metrics"])
async def test_health_when_an_unknown_parameter_is_said_then_it_is_refused(path: str) -> None:
    """Health refuses an unknown parameter by name."""
    async with showing(process=process_of()) as client:
        found = await client.get(path, verbos="1")
        assert (found.status, found.code) == (400, "invalid-argument")
