"""
A machine: one engine with its disk, clock and wire: started, stopped, or switched off. Tasks of a
machine that is switched off are cancelled, and reach neither disk nor log.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rlmm.engine.engine import Engine, EngineParts, EngineSettings
from rlmm.errors import ConfigError, Stopped
from rlmm.gate.settings import GateSettings
from rlmm.metadata.python_shard import PythonShard
from rlmm.pump.memory_budget import MemorySettings, MemoryUsage
from rlmm.pump.settings import PumpSettings, WriteSettings
from rlmm.snapshot.settings import SnapshotSettings
from tests.simulation.disk import FREE_BYTES_MIN, Platter, PowerCut, SimulatedDisk
from tests.simulation.wire import Wire
from tests.support.engines import START_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from random import Random

    from rlmm.log.replay_progress import ReplayHistory
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.metadata.report import Report
    from rlmm.pump.replay import Replay
    from rlmm.records.record_set import RecordSet
    from tests.simulation.invariants import Judge
    from tests.simulation.topic import SimulatedTopic

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
LATENESS_S = (PUMP.lag_ms_max + PUMP.end_age_ms_max) / 1_000
"""The longest lag of an answer: unknown log end, end not reached."""


class SteppedClock:
    def __init__(self) -> None:
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + round(asyncio.get_running_loop().time() * 1_000)

    def timeout(self, timeout_s: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(timeout_s)


class WatchedShard(PythonShard):
    """A shard that shows the judge every report, and its state before the first."""

    def __init__(self, partition: int, position: int, machine: Machine, judge: Judge) -> None:
        super().__init__(partition, position)
        self.born_at = position
        self.gaps_before = machine.gaps.get((partition, position), ())
        """The gaps of the snapshot at this position, if the shard is made of one."""
        self.gaps: tuple[tuple[int, int], ...] = ()
        """Offsets that retention removed before this shard read them."""
        self._machine = machine
        self._judge = judge
        self._is_new = True

    def apply(self, record_set: RecordSet, max_events: int | None = None, **limits: Any) -> Report:
        if self._is_new:
            self._is_new = False
            self._judge.look(self._machine)  # what was restored, before more is made of it
        next_offset = record_set.next_offset
        if not record_set.data and next_offset is not None and next_offset > self.position:
            self.gaps += ((self.position, next_offset),)
        report = super().apply(record_set, max_events, **limits)
        self._judge.see_report(self._machine.name, report)
        return report

    def pass_trimmed(self, log_start: int) -> Report:
        if self._is_new:
            self._is_new = False
            self._judge.look(self._machine)
        self.gaps += ((self.position, log_start),)
        report = super().pass_trimmed(log_start)
        self._judge.see_report(self._machine.name, report)
        return report

    def gaps_of(self, history: ReplayHistory) -> tuple[tuple[int, int], ...]:
        """Return all gaps of the state with *history*, also of the snapshot it was made of."""
        is_restored = history.first_offset != self.born_at
        return (self.gaps_before if is_restored else ()) + self.gaps

    def freezing(
        self, partition: TopicIdPartition | None = None
    ) -> Iterator[Callable[[], bytes] | None]:
        """Freeze, and remember the gaps of the state for a restore of its snapshot."""
        for place, replay in self._machine.replays():
            if place == self.partition:
                self._machine.gaps[place, self.position] = self.gaps_of(replay.history)
        return super().freezing(partition)


class Machine:
    def __init__(self, number: int, topic: SimulatedTopic, random: Random, judge: Judge) -> None:
        self.name = f"m{number}"
        self.random = random
        self.platter = Platter(self.name, random)
        self.platter.cut = self._fuse_blown
        self.clock = SteppedClock()
        self.resident = 0
        self.engine: Engine | None = None
        self.wire: Wire | None = None
        self.is_stopping = False
        self.starts = 0
        self.acknowledged: dict[tuple[Uuid, int], int] = {}
        """Topic and metadata partition -> the largest offset of a write acknowledged here."""
        self.targets: dict[tuple[Uuid, int], int] = {}
        """The end of the log when the metadata partition was assigned here last."""
        self.kept_since: dict[tuple[Uuid, int], bool] = {}
        self.gaps: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        """Metadata partition and position of a snapshot -> the gaps of its state."""
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
            if life is not None and place < len(life.batches):
                self.targets[life.topic_id, place] = life.end(place)
        return generation

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

    def topic_id(self) -> Uuid | None:
        identity = None if self.engine is None else self.engine.identity
        return None if identity is None else identity.topic_id

    def _saved(self, engine: Engine) -> list[str]:
        keeper = engine._keeper
        store = None if keeper is None else keeper._store
        return [] if store is None else [str(saved.path) for saved in store._saved.values()]

    def _capture_targets(self) -> None:
        life = self._topic.life
        if life is not None:
            for place in range(len(life.batches)):
                self.targets[life.topic_id, place] = life.end(place)

    def _make_shard(self, partition: int, position: int) -> WatchedShard:
        return WatchedShard(partition, position, self, self._judge)

    def _sent(self, place: int, value: bytes) -> None:
        self._judge.see_append(self, place, value)

    def _measure(self) -> MemoryUsage:
        return MemoryUsage(self.resident, 1 << 40)
