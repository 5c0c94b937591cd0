"""The brokers of a cluster, and the engine that a client means."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import NotAssigned, NotReady, OverBudget, Superseded, TooBusy, WrongCluster
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from rlmm.metadata.ids import Uuid
from rlmm.sidecar import broker_starts
from rlmm.sidecar.broker_assignments import BrokerAssignments
from rlmm.sidecar.broker_starts import SETTLE_S, BrokerStatistics
from rlmm.sidecar.clusters import Clusters
from rlmm.sidecar.settings import AssignmentLimits
from tests.support.builders import tp
from tests.support.server.frame_servers import FixedEngines

if TYPE_CHECKING:
    from rlmm.metadata.assignment import Assignment
    from rlmm.metadata.ids import TopicIdPartition


ONE, TWO, THREE, FOUR = (tp("orders", number) for number in range(4))
FIRST, AGAIN, LATER = (Uuid.of(0, number) for number in (1, 2, 3))


class Engine:
    def __init__(self) -> None:
        self.user: frozenset[TopicIdPartition] | None = None
        self.reads = self
        self.refusal: Exception | None = None

    def narrowed(self, require: Any) -> Any:
        return PartitionQueries(Gate(), require)

    def place_of(self, partition: TopicIdPartition) -> int:
        return 0

    def reconcile(self, assignment: Assignment) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.user = assignment.user
        return 1


def made(brokers_max: int = 10, *, is_followed: bool = True) -> tuple[BrokerAssignments, Engine]:
    engine: Any = Engine()
    return (
        BrokerAssignments(engine, AssignmentLimits(brokers_max), is_followed=is_followed),
        engine,
    )


def test_start_when_nothing_was_said_then_is_not_known_and_not_empty() -> None:
    """A start without an assignment is unknown, which differs from an empty one."""
    known, engine = made()
    start = known.meet(1, FIRST)
    with pytest.raises(NotReady, match="has not said yet"):
        start.require(ONE)
    assert known.stop(start, [ONE]) == 0
    assert start.known is None
    assert engine.user is None
    known.assign(start, [], complete=False)
    with pytest.raises(NotAssigned):
        start.require(ONE)


def test_start_when_given_more_then_grows_and_when_complete_is_replaced() -> None:
    """Only a complete assignment removes partitions, and only a change has a new generation."""
    known, engine = made()
    start = known.meet(1, FIRST)
    assert known.assign(start, [ONE], complete=False) == 1
    assert known.assign(start, [TWO], complete=False) == 2
    assert known.assign(start, [ONE], complete=False) == 2
    assert start.known == engine.user == frozenset({ONE, TWO})
    assert known.assign(start, [THREE], complete=True) == 3
    assert known.stop(start, [ONE, THREE]) == 4
    assert start.known == engine.user == frozenset()


def test_broker_when_started_again_then_loses_all_by_the_first_assign() -> None:
    """A hello removes nothing, and the earlier start is answered until the new one assigns."""
    known, engine = made()
    first = known.meet(1, FIRST)
    known.assign(first, [ONE, TWO], complete=True)
    again = known.meet(1, AGAIN)
    assert (first.known, again.known) == (frozenset({ONE, TWO}), None)
    assert known.stop(again, [ONE]) == 1
    first.require(ONE)
    with pytest.raises(NotReady):
        again.require(ONE)
    assert known.assign(first, [THREE], complete=False) == 2
    assert known.assign(again, [THREE], complete=True) == 3
    assert again.known == engine.user == frozenset({THREE})
    for ask in (
        lambda: first.require(ONE),
        lambda: first.require(THREE),
        lambda: known.assign(first, [ONE], complete=True),
        lambda: known.stop(first, [ONE]),
        lambda: known.meet(1, FIRST),
    ):
        with pytest.raises(Superseded, match="started again"):
            ask()
    assert known.statistics() == {1: BrokerStatistics(1, 2, 1, 5)}


def test_start_when_it_says_what_it_has_in_pieces_then_the_rest_is_kept_until_it_is_named() -> None:
    """Partitions of the earlier start stay and are not ready until a later message names them."""
    known, engine = made()
    known.assign(known.meet(1, FIRST), [ONE, TWO], complete=True)
    again, unnamed = known.meet(1, AGAIN), known.meet(1, None)
    for number, (piece, kept) in enumerate([([THREE], [ONE, TWO]), ([ONE], [TWO]), ([TWO], [])]):
        assert known.assign(again, piece, complete=False) == 2 + number
        assert engine.user == frozenset({ONE, TWO, THREE})
        again.require(piece[0])
        for partition in kept:
            for start in (again, unnamed):
                with pytest.raises(NotReady, match="whether it has it still"):
                    start.require(partition)
        with pytest.raises(NotAssigned):
            again.require(FOUR)
    assert known.statistics() == {1: BrokerStatistics(3, 3, 1, 0)}


@pytest.mark.parametrize("how", ["complete", "stopped", "silent", "started again"])
def test_what_is_kept_when_the_broker_has_it_no_more_then_goes(how: str) -> None:
    """Kept partitions go when a message leaves them out, or some time after the takeover."""
    known, engine = made()
    known.assign(known.meet(1, FIRST), [ONE, TWO], complete=True)
    again = known.meet(1, AGAIN)
    known.assign(again, [THREE], complete=False)
    if how == "complete":
        known.assign(again, [THREE], complete=True)
    elif how == "stopped":
        known.stop(again, [ONE, TWO])
    elif how == "started again":
        later = known.meet(1, LATER)
        known.assign(later, [FOUR], complete=False)
        assert engine.user == frozenset({ONE, TWO, THREE, FOUR})
        known.assign(later, [THREE], complete=True)
        again = later
    else:
        known.settle(1_000.0)
        known.assign(again, [THREE], complete=False)
        known.settle(1_000.0 + SETTLE_S - 0.001)
        assert engine.user == frozenset({ONE, TWO, THREE})
        engine.refusal = OverBudget("for now")
        known.settle(1_000.0 + SETTLE_S)
        engine.refusal = None
        assert engine.user == frozenset({ONE, TWO, THREE})
        known.settle(1_000.0 + SETTLE_S)
    assert engine.user == frozenset({THREE})
    for partition in (ONE, TWO):
        with pytest.raises(NotAssigned):
            again.require(partition)


def test_broker_when_all_that_is_kept_of_it_is_given_up_then_forgotten() -> None:
    """A broker without connection and partitions is forgotten."""
    known, engine = made()
    first, again = known.meet(1, FIRST), known.meet(1, AGAIN)
    known.assign(first, [ONE], complete=True)
    known.assign(again, [], complete=False)
    known.leave(first)
    known.leave(again)
    known.settle(0.0)
    assert set(known.statistics()) == {1}
    known.settle(SETTLE_S)
    assert known.statistics() == {}
    assert engine.user == frozenset()


def test_assignment_when_the_engine_refuses_it_then_nothing_has_changed() -> None:
    """A refused assignment can be sent again and leaves all others unchanged."""
    known, engine = made()
    one, two = known.meet(1, FIRST), known.meet(2, FIRST)
    known.assign(one, [ONE, TWO], complete=True)
    engine.refusal = OverBudget("for now")
    with pytest.raises(OverBudget):
        known.assign(two, [TWO, THREE], complete=True)
    assert two.known is None
    engine.refusal = None
    known.assign(two, [TWO, THREE], complete=True)
    known.stop(one, [TWO])
    assert engine.user == frozenset({ONE, TWO, THREE})
    known.stop(two, [TWO])
    assert engine.user == frozenset({ONE, THREE})


def test_brokers_when_their_new_engine_refuses_what_they_have_then_moved_at_the_next_try() -> None:
    """An engine that has no room for a moment is not left without its assignment for good."""
    known, _ = made()
    start = known.meet(1, FIRST)
    known.assign(start, [ONE], complete=True)
    known.move_to(None)
    engine: Any = Engine()
    engine.refusal = OverBudget("for now")
    with pytest.raises(OverBudget):
        known.move_to(engine)
    assert known.engine is None
    assert not start.is_of(engine)
    engine.refusal = None
    known.move_to(engine)
    assert start.is_of(engine)
    assert engine.user == frozenset({ONE})


def test_earlier_start_when_it_speaks_only_after_a_later_one_then_refused() -> None:
    """The order of the first hellos decides which start is the earlier one."""
    known, _ = made()
    first, again = known.meet(1, FIRST), known.meet(1, AGAIN)
    known.leave(first)
    known.assign(again, [ONE], complete=True)
    with pytest.raises(Superseded):
        known.meet(1, FIRST)
    with pytest.raises(Superseded):
        known.assign(first, [TWO], complete=True)
    later = known.meet(1, LATER)
    known.assign(later, [TWO], complete=True)
    with pytest.raises(Superseded):
        known.assign(again, [ONE], complete=True)


def test_start_without_a_name_then_speaks_for_whichever_spoke_last() -> None:
    """A start without a name is never the earlier one."""
    known, _ = made()
    unnamed = known.meet(1, None)
    known.assign(unnamed, [ONE], complete=True)
    first = known.meet(1, FIRST)
    assert first.known is None
    known.assign(first, [TWO], complete=True)
    assert unnamed.known == first.known == frozenset({TWO})
    known.assign(unnamed, [ONE], complete=False)
    assert first.known == frozenset({ONE, TWO})
    known.assign(known.meet(1, AGAIN), [THREE], complete=True)
    assert unnamed.known == frozenset({THREE})
    with pytest.raises(Superseded):
        first.require(ONE)


def test_takeover_then_said_in_the_log_and_louder_while_the_earlier_start_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log shows each takeover, as a warning only while the earlier start is connected."""
    caplog.set_level(logging.INFO)
    known, _ = made()
    first = known.meet(7, FIRST)
    known.assign(first, [ONE], complete=True)
    known.leave(first)
    again = known.meet(7, AGAIN)
    known.assign(again, [ONE], complete=True)
    assert [(line.levelname, "broker 7" in line.message) for line in caplog.records] == [
        ("INFO", True)
    ]
    caplog.clear()
    known.assign(known.meet(7, LATER), [ONE], complete=True)
    for _ in range(3):
        with pytest.raises(Superseded):
            again.require(ONE)
    assert [line.levelname for line in caplog.records] == ["WARNING", "WARNING"]
    assert "1 connections" in caplog.messages[0]
    assert "two brokers have one id" in caplog.messages[1]


def test_takeover_from_a_nameless_start_then_no_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """A takeover from a nameless start logs no refusal: its connections are still answered."""
    caplog.set_level(logging.INFO)
    known, _ = made()
    unnamed = known.meet(7, None)
    known.assign(unnamed, [ONE], complete=True)
    known.assign(known.meet(7, FIRST), [ONE], complete=True)
    unnamed.require(ONE)
    assert [line.levelname for line in caplog.records] == ["INFO"]


def test_brokers_when_followed_then_the_engine_answers_for_what_any_of_them_has() -> None:
    """The union, also of brokers that are not connected."""
    known, engine = made()
    one, two = known.meet(1, FIRST), known.meet(2, FIRST)
    known.assign(one, [ONE], complete=True)
    known.assign(two, [TWO], complete=True)
    known.leave(one)
    assert engine.user == frozenset({ONE, TWO})
    known.stop(two, [TWO])
    assert engine.user == frozenset({ONE})
    alone, untouched = made(is_followed=False)
    alone.assign(alone.meet(1, FIRST), [ONE], complete=True)
    assert untouched.user is None


def test_broker_when_it_has_nothing_and_is_not_there_then_forgotten() -> None:
    """A broker without an assignment and a connection is forgotten."""
    known, _ = made(2)
    for number in range(100):
        start = known.meet(number, FIRST)
        if number % 2:
            known.assign(start, [ONE], complete=True)
            known.stop(start, [ONE])
        known.leave(start)
    assert known.statistics() == {}


def test_broker_when_it_is_one_too_many_then_refused_by_name_and_the_others_are_not() -> None:
    """The service bounds the brokers that it remembers and refuses further ones by name."""
    known, _ = made(2)
    one, two = known.meet(1, FIRST), known.meet(2, FIRST)
    known.assign(one, [ONE], complete=True)
    known.leave(one)
    with pytest.raises(TooBusy, match=r"sidecar\.brokers_max"):
        known.meet(3, FIRST)
    known.leave(known.meet(1, AGAIN))
    known.leave(two)
    known.meet(3, FIRST)


def test_starts_of_a_broker_then_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some starts of a broker are remembered, and the one with the assignment always is."""
    monkeypatch.setattr(broker_starts, "STARTS_KEPT", 4)
    known, _ = made()
    first = known.meet(1, FIRST)
    known.assign(first, [ONE], complete=True)
    known.leave(first)
    for number in range(10, 100):
        known.leave(known.meet(1, Uuid.of(0, number)))
    assert len(first.broker._starts) == 4
    assert known.meet(1, FIRST) is first
    assert first.known == frozenset({ONE})


def engine(cluster_id: str | None) -> Any:
    identity = None if cluster_id is None else SimpleNamespace(cluster_id=cluster_id)
    return SimpleNamespace(identity=identity)


def test_engine_when_its_log_is_of_another_cluster_then_refused_with_both_ids() -> None:
    """The log's own cluster id decides, and the refusal names both ids."""
    clusters = Clusters(FixedEngines([]), AssignmentLimits(10))
    with pytest.raises(WrongCluster, match=r"blue.*green"):
        clusters.require_right(engine("green"), "blue")
    assert clusters.require_right(engine("blue"), "blue")
    assert clusters.require_right(engine(UNKNOWN_CLUSTER_ID), "blue")
    assert clusters.require_right(engine("green"), None)
    assert not clusters.require_right(engine(None), "blue")
