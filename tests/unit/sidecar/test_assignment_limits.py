"""Limits of the partitions that brokers report, and how long they are kept."""

from __future__ import annotations

from typing import Any

import pytest

from rlmm.errors import NotReady, TooBusy
from rlmm.metadata.ids import Uuid
from rlmm.sidecar.broker_assignments import PARTITION_BYTES, REPLICA_BYTES, BrokerAssignments
from rlmm.sidecar.settings import AssignmentLimits
from tests.support.builders import tp
from tests.unit.sidecar.test_broker_starts import Engine

ONE, TWO, THREE, FOUR = (tp("orders", number) for number in range(4))
FIRST, AGAIN = (Uuid.of(0, number) for number in (1, 2))


def made(**limits: Any) -> tuple[BrokerAssignments, Engine]:
    engine: Any = Engine()
    return BrokerAssignments(engine, AssignmentLimits(10, **limits), is_followed=True), engine


def test_broker_when_it_reports_too_many_partitions_then_too_busy_and_keeps_its_own() -> None:
    """Reports in pieces are bounded as one of all is, and the refused one changes nothing."""
    known, engine = made(broker_partitions_max=2)
    start = known.meet(1, FIRST)
    known.assign(start, [ONE, TWO], complete=False)
    with pytest.raises(TooBusy, match=r"sidecar\.broker_partitions_max allows 2"):
        known.assign(start, [THREE], complete=False)
    with pytest.raises(TooBusy, match=r"sidecar\.broker_partitions_max allows 2"):
        known.assign(start, [TWO, THREE, FOUR], complete=True)
    assert engine.user == frozenset([ONE, TWO])
    known.assign(start, [THREE, FOUR], complete=True)
    assert engine.user == frozenset([THREE, FOUR])


def test_brokers_when_all_their_partitions_take_too_much_then_too_busy_and_less_is_taken() -> None:
    """The memory of all brokers' partitions is bounded, and replicas of one count little."""
    one_takes = PARTITION_BYTES + len(ONE.topic)
    known, engine = made(assigned_bytes_max=2 * one_takes + REPLICA_BYTES)
    first, second = known.meet(1, FIRST), known.meet(2, FIRST)
    known.assign(first, [ONE, TWO], complete=True)
    known.assign(second, [TWO], complete=True)
    with pytest.raises(TooBusy, match=r"sidecar\.assigned_bytes_max"):
        known.assign(second, [TWO, THREE], complete=True)
    assert engine.user == frozenset([ONE, TWO])
    known.stop(first, [ONE])
    known.assign(second, [THREE], complete=False)
    assert engine.user == frozenset([TWO, THREE])


def test_broker_when_gone_for_long_then_its_partitions_are_given_up_and_counted() -> None:
    """A broker's partitions outlive its connections for `sidecar.broker_gone_ms`, not for ever."""
    known, engine = made(broker_gone_s=60.0)
    start, other = known.meet(1, FIRST), known.meet(2, FIRST)
    known.assign(start, [ONE], complete=True)
    known.assign(other, [TWO], complete=True)
    known.settle(0.0)
    known.leave(start)
    for now_s in (100.0, 130.0, 159.0):
        known.settle(now_s)
    assert engine.user == frozenset([ONE, TWO])
    again = known.meet(1, FIRST)
    known.settle(170.0)
    known.leave(again)
    known.settle(180.0)
    known.settle(239.0)
    assert engine.user == frozenset([ONE, TWO])
    engine.refusal = NotReady("not now")
    known.settle(240.0)
    engine.refusal = None
    assert known.given_up == 0
    known.settle(241.0)
    assert engine.user == frozenset([TWO])
    assert (known.given_up, list(known.statistics())) == (1, [2])
    known.assign(known.meet(1, AGAIN), [ONE], complete=True)
    assert engine.user == frozenset([ONE, TWO])
