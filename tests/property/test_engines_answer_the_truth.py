"""
Engines under any order of log events: answers are assigned, true and recent (I2), acknowledged
writes visible (I3), offsets counted once (I4); a healed log makes all ready and ends waits.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotAssigned, NotReady, RlmmError, UnknownPartition
from rlmm.gate.state import GateState
from rlmm.log.memory.partition import AppendOutcome, BoundsFault
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.verdicts import APPLIED
from rlmm.pump.settings import PumpSettings, WriteSettings
from tests.support.builders import delete_started, finished, segment_id, started, tp
from tests.support.engine.chosen import ChosenShard
from tests.support.engines import ROOM
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.engine.engine import Engine
    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import TopicIdPartition

from tests.support.logs.stored_records import CutDetectingLog, StoredRecords

COUNT = 2
PLACES = st.integers(0, COUNT - 1)
USERS = [tp("orders", number) for number in range(6)]
ASSIGNMENTS = st.one_of(
    st.just(Assignment.everything()),
    st.just(Assignment.nothing()),
    st.sets(PLACES).map(Assignment.of_metadata),
    st.sets(st.sampled_from(USERS)).map(Assignment.of_user),
)


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, COUNT)


SETTINGS = EngineSettings(
    memory=ROOM,
    pump=PumpSettings(
        slice_events=2,
        read_bytes=400,
        read_timeout_ms=3_000,
        bounds_interval_ms=500,
        bounds_timeout_ms=1_000,
        lag_ms_max=3_000,
        end_age_ms_max=6_000,
        undecodable_share_max=1,
        retry_last_ms=2_000,
    ),
    write=WriteSettings(timeout_ms=8_000, ready_timeout_ms=2_000),
)
OLDEST_S = 6 + 2 * 0.5 + 2 * 1
"""How old may be what an open gate has not read: end unknown, asked and judged on timers."""
LABELS = st.integers(0, 5)
SEGMENT_EVENTS = st.builds(
    lambda make, user, label: make(segment_id(label, user)),
    st.sampled_from([started, finished, delete_started]),
    st.sampled_from(USERS),
    LABELS,
)


STEPS: dict[str, tuple[int, st.SearchStrategy[Any]]] = {
    "go_on": (5, st.tuples(st.integers(1, 40))),
    "pass_time": (5, st.tuples(st.sampled_from([0.1, 1.0, 5.0, 20.0]))),
    "others_store": (5, st.tuples(st.lists(SEGMENT_EVENTS, min_size=1, max_size=8))),
    "others_store_poison": (1, st.tuples(PLACES, st.sampled_from([b"", b"\x07", b"\x01\x00"]))),
    "a_transaction_ends": (1, st.tuples(PLACES)),
    "write": (3, st.tuples(SEGMENT_EVENTS, st.integers(0, 1))),
    "plan_an_append": (1, st.tuples(PLACES, st.sampled_from(AppendOutcome))),
    "stall": (2, st.tuples(PLACES)),
    "resume": (2, st.tuples(PLACES)),
    "deliver_again": (1, st.tuples(PLACES, st.integers(1, 5))),
    "lose_leader": (1, st.tuples(PLACES)),
    "elect_leader": (2, st.tuples(PLACES)),
    "take_offline": (1, st.tuples(PLACES)),
    "fail_bounds": (1, st.tuples(PLACES, st.sampled_from(BoundsFault))),
    "heal_bounds": (1, st.tuples(PLACES)),
    "lose_brokers": (1, st.tuples()),
    "withdraw_rights": (1, st.tuples()),
    "restore": (2, st.tuples()),
    "trim": (1, st.tuples(PLACES, st.floats(0, 1))),
    "compact": (1, st.tuples(PLACES, st.integers(0, 30))),
    "lose_tail": (1, st.tuples(PLACES, st.integers(1, 4))),
    "recreate": (1, st.tuples()),
    "reconcile": (2, st.tuples(ASSIGNMENTS, st.integers(0, 1))),
}
"""What can happen, here or in the script of the topic: how often, and with what."""
STEP = st.sampled_from(
    [name for name, (weight, _) in STEPS.items() for _ in range(weight)]
).flatmap(lambda name: st.tuples(st.just(name), STEPS[name][1]))


class EngineMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.truth = StoredRecords(self.loop, COUNT)
        self.opened = AsyncExitStack()
        self.engines: list[Engine] = []
        self.suspects: list[ChosenShard] = []
        """Shards that read what was cut off since: only a read notices."""
        self.writing: set[asyncio.Task[None]] = set()
        for _ in range(2):
            engine = self.truth.world.engine(SETTINGS, log=CutDetectingLog(self.truth))
            self.engines.append(self.run(self.opened.enter_async_context(engine)))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def does(self, step: str, *given: Any, **said: Any) -> None:
        self.at_once(lambda: getattr(self.truth.world.script, step)(*given, **said))

    def at_once(self, function: Callable[[], object]) -> None:
        """Call *function* on the loop without a turn for any other task."""

        async def called() -> None:
            function()

        self.run(called())

    def shards(self) -> list[tuple[Engine, int, ChosenShard, GateState]]:
        found = []
        for engine in self.engines:
            for place, gated in engine._gate.shards().items():
                if gated.shard is not None:
                    assert isinstance(gated.shard, ChosenShard)
                    found.append((engine, place, gated.shard, gated.gate.state))
        return found

    @rule(steps=st.lists(STEP, min_size=1, max_size=12))
    def happen(self, steps: list[tuple[str, tuple[Any, ...]]]) -> None:
        for name, given in steps:
            if hasattr(self, name):
                getattr(self, name)(*given)
            else:
                self.does(name, *given)
            self.answers_are_current_and_true()
            self.offsets_add_up()
            self.writers_hear_the_truth()

    # --------------------------------------------------------------------------------- time

    def go_on(self, turns: int) -> None:
        async def turn() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(turn())

    def pass_time(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    # ------------------------------------------------------------------------------- events

    def others_store(self, events: list[Event]) -> None:
        self.at_once(lambda: self.truth.world.store(*events))

    def others_store_poison(self, place: int, value: bytes) -> None:
        self.does("write", place, value)

    def a_transaction_ends(self, place: int) -> None:
        self.does("write_transaction", place, is_committed=True)

    def write(self, event: Event, number: int) -> None:
        writer, reader = self.engines[number], self.engines[1 - number]
        self.writing.add(self.loop.create_task(self._write(writer, reader, event)))

    async def _write(self, writer: Engine, reader: Engine, event: Event) -> None:
        place = self.truth.world.place(event.id.partition)  # type: ignore[union-attr]
        stored, cuts = self.truth.stored, len(self.truth.cuts[place])
        try:
            written = await writer.write(event)
        except RlmmError:
            return
        if self.truth.stored is not stored or len(self.truth.cuts[place]) != cuts:
            return  # acknowledged, and then lost with its log
        offset = written.offset
        assert written.metadata_partition == place
        assert encode(event) in stored[place][offset][0]
        self._has_applied(writer, place, offset)
        if written.verdict == APPLIED:
            before = self.truth.shard(place, 0, offset)
            is_whole = not self.truth.has_holes[place] and not self._is_trimmed(writer, place)
            assert before.apply_event(event) == APPLIED or not is_whole
        try:
            await reader.wait_reached({place: offset}, timeout_s=5)
        except RlmmError:
            return
        if self.truth.stored is stored and len(self.truth.cuts[place]) == cuts:
            self._has_applied(reader, place, offset)

    def _has_applied(self, engine: Engine, place: int, offset: int) -> None:
        shard = engine._gate.shards()[place].shard
        assert shard is not None
        assert shard.position > offset

    def plan_an_append(self, place: int, outcome: AppendOutcome) -> None:
        self.does("plan_appends", place, outcome)

    # ------------------------------------------------------------------------------- the log

    def trim(self, place: int, share: float) -> None:
        self.does("delete_records", place, round(len(self.truth.stored[place]) * share))

    def compact(self, place: int, offset: int) -> None:
        self.does("compact", place, [offset])
        self.truth.has_holes[place] = True

    def lose_tail(self, place: int, lost: int) -> None:
        def lose() -> None:
            held = self.truth.world.topic.partitions[place]
            self.truth.world.script.lose_tail(place, max(0, held.next_offset - lost))
            self.truth.cut(place, held.next_offset)
            self.suspects += [
                shard
                for _, at, shard, _ in self.shards()
                if at == place and shard.position > held.next_offset
            ]

        self.at_once(lose)

    def recreate(self) -> None:
        def recreate() -> None:
            self.truth.begin()
            self.suspects += [shard for _, _, shard, _ in self.shards()]
            self.truth.world.script.recreate_topic()

        self.at_once(recreate)

    # --------------------------------------------------------------------------- assignments

    def reconcile(self, assignment: Assignment, number: int) -> None:
        def reconcile() -> None:
            self.engines[number].reconcile(assignment)
            self._check_answers()

        self.at_once(reconcile)

    # ----------------------------------------------------------------------------- invariants

    def answers_are_current_and_true(self) -> None:
        """Check I2: every answer follows from the log up to the position."""
        self.at_once(self._check_answers)

    def _check_answers(self) -> None:
        for engine in self.engines:
            for user in USERS:
                try:
                    found = engine.reads.segments(user)
                except (NotReady, NotAssigned):
                    continue
                except UnknownPartition:
                    found = None
                self._is_current_and_true(engine, user, found)

    def _is_current_and_true(
        self, engine: Engine, user: TopicIdPartition, found: list[Any] | None
    ) -> None:
        place = place_of(user)
        gated = engine._gate.shards()[place]
        follower = engine.statistics().pump.followers[place]
        shard = gated.shard
        assert engine.assignment.covers(user, place)
        assert gated.gate.state is GateState.OPEN
        assert shard is not None
        assert follower.progress.target is not None
        assert shard.position >= follower.progress.target
        if any(shard is suspect for suspect in self.suspects):
            return
        stored = self.truth.stored[place]
        if shard.position < len(stored):
            assert self.loop.time() - stored[shard.position][1] <= OLDEST_S
        # Of a state that retention passed the simulator knows the exact expectation.
        if not self.truth.has_holes[place] and not self._is_trimmed(engine, place):
            expected = self.truth.shard(place, follower.history.first_offset, shard.position)
            assert (found or []) == expected.segments(user)

    def _is_trimmed(self, engine: Engine, place: int) -> bool:
        follower = engine.statistics().pump.followers.get(place)
        return follower is None or follower.history.trimmed_before > 0

    def offsets_add_up(self) -> None:
        """Check I4: a shard counts every offset that it passed exactly once."""
        self.at_once(self._check_sums)

    def _check_sums(self) -> None:
        for engine, place, shard, _ in self.shards():
            first = engine.statistics().pump.followers[place].history.first_offset
            assert shard.statistics().tally.offsets == shard.position - first

    def writers_hear_the_truth(self) -> None:
        for task in [task for task in self.writing if task.done()]:
            self.writing.discard(task)
            task.result()

    def _check_readiness(self) -> None:
        for engine in self.engines:
            wanted = engine.assignment.metadata_partitions(COUNT)
            states = engine.statistics().gates
            assert states == dict.fromkeys(wanted, GateState.OPEN), states

    def teardown(self) -> None:
        self.does("restore")
        for place in range(COUNT):
            self.does("elect_leader", place)
            self.does("heal_bounds", place)
            self.does("resume", place)
        try:
            self.run(asyncio.sleep(60))
            self.suspects.clear()
            self.at_once(self._check_readiness)
            self.answers_are_current_and_true()
            self.offsets_add_up()
            assert all(task.done() for task in self.writing), "every wait ends"
            self.writers_hear_the_truth()
        finally:
            self.run(self.opened.aclose())
            self.loop.close()


def test_engines_whatever_happens_then_answer_only_what_is_current_and_true() -> None:
    """No read is answered from a shard that is behind, stalled, lost or unassigned."""
    run_state_machine_as_test(EngineMachine)
