"""Events and batches that cannot be applied: set aside, counted, shown, and passed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rlmm.engine.engine import EngineSettings
from rlmm.errors import LogTruncated
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.verdicts import Undecodable, UndecodableReason
from rlmm.pump.settings import PumpSettings
from rlmm.records.writer import build_batch, records_of
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP, follower, history, ids
from tests.support.engines import ROOM, World, opened, until, until_open
from tests.support.logs.scripted_log import ScriptedLog
from tests.support.records.value_bytes import segment_value, update_value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from rlmm.engine.engine import Engine

ANY_HISTORY = EngineSettings(memory=ROOM, pump=PumpSettings(undecodable_share_max=1))


POISON = {
    UndecodableReason.EMPTY_VALUE: b"",
    UndecodableReason.TRUNCATED: segment_value()[:-3],
    UndecodableReason.UNKNOWN_FRAME_VERSION: segment_value(head=b"\x00\x00\x00"),
    UndecodableReason.UNKNOWN_API_KEY: segment_value(head=b"\x01\x09\x00"),
    UndecodableReason.UNKNOWN_RECORD_VERSION: segment_value(head=b"\x01\x00\x07"),
    UndecodableReason.UNKNOWN_STATE: update_value(state=b"\x09"),
    UndecodableReason.TRAILING_BYTES: segment_value() + b"\x00",
}


async def test_f62_poison_is_logged_with_its_first_bytes(caplog: pytest.LogCaptureFixture) -> None:
    """One line per slice has the first bytes of each poison record; tombstones have none."""
    world = World()
    place = world.place(TP)
    bad = POISON[UndecodableReason.TRUNCATED]
    world.topic.store(world.topic.partitions[place], build_batch(records_of([None], 0), 0))
    world.script.write(place, encode_any(started("a")), bad, b"\x07", bytes(1_000))
    async with world.engine(ANY_HISTORY) as engine:
        await until_open(engine, place)
        (line,) = [found.getMessage() for found in caplog.records if "set aside" in found.message]
        assert line.startswith(f"metadata partition {place}, offset 2: set aside")
        assert f"(truncated), {len(bad)} bytes: {bad[:64].hex()}" in line
        caplog.clear()
        world.script.write(place, bytes(1_000))
        await engine.wait_reached({place: 5})
        assert "offset 5: set aside" in caplog.text
        assert bytes(64).hex() in caplog.text
        assert bytes(65).hex() not in caplog.text


async def test_f78_incidents_when_the_state_is_read_anew_then_are_not_told_twice() -> None:
    """A record that is read twice is one incident."""
    async with opened(finished("gone"), started("a")) as (world, engine, place):
        world.script.lose_tail(place, 1)
        await until(lambda: follower(engine, world).beginnings == 2)
        await until_open(engine, place)
        assert len(list(engine.incidents.of())) == 1


async def test_f62_damaged_batch_then_is_read_anew_and_set_aside_at_last() -> None:
    """Damage in transit heals by itself; damage that stays is passed, counted and shown."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b", 100, 199))
    world.script.damage(place, 1)
    async with world.engine(ANY_HISTORY) as engine:
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a"), segment_id("b")]
        assert engine.reads.highest_offset(TP, 0) is None
        stands = follower(engine, world)
        assert (stands.failures, stands.history.undecodable) == (2, 1)
        (found,) = engine.incidents.of()
        assert isinstance(found.verdict, Undecodable)
        assert found.verdict.reason is UndecodableReason.DAMAGED_BATCH
        assert (found.offset, found.next_offset) == (1, 2)
        await engine.write(started("c", 200, 299))


async def test_f62_damaged_tail_then_is_passed_to_where_the_log_goes_on() -> None:
    """The reader passes a damaged tail to the end that the log names, and reads later records."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    world.script.damage(place, 1)
    async with world.engine(ANY_HISTORY) as engine:
        await until_open(engine, place)
        assert engine.read_token()[place] == 1
        assert (await engine.write(finished("a"))).offset == 2
        assert engine.reads.highest_offset(TP, 0) == 99


@asynccontextmanager
async def damaged_in_transit(
    world: World, log: ScriptedLog, pump: PumpSettings | None = None
) -> AsyncIterator[Engine]:
    """Enter when the second event was read as damaged once; it is sound again at the end."""
    place = world.place(TP)
    world.store(started("a"), finished("a"))
    sound = world.topic.partitions[place].batches[1]
    world.script.damage(place, 1)
    async with world.engine(
        EngineSettings(memory=ROOM, pump=pump or PumpSettings()), log=log
    ) as engine:
        await until(lambda: place in engine.statistics().gates)
        await until(lambda: follower(engine, world).failures == 1)
        yield engine
        world.topic.partitions[place].batches[1] = sound
        await until_open(engine, place)
        assert engine.reads.highest_offset(TP, 0) == 99
        assert history(engine, world).undecodable == 0


async def test_f62_damage_that_was_in_transit_then_is_not_counted() -> None:
    """A batch that is sound when it is read anew is applied, and nothing is lost."""
    world = World()
    async with damaged_in_transit(world, ScriptedLog(world.topic)) as engine:
        assert history(engine, world).undecodable == 0


async def test_f62_damage_when_the_log_was_cut_since_then_its_reads_are_counted_anew() -> None:
    """A batch is not set aside for the damage of another one that was at its offset."""
    world = World()
    log = ScriptedLog(world.topic)
    async with damaged_in_transit(world, log, PumpSettings(damage_reads=2)) as engine:
        log.fails_reads.append(LogTruncated("belongs to another history", 0, 2))
        await until(lambda: follower(engine, world).beginnings == 2)
        await until(lambda: follower(engine, world).failures == 3)
