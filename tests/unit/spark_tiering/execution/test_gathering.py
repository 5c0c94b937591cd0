"""Gathering of outcomes from every source."""

from __future__ import annotations

import pickle

from spark_tiering.execution.protocol import UnitLost
from spark_tiering.execution.spark_engine import UnitResults


def test_outcome_when_it_is_told_twice_then_the_first_one_stands() -> None:
    """The accumulator's outcome of a unit stands; the end of the job does not repeat it."""
    told: list[object] = []
    gathered: UnitResults[str] = UnitResults(2, told.append)
    gathered.add((1, pickle.dumps("first")))
    gathered.add((1, pickle.dumps("second")))
    assert gathered.missing() == [0]
    gathered.lose(0, "died")
    assert gathered.outcomes() == [UnitLost(0, "died"), "first"]
    assert told == ["first", UnitLost(0, "died")]


def test_outcome_when_it_cannot_be_read_then_its_unit_is_lost() -> None:
    """A unit whose result the driver cannot unpickle is lost and not run again."""
    gathered: UnitResults[str] = UnitResults(1, None)
    assert gathered.is_empty
    gathered.add((0, b"no pickle"))
    (lost,) = gathered.outcomes()
    assert isinstance(lost, UnitLost)
    assert lost.why.startswith("its result cannot be read: UnpicklingError")
    assert not gathered.is_empty
