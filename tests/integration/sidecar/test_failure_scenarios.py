"""The failure scenarios of readiness, as a client of the socket meets them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotReady, PartFailed, PumpFailed, RlmmError, Stopped, UnknownPartition
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.core_panic import CorePanic
from rlmm.metadata.encoding import encode_any
from rlmm.pump.settings import PumpSettings
from tests.support.builders import finished, segment_id, started
from tests.support.engine.chosen import ChosenShard, needs_native
from tests.support.engines import ROOM, World, until, until_open
from tests.support.server.frame_client_calls import ORDERS, PLACES, add, packed
from tests.support.server.frame_servers import listening
from tests.support.server.raw_frames import greeted, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.engine.engine import Engine
    from rlmm.metadata.report import Report
    from rlmm.records.record_set import RecordSet
    from tests.support.server.frame_servers import Listening
    from tests.support.server.raw_frames import FrameClient

QUESTIONS: list[tuple[Any, ...]] = [
    ("segment", segment_id(1).uuid),
    ("segment_for", 0, 5),
    ("next_segment_with_txn_index", 0, 5),
    ("highest_offset", 0),
    ("list_segments", None, 10),
    ("list_segments_by_epoch", 0, None, 10),
    ("remote_log_size", None),
    ("partition_delete",),
]
QUICK = PumpSettings(bounds_interval_ms=20, lag_ms_max=150)
PATIENT_S = 20.0


@asynccontextmanager
async def served(
    world: World, **options: Any
) -> AsyncIterator[tuple[FrameClient, Engine, Listening]]:
    pump = options.pop("pump", PumpSettings())
    said = options.pop("said", {})
    follows = "assignment" in options and not options["assignment"].is_known
    async with (
        world.engine(EngineSettings(memory=ROOM, pump=pump), **options) as engine,
        listening(engine, follows_brokers=follows) as sidecar,
        greeted(sidecar.path, **said) as client,
    ):
        yield client, engine, sidecar


async def refusal(client: FrameClient, method: str, *args: Any) -> RlmmError | None:
    return (await client.answer(client.send(method, *args))).error


async def refusals(client: FrameClient) -> set[type[RlmmError] | None]:
    found: set[type[RlmmError] | None] = set()
    for method, *rest in QUESTIONS:
        error = await refusal(client, method, wire(ORDERS), *rest)
        found.add(None if error is None else type(error))
    return found


async def until_refused(client: FrameClient, reason: str) -> NotReady:
    async with asyncio.timeout(PATIENT_S):
        while True:
            error = await refusal(client, "segment_for", wire(ORDERS), 0, 5)
            if isinstance(error, NotReady) and error.reason == reason:
                return error


async def test_f24_partition_when_assigned_again_then_closed_until_all_is_there() -> None:
    """F24: a partition that is assigned again stays closed until it is replayed."""
    world = World(PLACES)
    place = world.place(ORDERS)
    said = {"broker_id": 1}
    async with served(world, assignment=Assignment.awaited(), said=said) as (client, _, _sidecar):
        await client.call("assign", [wire(ORDERS)], [], True)
        await client.call("wait_ready", wire(ORDERS))
        await client.call("stop_partitions", [wire(ORDERS)])
        world.store(started(segment_id(1, ORDERS)), finished(segment_id(1, ORDERS)))
        world.script.fail_bounds(place)
        await client.call("assign", [], [wire(ORDERS)], True)
        assert await refusals(client) == {NotReady}
        world.script.heal_bounds(place)
        await client.call("wait_ready", wire(ORDERS))
        found = await client.call("segment_for", wire(ORDERS), 0, 5)
        assert found == packed(started(segment_id(1, ORDERS)))


async def test_f25_partition_when_its_log_is_silent_then_closes_and_opens_again() -> None:
    """Failure scenario F25: an end that was seen and is not reached closes the gate by name."""
    world = World(PLACES)
    place = world.place(ORDERS)
    world.store(started(segment_id(1, ORDERS)))
    async with served(world, pump=QUICK) as (client, _, _sidecar):
        await client.call("wait_ready", wire(ORDERS))
        world.script.stall(place)
        world.store(finished(segment_id(1, ORDERS)))
        error = await until_refused(client, "behind")
        assert (error.position, error.records_left is None) == (1, False)
        assert await refusals(client) == {NotReady}
        world.script.resume(place)
        await client.call("wait_ready", wire(ORDERS))
        assert await client.call("segment_for", wire(ORDERS), 0, 5) is not None


async def test_f26_f87_engine_when_its_reader_dies_then_calls_are_refused() -> None:
    """Failure scenarios F26, F87: a fault in the state machine ends its answers, not the server."""
    world = World(PLACES)
    world.store(started(segment_id(1, ORDERS)))

    class Faulty(ChosenShard):
        def apply(
            self, record_set: RecordSet, max_events: int | None = None, **limits: Any
        ) -> Report:
            if self.position == 1:
                raise RuntimeError("a bug")
            return super().apply(record_set, max_events, **limits)

    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with served(world, make_shard=Faulty) as (client, _, _sidecar):
            await client.call("wait_ready", wire(ORDERS))
            assert await refusals(client) == {None}
            world.store(finished(segment_id(1, ORDERS)))
            async with asyncio.timeout(PATIENT_S):
                while await refusals(client) != {PumpFailed}:
                    pass
            with pytest.raises(PumpFailed):
                await add(client, started(segment_id(2, ORDERS)))
            assert await client.call("ping") is None


class PanickingCore:
    """The core behind a panic: it refuses every call."""

    def __init__(self, core: object) -> None:
        self.core = core
        self.is_whole = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def apply(self, *given: Any) -> Any:
        if self.is_whole:
            return self.core.apply(*given)  # type: ignore[attr-defined]  # the real one
        raise RuntimeError("the native core panicked before")

    def row_for(self, *given: Any) -> Any:
        self.is_whole = False
        raise CorePanic("planted")


@needs_native
async def test_f26_engine_when_the_native_core_panics_then_its_end_has_a_name() -> None:
    """A panic in a look-up is told to its client alone; the next event ends the engine."""
    from rlmm.metadata.native_shard import NativeShard  # noqa: PLC0415 - may not be built

    class Panicking(NativeShard):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self._core = PanickingCore(self._core)  # type: ignore[assignment]  # planted
            self.row_for = self._core.row_for  # type: ignore[method-assign]

    world = World(PLACES)
    world.store(started(segment_id(1, ORDERS)))
    with pytest.RaisesGroup(
        pytest.RaisesExc(RuntimeError, match="panicked before"), flatten_subgroups=True
    ):
        async with served(world, make_shard=Panicking) as (client, _, _sidecar):
            await client.call("wait_ready", wire(ORDERS))
            failed = await refusal(client, "segment_for", wire(ORDERS), 0, 5)
            assert isinstance(failed, PartFailed)
            assert "segment_for failed of a fault of the service" in str(failed)
            assert await client.call("ping") is None
            world.store(finished(segment_id(1, ORDERS)))
            async with asyncio.timeout(PATIENT_S):
                while await refusals(client) != {PumpFailed}:
                    pass


async def test_f26_engine_when_it_was_stopped_then_what_is_frozen_is_not_told() -> None:
    """Failure scenario F26: a stopped engine refuses reads, because its state may be old."""
    world = World(PLACES)
    world.store(started(segment_id(1, ORDERS)))
    async with served(world) as (client, engine, _sidecar):
        await client.call("wait_ready", wire(ORDERS))
        engine.refuse(Stopped, "the service is stopping")
        world.store(finished(segment_id(1, ORDERS)))
        assert await refusals(client) == {Stopped}


async def test_f27_history_when_nothing_of_it_is_understood_then_is_not_an_empty_tier() -> None:
    """Failure scenario F27: the partition stays closed with its reason."""
    world = World(PLACES)
    for _ in range(5):
        world.script.write(world.place(ORDERS), b"\xff" * 40)
    async with served(world) as (client, _, _sidecar):
        await until_refused(client, "not-understood")
        assert await refusals(client) == {NotReady}
        assert await client.call("is_ready", wire(ORDERS)) is False


async def test_f28_log_when_it_begins_above_zero_then_is_read_from_there() -> None:
    """Failure scenario F28: an empty log that starts at 40 is ready at once."""
    world = World(PLACES)
    place = world.place(ORDERS)
    segment = started(segment_id(1, ORDERS))
    for _ in range(40):
        world.store(segment)
    world.script.delete_records(place, 40)
    async with served(world) as (client, _, _sidecar):
        await client.call("wait_ready", wire(ORDERS), {"timeout_ms": 10_000})
        with pytest.raises(UnknownPartition):
            await client.call("segment_for", wire(ORDERS), 0, 5)
        assert await add(client, segment) == [place, 40, "applied"]


async def test_f29_end_of_the_log_when_it_cannot_be_asked_once_then_is_asked_again_soon() -> None:
    """Failure scenario F29: seconds behind the failure the partition is ready, and not minutes."""
    world = World(PLACES)
    place = world.place(ORDERS)
    world.store(started(segment_id(1, ORDERS)))
    world.script.fail_bounds(place)
    async with served(world) as (client, engine, _sidecar):
        await until_refused(client, "loading")
        await until(lambda: engine.statistics().gates.get(place) is not None)
        world.script.heal_bounds(place)
        await client.call("wait_ready", wire(ORDERS), {"timeout_ms": 20_000})


async def test_f30_target_when_records_keep_coming_then_does_not_move_and_readiness_stays() -> None:
    """Failure scenario F30: the replay's target stays, and later records do not close the gate."""
    world = World(PLACES)
    place = world.place(ORDERS)
    for number in range(10):
        world.store(started(segment_id(number, ORDERS)))
    world.script.stall(place)
    async with served(world) as (client, _, _sidecar):
        first = await until_refused(client, "replaying")
        world.store(*(started(segment_id(number, ORDERS)) for number in range(10, 15)))
        later = await until_refused(client, "replaying")
        assert (first.target, later.target) == (10, 10)
        assert (later.position, later.records_left) == (0, 10)
        world.script.resume(place)
        await client.call("wait_ready", wire(ORDERS))
        for number in range(15, 115):
            world.store(started(segment_id(number, ORDERS)))
            assert await client.call("is_ready", wire(ORDERS)) is True


async def test_f31_tail_when_it_holds_no_event_then_is_passed_all_the_same() -> None:
    """Failure scenario F31: markers, aborted records and gaps count as progress."""
    world = World(PLACES)
    place = world.place(ORDERS)
    world.store(started(segment_id(1, ORDERS)), finished(segment_id(1, ORDERS)))
    aborted = encode_any(started(segment_id(2, ORDERS), 100, 199))
    world.script.write_transaction(place, aborted, is_committed=False)
    last = world.store(started(segment_id(1, ORDERS)))
    world.script.compact(place, [last])
    async with served(world) as (client, _, _sidecar):
        await client.call("wait_ready", wire(ORDERS), {"timeout_ms": 10_000})
        assert await client.call("segment_for", wire(ORDERS), 0, 5) is not None
        assert (await client.call("read_token"))[place] >= last - 1


async def test_f33_f34_reader_when_not_ready_then_has_a_hint_may_wait_and_is_counted() -> None:
    """F33, F34: the refusal has a hint, and one bounded wait replaces many questions."""
    world = World(PLACES)
    place = world.place(ORDERS)
    world.store(started(segment_id(1, ORDERS)))
    world.script.stall(place)
    async with served(world) as (client, _, sidecar):
        error = await until_refused(client, "replaying")
        assert error.retry_after_ms == 1_000
        asked = sum(sidecar.sidecar.statistics().refusals.values())
        with pytest.raises(NotReady):
            await client.call("wait_ready", wire(ORDERS), {"timeout_ms": 100})
        waiting = client.send("wait_ready", wire(ORDERS), {"timeout_ms": 20_000})
        assert await client.call("ping") is None
        world.script.resume(place)
        assert (await client.answer(waiting)).error is None
        refused = sidecar.sidecar.statistics().refusals
        assert sum(refused.values()) == asked + 1
        assert refused["wait_ready", "not-ready"] == 1
        assert refused["segment_for", "not-ready"] == asked


async def test_f91_partition_when_its_metadata_partition_stalls_then_others_are_answered() -> None:
    """Failure scenario F91: a slow replay delays only its own metadata partition."""
    world = World(PLACES)
    place = world.place(ORDERS)
    other = world.partition_on((place + 1) % PLACES)
    world.store(started(segment_id(1, ORDERS)), started(segment_id(2, other)))
    world.script.stall(place)
    async with served(world) as (client, engine, _sidecar):
        await until_open(engine, *(number for number in range(PLACES) if number != place))
        answers = await client.call("segments_for", [[wire(other), 0, 5], [wire(ORDERS), 0, 5]])
        assert (answers[0], answers[1][0][0]) == ([None, None], "not-ready")


async def test_f93_f94_write_before_all_is_read_then_is_refused_and_nothing_is_kept() -> None:
    """Failure scenarios F93, F94: a write is refused during the start and the replay."""
    world = World(PLACES)
    place = world.place(ORDERS)
    world.store(started(segment_id(1, ORDERS)))
    world.script.stall(place)
    async with served(world) as (client, _, _sidecar):
        soon = {"timeout_ms": 100}
        segment = started(segment_id(2, ORDERS), 100, 199)
        for reason in ("replaying", "replaying"):
            await until_refused(client, reason)
            error = await refusal(client, "add_segment", wire(ORDERS), packed(segment, 0), soon)
            assert isinstance(error, NotReady)
        assert world.topic.partitions[place].next_offset == 1
