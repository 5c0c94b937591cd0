"""Events of which nothing may be lost silently: hidden by damage, or by a disowned snapshot."""

from __future__ import annotations

import asyncio
import errno
import struct
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.log.files.files_log import FilesLog
from rlmm.log.files.log_folder import TOPIC
from rlmm.log.memory.memory_log import MemoryLog
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.verdicts import UndecodableReason
from rlmm.pump.settings import PumpSettings
from rlmm.records.batch import Batch, walk
from rlmm.records.record_set import RecordSet
from rlmm.snapshot.atomic import SnapshotDisk
from rlmm.snapshot.catalog import VOID
from tests.support.builders import finished, segment_id, started
from tests.support.engine.engine_questions import TP, follower, history, ids
from tests.support.engines import ROOM, LoopClock, World, no_memory, until_open, until_state

if TYPE_CHECKING:
    from pathlib import Path

NONE_ALLOWED = EngineSettings(memory=ROOM, pump=PumpSettings(undecodable_share_max=0))
COUNT = 90
"""So many that an index entry lies behind the damage: a clean start reads no batch before it."""


def with_base_offset(data: bytes, offset: int, claimed: int) -> bytes:
    """Return *data* where the batch at *offset* claims to begin at *claimed*."""
    changed = bytearray(data)
    for batch in walk(data):
        if isinstance(batch, Batch) and batch.base_offset == offset:
            changed[batch.start : batch.start + 8] = struct.pack(">q", claimed)
    return bytes(changed)


@pytest.mark.parametrize("claimed", [17, 24, 27, 25 + 2**40])
async def test_f63_base_offset_when_it_is_damaged_on_disk_then_its_event_is_missed_by_name(
    tmp_path: Path, claimed: int
) -> None:
    """An event of a `files` log that no offset leads to any more closes the gate as undecodable."""
    log = await FilesLog.open(tmp_path, partition_count=1)
    for number in range(COUNT):
        await log.append(0, encode_any(started(number)), timeout_s=60)
    await log.close()
    path = tmp_path / f"{TOPIC}-0" / f"{0:020d}.log"
    path.write_bytes(with_base_offset(path.read_bytes(), 25, claimed))
    log = await FilesLog.open(tmp_path)
    parts = EngineParts(clock=LoopClock(), measure_memory=no_memory)
    engine = Engine(log, NONE_ALLOWED, parts=parts)
    running = asyncio.create_task(engine.run())
    try:
        await until_state(engine, "closed", 0)
        gate = engine.statistics().gate.partitions[0]
        assert gate.why in {NotReadyReason.NOT_UNDERSTOOD, NotReadyReason.DAMAGED}
        if gate.why is NotReadyReason.NOT_UNDERSTOOD:
            read = engine.statistics().pump.followers[0]
            assert (read.tally.missing, read.history.undecodable) == (0, 1)
            undecodable = engine.incidents.statistics().undecodable.events
            assert undecodable == {UndecodableReason.DAMAGED_BATCH: 1}
    finally:
        running.cancel()
        await asyncio.wait([running])
        await log.close()


class SkippingLog(MemoryLog):
    """Holds a batch whose base offset is damaged downwards: a later read begins behind it."""

    offset = 5

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        is_behind = position == self.offset
        found = await super().read(
            partition, position + is_behind, timeout_s=timeout_s, bytes_max=bytes_max
        )
        if found is None or is_behind:
            return found
        data = with_base_offset(found.data, self.offset, self.offset - 2)
        return RecordSet(partition, data, found.next_offset)


async def test_f63_damaged_batch_when_the_next_read_skips_it_then_counts_as_undecodable() -> None:
    """What was damaged at a position is no hole of a compaction when it is not there again."""
    world = World()
    place = world.place(TP)
    world.store(*(started(number) for number in range(10)))
    async with world.engine(NONE_ALLOWED, log=SkippingLog(world.topic)) as engine:
        await until_state(engine, "closed", place)
        read = follower(engine, world)
        assert (read.tally.missing, read.tally.undecodable, read.tally.applied) == (0, 1, 9)


async def test_f31_hole_when_nothing_was_damaged_before_then_is_taken_for_compaction() -> None:
    """A log that may be compacted has holes, and they close nothing."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started(segment_id("b")))
    world.script.compact(place, [1])
    async with world.engine() as engine:
        await until_open(engine, place)
        assert follower(engine, world).tally.missing == 1
        assert history(engine, world).undecodable == 0


class UnmovableDisk(SnapshotDisk):
    """A disk that cannot set a snapshot aside."""

    def __init__(self) -> None:
        self.refused = 0

    def rename(self, source: Path, target: Path) -> None:
        if target.name.endswith(VOID):
            self.refused += 1
            raise OSError(errno.EROFS, "Read-only file system")
        super().rename(source, target)


async def test_f66_snapshot_when_it_cannot_be_set_aside_then_is_never_used_again(
    tmp_path: Path,
) -> None:
    """The snapshot of a lost history fits the position that the log reaches, but not its batch."""
    world, disk = World(), UnmovableDisk()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started("b"), finished("b"))
    async with world.engine(snapshots=tmp_path) as engine:
        await until_open(engine, place)
        assert (await engine.flush()).written
    world.script.lose_tail(place, 2)
    async with world.engine(snapshots=tmp_path, snapshot_disk=disk) as engine:
        await until_open(engine, place)
        assert ids(engine) == [segment_id("a")]
    world.store(started("c"), finished("c"))
    async with world.engine(snapshots=tmp_path, snapshot_disk=disk) as engine:
        await until_open(engine, place)
        assert set(ids(engine)) == {segment_id("a"), segment_id("c")}
    assert disk.refused > 0


class TellingLog(MemoryLog):
    """Learns, when it is asked, that nothing compacts it."""

    is_gapless = False

    async def learn_compaction(self) -> None:
        self.is_gapless = True


async def test_f63_hole_when_the_log_says_that_nothing_compacts_it_then_is_damage() -> None:
    """The engine asks the log at its start, and an offset without a batch is an event missed."""
    world = World()
    place = world.place(TP)
    world.store(started("a"), finished("a"), started(segment_id("b")))
    world.script.compact(place, [1])
    async with world.engine(NONE_ALLOWED, log=TellingLog(world.topic)) as engine:
        await until_state(engine, "closed", place)
        read = follower(engine, world)
        assert (read.tally.missing, read.tally.undecodable) == (0, 1)
