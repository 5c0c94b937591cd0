"""
A run: one seed, from the first start of its machines to their last stop. After failures everything
heals: all engines must be current within a minute, and one that restarts has nothing to read.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlmm.gate.state import GateState
from rlmm.log.memory.script import LogScript
from rlmm.log.replay_progress import NotReadyReason
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.records.compression import Compression
from rlmm.snapshot.atomic import TEMPORARY
from rlmm.snapshot.catalog import SUFFIX
from tests.simulation import clients, failures, steps
from tests.simulation.chance import Chance
from tests.simulation.disk import Platter
from tests.simulation.invariants import Judge, Violation
from tests.simulation.loop import SimulationLoop, inline_threads
from tests.simulation.machine import Machine, SteppedClock
from tests.simulation.misplaced import is_right, seems_grown
from tests.simulation.story import Story
from tests.simulation.tiers import Tier, new_tiers
from tests.simulation.topic import SimulatedTopic
from tests.simulation.watched_shard import WatchedShard, watched_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterator

    from rlmm.metadata.ids import Uuid
    from rlmm.pump.replay import Replay
    from rlmm.snapshot.store import SnapshotStore

STEP_COUNT = 80
"""Steps of one run, besides its beginning and its end."""
_CONVERGE_S = 60.0
_SETTLE_S = 2.5
"""Until an engine has seen that nothing is wrong any more."""
_GROWN_SHARE = 0.1
"""How often the topic of a run gets a partition more at its end."""
_PAUSES_S = (0.0, 0.0, 0.001, 0.01, 0.05, 0.2, 0.6, 1.5)


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    digest: str
    violations: tuple[Violation, ...]
    lines: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)


class World:
    def __init__(self, seed: int, loop: SimulationLoop) -> None:
        chance = Chance(seed)
        self.loop = loop
        self.random = chance.stream("steps")
        self.clock = SteppedClock()
        self.story = Story(loop.time)
        self.judge = Judge(self.story)
        self.partition_count = self.random.choice((1, 2, 2, 3))
        self.topic = SimulatedTopic(
            self.partition_count, self.clock, chance.stream("topic"), loop.time
        )
        self.judge.topic = self.topic
        self.script = LogScript(self.topic)
        self.tiers = new_tiers(chance.stream("tiers"), self.random.choice((2, 4, 5)))
        self.machines = [
            Machine(number, self.topic, chance.stream(f"machine {number}"), self.judge)
            for number in range(self.random.choice((2, 2, 3, 3, 4)))
        ]
        for machine in self.machines:
            machine.platter.pause = loop.pause
        self.operations: list[clients.Operation] = []
        self.is_healed = False
        """Whether nothing that was planned may happen any more."""
        self.pause_s: float | None = None
        """How long the next pause is, where a step has decided that."""

    # ----------------------------------------------------------------------------- the course

    async def play(self) -> None:
        for machine in self.machines:
            machine.start(Assignment.everything())
        weighted = list(steps.STEPS)
        cumulative = [sum(list(steps.STEPS.values())[: at + 1]) for at in range(len(weighted))]
        for _ in range(STEP_COUNT):
            (step,) = self.random.choices(weighted, cum_weights=cumulative)
            self.story.count(f"step: {step.__name__}")
            step(self)
            pause_s = self.random.choice(_PAUSES_S) if self.pause_s is None else self.pause_s
            self.pause_s = None
            await asyncio.sleep(pause_s)
            if not self.is_sound():
                return
        await self._finish()

    def is_sound(self) -> bool:
        """Check everything; return whether no invariant was ever violated."""
        for machine in self.machines:
            if machine.engine is not None:
                self.judge.look(machine)
        for operation in self.operations:
            if operation.deadline_s < self.now_s:
                self.judge.violated("I9", f"{operation.what} has not ended by its deadline")
        return not self.judge.violations

    async def _finish(self) -> None:
        """End all trouble and check the final state."""
        self.tell("world", "everything heals")
        self._heal()
        if not await self._until(self._is_quiet, "every call ends, every failed engine is gone"):
            return
        await asyncio.sleep(_SETTLE_S)
        for machine in self.machines:
            self._heal_one(machine)
        if not await self._until(self._are_current, "all engines are current"):
            return
        self._ask_everything()
        closed = set(self._closed())
        for machine in self.machines:
            store = machine.store()
            await machine.stop()
            self._look_for_leftovers(machine, store)
        machine = self.random.choice(self.machines)
        if self.random.random() < _GROWN_SHARE:
            await self._grow(machine)
            return
        machine.start(Assignment.everything())
        if not await self._until(self._are_current, f"{machine.name} is current again"):
            return
        self._look_for_replayed(machine, closed)
        self._ask_everything()
        await machine.stop()
        await self._until(lambda: len(asyncio.all_tasks()) == 1, "every task ends")

    async def _grow(self, machine: Machine) -> None:
        """I2: after its topic got another partition count, no state of before is answered from."""
        has_states = any(
            path.endswith(SUFFIX) and data not in machine.platter.damaged
            for path, data in machine.platter.files()
            if str(self.topic.topic_id) in path
        )
        self.tell("broker", "the topic gets another partition")
        self.topic.add_partition()
        machine.start(Assignment.everything())
        await asyncio.sleep(_SETTLE_S)
        if machine.engine is None:
            self.story.count("starts refused: another partition count")
        elif has_states:
            self.judge.violated(
                "I2", f"{machine.name} serves a topic whose partition count changed"
            )
        await machine.stop()

    async def _until(self, condition: Callable[[], bool], what: str) -> bool:
        deadline_s = self.now_s + _CONVERGE_S
        while self.is_sound() and not condition():
            if self.now_s > deadline_s:
                self.judge.violated("I9", f"not within {_CONVERGE_S} s: {what}; {self._standing()}")
                break
            await asyncio.sleep(0.25)
        return not self.judge.violations

    def _heal(self) -> None:
        self.is_healed = True
        self.topic.takes_late = False
        self.script.restore()
        if self.topic.topic_id is None:
            self.script.create_topic(self.partition_count)
        for place in range(self.partition_count):
            self.script.elect_leader(place)
            self.script.heal_bounds(place)
            self.script.resume(place)
            self.script.release_appends(place)
        for machine in self.machines:
            failures.restore_service(self, machine)

    def _heal_one(self, machine: Machine) -> None:
        if machine.engine is None:
            self.tell(machine.name, "starts, answers for all")
            machine.start(Assignment.everything())
        else:
            machine.assign(Assignment.everything())

    # ------------------------------------------------------------------------ what must be then

    def _is_quiet(self) -> bool:
        return not self.operations and not any(machine.is_ending for machine in self.machines)

    def _are_current(self) -> bool:
        return not self._standing()

    def _standing(self) -> list[str]:
        found = []
        for machine in self.machines:
            engine = machine.engine
            if engine is None:
                continue
            replays: dict[int, Replay] = dict(machine.replays())
            is_grown = seems_grown(machine, self.partition_count)
            for place in range(self.partition_count):
                gated, replay = engine._gate.shards().get(place), replays.get(place)
                end = self.topic.partitions[place].next_offset
                if gated is None or replay is None:
                    found.append(f"{machine.name}/{place} is not read")
                elif gated.gate.why is NotReadyReason.NOT_UNDERSTOOD and replay.history.undecodable:
                    continue
                elif not is_right(gated.gate, is_grown) or replay.shard.position != end:
                    found.append(
                        f"{machine.name}/{place} is {gated.gate.state} at {replay.shard.position} "
                        f"of {end}: {gated.gate.why} {gated.gate.detail}"
                    )
                elif self._is_disowned(replay):
                    found.append(f"{machine.name}/{place} holds what an election has lost")
        return found

    def _is_disowned(self, replay: Replay) -> bool:
        assert isinstance(replay.shard, WatchedShard)
        lineage = replay.shard.lineage
        return lineage is not None and lineage.is_lost(replay.shard.position)

    def _ask_everything(self) -> None:
        for machine in self.machines:
            if machine.engine is not None:
                for tier in self.tiers:
                    for _ in range(3):
                        clients.ask(self, machine, tier)

    def _look_for_leftovers(self, machine: Machine, store: SnapshotStore | None) -> None:
        if store is None or machine.platter.has_failed:
            return  # what it did not let be removed stays until the next start
        # A thread that hangs, and was left behind, removes its file when it goes on.
        swept = {str(place) for place in store._folder._swept - store._writes._under_way}
        left = [path for path, _ in machine.platter.files() if path.endswith(TEMPORARY)]
        topic_id = str(self.topic.topic_id)
        for path in left:
            # What a crash left goes when its metadata partition is read again.
            if topic_id in path and PurePosixPath(path).parent.name in swept:
                self.judge.violated("I5", f"{path} is left behind")

    def _closed(self) -> Iterator[tuple[str, int]]:
        """Return what stays closed: not understood, or in a topic that seems to have grown."""
        for machine in self.machines:
            for place, _ in machine.replays():
                engine = machine.engine
                if engine and engine._gate.shards()[place].gate.state is not GateState.OPEN:
                    yield machine.name, place

    def _look_for_replayed(self, machine: Machine, closed: Collection[tuple[str, int]]) -> None:
        """Check that a restart after an orderly stop replays nothing but closed partitions."""
        for place, replay in machine.replays():
            if (machine.name, place) in closed:
                continue
            shard = replay.shard
            assert isinstance(shard, WatchedShard)
            # What retention has removed was not read again, it was passed.
            born_at = max(shard.born_at, self.topic.partitions[place].log_start)
            if replay.is_caught_up and born_at != shard.position:
                self.judge.violated(
                    "I1",
                    f"{machine.name} stopped in order, and read metadata partition {place} again "
                    f"from {shard.born_at} to {shard.position}",
                )
            self.story.count("restarts that replay nothing")

    # ------------------------------------------------------------------------ what steps ask for

    @property
    def now_s(self) -> float:
        return self.loop.time()

    def tell(self, who: str, what: str) -> None:
        self.story.tell(who, what)

    def later(self, delay_s: float, do: Callable[[], None]) -> None:
        self.loop.call_later(delay_s, do)

    def pick_up(self) -> Machine | None:
        up = [machine for machine in self.machines if machine.is_up]
        return self.random.choice(up) if up else None

    def pick_tier(self) -> Tier:
        """Return a user partition; now and then a new one takes the place of a deleted one."""
        at = self.random.randrange(len(self.tiers))
        if self.tiers[at].is_deleted and self.random.random() < 0.2:
            self.tiers[at] = new_tiers(self.random, at + 1)[at]
        return self.tiers[at]

    def place_of(self, tier: Tier) -> int:
        partition = tier.partition
        return metadata_partition_for(partition.topic_id, partition.partition, self.partition_count)

    def store(
        self, place: int, *values: bytes, compression: Compression = Compression.NONE
    ) -> int | None:
        """Store *values* as one batch of another writer, where the partition has a leader."""
        held = self.topic.partitions[place]
        if held.fault is not None or self.topic.fault is not None:
            return None
        return self.script.write(place, *values, compression=compression)

    def mend_disk(self, machine: Machine) -> None:
        machine.platter.is_full = False
        machine.platter.error_share = 0.0
        self.loop.slow_share = 0.0

    def begin(
        self, what: str, machine: Machine, limit_s: float, call: Coroutine[None, None, None]
    ) -> None:
        """Start an operation that must end within *limit_s*."""
        what = f"{what} at {machine.name}"
        task = self.loop.create_task(call, name=what)
        operation = clients.Operation(what, self.now_s + limit_s, task, machine)
        self.operations.append(operation)

        def ended(done: asyncio.Task[None]) -> None:
            self.operations.remove(operation)
            if not done.cancelled() and done.exception() is not None:
                told = "".join(traceback.format_exception(done.exception()))
                self.judge.violated("errors", f"{what} ended with {told}")

        task.add_done_callback(ended)

    def elsewhere(
        self, machine: Machine, tier: Tier, place: int, offset: int, topic_id: Uuid | None
    ) -> None:
        """Note the event, so that a reader at another engine may ask for it."""
        others = [other for other in self.machines if other.is_up and other is not machine]
        if others and topic_id is not None and self.random.random() < 0.3:
            other = self.random.choice(others)
            call = clients.read_at_least(self, other, tier, place, offset, topic_id)
            self.begin(f"read at least {place}/{offset}", other, 2.1, call)


# ------------------------------------------------------------------------------------------ runs


def run(seed: int) -> Outcome:
    with _quiet(), inline_threads(), watched_snapshots():
        loop = SimulationLoop(Chance(seed).stream("threads"))
        complaints: list[str] = []
        loop.set_exception_handler(lambda _, context: complaints.append(str(context["message"])))
        asyncio.set_event_loop(loop)
        try:
            world = World(seed, loop)
            try:
                loop.run_until_complete(world.play())
            except Exception:  # noqa: BLE001  # whatever it is, the seed must be told
                world.judge.violated("errors", traceback.format_exc())
            _end_all(loop)
        finally:
            asyncio.set_event_loop(None)
            loop.close()
            Platter.mounted.clear()
        for complaint in complaints:
            world.judge.violated("errors", complaint)
    return Outcome(
        seed,
        world.story.digest,
        tuple(world.judge.violations),
        tuple(world.story.lines),
        world.story.counts,
    )


def _end_all(loop: SimulationLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=600.0))


@contextmanager
def _quiet() -> Iterator[None]:
    """Log nothing: half of the time would be spent on lines about trouble."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
