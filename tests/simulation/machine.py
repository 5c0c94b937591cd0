"""
A machine: one engine with its disk, clock and wire: started, stopped, or switched off. Tasks of a
machine that is switched off are cancelled, and reach neither disk nor log.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.errors import ConfigError, Stopped
from rlmm.gate.settings import GateSettings
from rlmm.pump.memory_budget import MemorySettings, MemoryUsage
from rlmm.pump.settings import PumpSettings, WriteSettings
from rlmm.snapshot.settings import SnapshotSettings
from tests.simulation.branches import Lineage
from tests.simulation.disk import FREE_BYTES_MIN, Platter, PowerCut, SimulatedDisk
from tests.simulation.watched_shard import WatchedShard
from tests.simulation.wire import Wire
from tests.support.engines import START_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from random import Random

    from rlmm.log.shard_images import ShardImages
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.ids import Uuid
    from rlmm.pump.replay import Replay
    from rlmm.snapshot.store import SnapshotStore
    from tests.simulation.invariants import Judge
    from tests.simulation.topic import SimulatedTopic
    from tests.simulation.watched_shard import SnapshotKey

MEMORY_LIMIT = 1_000
PUMP = PumpSettings(
    read_timeout_ms=4_000,
    bounds_interval_ms=1_000,
    bounds_timeout_ms=2_000,
    lag_ms_max=2_500,
    end_age_ms_max=4_000,
    retry_first_ms=50,
    retry_last_ms=1_000,
)
READY_S = 2.0
STOP_S = 150.0
"""Longest stop: a slow disk takes some snapshots, one after the other."""
LATENESS_S = (PUMP.lag_ms_max + PUMP.end_age_ms_max) / 1_000
"""The longest lag of an answer: unknown log end, end not reached."""


class SteppedClock:
    def __init__(self) -> None:
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + round(asyncio.get_running_loop().time() * 1_000)

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(timeout_s)


class Machine:
    def __init__(self, number: int, topic: SimulatedTopic, random: Random, judge: Judge) -> None:
        self.name = f"m{number}"
        self.random = random
        self.platter = Platter(self.name, random)
        self.platter.cut = self._fuse_blown
        self.platter.saved = self._saw_saved
        self.clock = SteppedClock()
        self.resident = 0
        self._written: set[str] = set()
        """Paths of the snapshots that were said to be on the medium."""
        self.engine: Engine | None = None
        self.wire: Wire | None = None
        self.is_stopping = False
        self.starts = 0
        self.acknowledged: dict[tuple[Uuid, int], int] = {}
        """Topic and metadata partition -> the largest offset of a write acknowledged here."""
        self.targets: dict[tuple[Uuid, int], int] = {}
        """The end of the log when the metadata partition was assigned here last."""
        self.lineages: dict[SnapshotKey, Lineage] = {}
        """What the states of snapshots were read from."""
        self._topic = topic
        self._judge = judge
        self._disk: SimulatedDisk | None = None
        self._running: asyncio.Task[None] | None = None
        self.ended: list[asyncio.Task[None]] = []
        """Tasks of engines that were given up; they must end."""
        self._settings = EngineSettings(
            pump=PumpSettings(
                **{
                    **{name: getattr(PUMP, name) for name in PUMP.__slots__},
                    "slice_events": random.choice((1, 3, 250)),
                    "read_bytes": random.choice((1, 600, 1 << 20)),
                    "undecodable_share_max": random.choice((1.0, 1.0, 0.4)),
                }
            ),
            gate=GateSettings(wait_timeout_ms=3_000),
            write=WriteSettings(timeout_ms=8_000, ready_timeout_ms=round(READY_S * 1_000)),
            memory=MemorySettings(alert_bytes=MEMORY_LIMIT, limit_bytes=MEMORY_LIMIT),
            snapshot=SnapshotSettings(interval_ms=6_000, free_bytes_min=FREE_BYTES_MIN),
        )

    # ------------------------------------------------------------------------------- its life

    @property
    def is_up(self) -> bool:
        return self.engine is not None and not self.is_stopping and not self.is_ending

    @property
    def is_ending(self) -> bool:
        return self.engine is not None and self.engine._end is not None

    def start(self, assignment: Assignment) -> None:
        assert self.engine is None
        self.starts += 1
        self.is_stopping = False
        self._disk = SimulatedDisk(self.platter, self.random)
        self.wire = Wire(self._topic, self.random, self._sent)
        self.engine = Engine(
            self.wire,
            self._settings,
            assignment=assignment,
            snapshots=self.folder,
            parts=EngineParts(
                clock=self.clock,
                make_shard=self._make_shard,
                apply_threads=0,
                measure_memory=self._measure,
                snapshot_disk=self._disk,
            ),
        )
        self._capture_targets()
        self._running = asyncio.get_running_loop().create_task(
            self._run(self.engine), name=f"engine of {self.name}"
        )

    async def _run(self, engine: Engine) -> None:
        try:
            await engine.run()
        except* ConfigError as error:
            self._judge.tell(self.name, f"the engine ends: {error.exceptions[0]!r}")
        except* Exception as error:
            if not self._is_off():
                self._judge.violated("I9", f"{self.name}: the engine died: {error.exceptions!r}")
                raise
        finally:
            self._judge.tell(self.name, "the engine has ended")
            if self.engine is engine and not self.is_stopping and not self._is_off():
                self.engine = None

    def assign(self, assignment: Assignment) -> int:
        engine = self.engine
        assert engine is not None
        before = set(engine._pump._followers)
        generation = engine.reconcile(assignment)
        now = set(engine._pump._followers)
        life = self._topic.life
        for place in before - now:
            self._judge.forget_watermarks(self, place)
        for place in now - before:
            if life is not None and place < len(life.histories):
                self.targets[life.topic_id, place] = self._topic.partitions[place].next_offset
        return generation

    def meet_cut(self, place: int, next_offset: int) -> None:
        """Expect nothing any more of what an election has lost."""
        topic_id = self._topic.topic_id
        assert topic_id is not None
        for offsets, limit in ((self.targets, next_offset), (self.acknowledged, next_offset - 1)):
            if (topic_id, place) in offsets:
                offsets[topic_id, place] = min(offsets[topic_id, place], limit)
        replay = dict(self.replays()).get(place)
        if replay is not None and replay.shard.position > next_offset:
            self._judge.drop_watermarks(self, topic_id, place)

    def crash(self) -> None:
        engine = self.engine
        if engine is None:
            return
        saved = self._saved(engine)
        self._give_up()
        self.platter.crash()
        self._judge.see_disk(self, saved)
        self._judge.forget_watermarks(self)

    async def stop(self) -> None:
        """Stop in order: refuse questions, end reads, then write the last snapshots."""
        engine, wire, running = self.engine, self.wire, self._running
        if engine is None:
            return  # its power failed at the moment when this was to begin
        assert wire is not None
        assert running is not None
        self.is_stopping = True
        engine.refuse(Stopped, "the simulation stops it")
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        if self.engine is engine:
            with suppress(PowerCut):
                await engine.flush()
        if self.engine is engine:
            await wire.close()
            self.engine = None
            self._judge.forget_watermarks(self)
        self.is_stopping = False

    async def flush(self) -> None:
        if self.engine is not None:
            with suppress(PowerCut):
                await self.engine.flush()

    def _give_up(self) -> None:
        assert self.wire is not None
        assert self._disk is not None
        assert self._running is not None
        self.wire.die()
        self._disk.is_off = True
        self._running.cancel()
        self.ended.append(self._running)
        self.engine = None
        self.is_stopping = False

    def _fuse_blown(self) -> None:
        """Switch off in the middle of a disk call, and end the engine when that call returns."""
        assert self.wire is not None
        self.wire.die()
        asyncio.get_running_loop().call_soon(self.crash)

    def _is_off(self) -> bool:
        return self._disk is None or self._disk.is_off

    # --------------------------------------------------------------------------- what is there

    @property
    def folder(self) -> Path:
        return self.platter.root / "snapshots"

    def replays(self) -> Iterator[tuple[int, Replay]]:
        if self.engine is not None:
            for place, follower in self.engine._pump._followers.items():
                if follower._replay is not None:
                    yield place, follower._replay

    def newest_lineage(self, place: int) -> Lineage | None:
        """Return the lineage of a state that has read nothing yet."""
        topic_id = self.topic_id()
        if topic_id is None:
            return None
        history = self._topic.lives[topic_id].histories[place]
        return Lineage(history, history.current, ())

    def topic_id(self) -> Uuid | None:
        identity = None if self.engine is None else self.engine.identity
        return None if identity is None else identity.topic_id

    def _saved(self, engine: Engine) -> list[str]:
        snapshots = engine._snapshots
        store = None if snapshots is None else snapshots._store
        if store is None:
            return []
        return [
            str(saved.path)
            for saved in store.statistics().saved.values()
            # One that was restored may be of an engine before this one, which failed to force it.
            if str(saved.path) in self._written
        ]

    def _capture_targets(self) -> None:
        life = self._topic.life
        if life is not None:
            for place, held in enumerate(self._topic.partitions):
                self.targets[life.topic_id, place] = held.next_offset

    def _make_shard(self, partition: int, position: int) -> WatchedShard:
        return WatchedShard(partition, position, self, self._judge)

    def _saw_saved(self, frozen: ShardImages, path: str) -> None:
        self._written.add(path)
        self._judge.see_saved(self, frozen)

    def store(self) -> SnapshotStore | None:
        snapshots = None if self.engine is None else self.engine._snapshots
        return None if snapshots is None else snapshots._store

    def _sent(self, place: int, value: bytes) -> None:
        self._judge.see_append(self, place, value)

    def _measure(self) -> MemoryUsage:
        return MemoryUsage(self.resident, 1 << 40)
