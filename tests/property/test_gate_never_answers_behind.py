"""The gate, given facts in any order, answers only for assigned, current partitions (I2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rlmm.errors import NotAssigned, NotReady, RlmmError, Stopped
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.replay_progress import (
    CaughtUp,
    FellBehind,
    NotReadyReason,
    PartitionReassigned,
    ReplayProgress,
    StateLost,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from tests.support.builders import segment_id, started, tp
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from rlmm.log.replay_progress import Fact
    from rlmm.metadata.ids import TopicIdPartition


COUNT = 2
PLACES = st.integers(0, COUNT - 1)
USERS = [tp("orders", number) for number in range(6)]
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.just(CaughtUp()),
    st.builds(FellBehind, st.sampled_from(NotReadyReason), st.just("late")),
    st.builds(StateLost, st.sampled_from(NotReadyReason), st.just("lost")),
    st.builds(
        PartitionReassigned, st.sampled_from([NotReadyReason.LOADING, NotReadyReason.REPLAYING])
    ),
)
ASSIGNMENTS = st.one_of(
    st.just(Assignment.everything()),
    st.just(Assignment.nothing()),
    st.sets(PLACES).map(Assignment.of_metadata),
    st.sets(st.sampled_from(USERS)).map(Assignment.of_user),
)


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, COUNT)


class GateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.reads = PartitionQueries(self.gate)
        self.is_known = False
        self.is_over = False
        self.assignment = Assignment.nothing()
        self.begun: dict[int, tuple[bool, bool, bool]] = {}
        """Place -> whether a shard is held, whether all was read, whether it is lost."""

    @initialize()
    def give_everything(self) -> None:
        self.connect()
        self.assign(Assignment.everything())
        for place in range(COUNT):
            self.begin(place)
            self.hold(place)

    @rule()
    def connect(self) -> None:
        self.gate.connect(COUNT)
        self.is_known = True
        self.begun.clear()

    @rule()
    def disconnect(self) -> None:
        self.gate.disconnect("gone")
        self.is_known = False
        self.begun.clear()

    @rule(assignment=ASSIGNMENTS)
    def assign(self, assignment: Assignment) -> None:
        self.gate.assign(assignment)
        self.assignment = assignment

    @rule(place=PLACES)
    def begin(self, place: int) -> None:
        self.gate.begin_partition(place, ReplayProgress(place, 0, None, None, None, None))
        self.begun[place] = (False, False, False)

    @rule(place=PLACES)
    def end(self, place: int) -> None:
        self.gate.end_partition(place)
        self.begun.pop(place, None)

    @rule(place=PLACES)
    def hold(self, place: int) -> None:
        shard = ChosenShard(place)
        for user in USERS:
            if place_of(user) == place:
                shard.apply_event(started(segment_id("a", user)))
        self.gate.set_shard(place, shard)
        if place in self.begun:
            _, is_read, is_lost = self.begun[place]
            self.begun[place] = (True, is_read, is_lost)

    @rule(place=PLACES, facts=st.lists(FACTS, min_size=1, max_size=6))
    def meet(self, place: int, facts: list[Fact]) -> None:
        for fact in facts:
            self.gate.take_fact(place, fact, ReplayProgress(place, 0, 0, 0, 0, 0.0))
            if place in self.begun:
                self._note(place, fact)
            self.answers_exactly_what_may_be_answered()

    def _note(self, place: int, fact: Fact) -> None:
        is_held, is_read, is_lost = self.begun[place]
        match fact:
            case CaughtUp():
                is_read = not is_lost
            case FellBehind():
                is_read = False
            case StateLost():
                is_read, is_lost = False, True
            case PartitionReassigned(why=why):
                is_held = is_held and why is not NotReadyReason.LOADING
                is_read = is_lost = False
        self.begun[place] = (is_held, is_read, is_lost)

    @precondition(lambda self: not self.is_over)
    @rule(odds=st.integers(0, 9))
    def stop(self, odds: int) -> None:
        if odds == 0:
            self.gate.stop(Stopped, "over")
            self.is_over = True

    @invariant()
    def answers_exactly_what_may_be_answered(self) -> None:
        for user in USERS:
            place = place_of(user)
            expected: type[Exception] | None = None
            if self.is_over:
                expected = Stopped
            elif not self.is_known:
                expected = NotReady
            elif not self.assignment.covers(user, place):
                expected = NotAssigned
            elif self.begun.get(place) != (True, True, False):
                expected = NotReady
            try:
                assert len(self.reads.segments(user)) == 1
                found: type[Exception] | None = None
            except RlmmError as error:
                found = type(error)
            assert found is expected, (user, place, self.begun)


def test_gate_when_told_facts_in_any_order_then_answers_only_what_is_current() -> None:
    """No read is answered from a shard that is behind, stalled, lost or unassigned."""
    run_state_machine_as_test(GateMachine)
