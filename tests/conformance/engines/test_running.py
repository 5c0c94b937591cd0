"""Units on every engine, wherever it runs them."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from spark_tiering.execution.protocol import CANCELLED, UnitLost
from tests.support.spark.work_units import Unit, runs, work

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.execution.protocol import ExecutionEngine


def test_outcomes_when_all_are_done_then_in_order_of_units(engine: ExecutionEngine) -> None:
    """The outcomes stand in the order of the units, whichever unit was done first."""
    units = [Unit(number) for number in range(20)]
    assert engine.run_units(units, work) == [number**2 for number in range(20)]


def test_outcomes_when_there_are_no_units_then_are_none(engine: ExecutionEngine) -> None:
    """An engine without units returns at once and reports no outcome."""
    told: list[object] = []
    assert engine.run_units([], work, told.append) == []
    assert not told


def test_outcome_when_known_then_reported_in_the_callers_thread(engine: ExecutionEngine) -> None:
    """The engine reports each outcome once, in the caller's thread, so no lock is needed."""
    told: list[object] = []
    threads: set[threading.Thread] = set()

    def hear(outcome: object) -> None:
        told.append(outcome)
        threads.add(threading.current_thread())

    units = [Unit(number, "raise" if number == 3 else "") for number in range(8)]
    outcomes = engine.run_units(units, work, hear)
    assert sorted(map(str, told)) == sorted(map(str, outcomes))
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("raise", "ValueError: the disk is on fire (work_units.py:"),
        ("leave", "SystemExit: 7 (work_units.py:"),
        ("unsendable", "its result cannot be sent: "),
    ],
)
def test_unit_when_it_fails_then_lost_alone(engine: ExecutionEngine, does: str, why: str) -> None:
    """A unit that raises, exits or returns an unsendable value is lost alone, with the reason."""
    outcomes = engine.run_units([Unit(4), Unit(5, does), Unit(6)], work)
    lost = outcomes[1]
    assert isinstance(lost, UnitLost)
    assert lost.index == 1
    assert lost.why.startswith(why)
    assert [outcomes[0], outcomes[2]] == [16, 36]


def test_unit_when_it_fails_then_not_repeated(engine: ExecutionEngine, tmp_path: Path) -> None:
    """The engine repeats a unit only when its worker died, not when the unit failed."""
    engine.run_units([Unit(1, "raise", tmp_path)], work)
    assert runs(tmp_path, 1) == 1


def test_unit_when_its_function_changes_it_then_is_a_copy(engine: ExecutionEngine) -> None:
    """A unit gets a copy of its arguments, also on an engine in the same process."""
    unit = Unit(2)
    engine.run_units([unit], work)
    assert unit.seen == []


def test_function_when_it_is_a_closure_then_is_run(engine: ExecutionEngine) -> None:
    """A unit runs a closure, which no worker can import by name."""
    added = 10
    assert engine.run_units([1, 2], lambda unit: unit + added) == [11, 12]
    assert engine.run_units([1, 2], partial(pow, 3)) == [3, 9]


def test_call_when_its_callback_raises_then_ends(engine: ExecutionEngine, tmp_path: Path) -> None:
    """An error of the caller's own callback ends the call, and the next call works."""

    class OwnTrouble(Exception):
        pass

    def refuse(outcome: object) -> None:
        raise OwnTrouble

    with pytest.raises(OwnTrouble):
        engine.run_units([Unit(number, "", tmp_path) for number in range(3)], work, refuse)
    assert engine.run_units([Unit(7)], work) == [49]


def test_engine_when_cancelled_then_runs_nothing(engine: ExecutionEngine, tmp_path: Path) -> None:
    """A cancelled engine loses all units of a later call with one reason."""
    engine.cancel()
    outcomes = engine.run_units([Unit(1, "", tmp_path), Unit(2, "", tmp_path)], work)
    assert outcomes == [UnitLost(0, CANCELLED), UnitLost(1, CANCELLED)]
    assert runs(tmp_path, 1) == runs(tmp_path, 2) == 0


def test_slots_when_asked_then_are_as_many_as_were_given(engine: ExecutionEngine) -> None:
    """An engine reports the number of slots it was given."""
    assert engine.slots in (1, 2)
