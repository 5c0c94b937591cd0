"""Units run in this process, and the work of a worker beside them."""

from __future__ import annotations

import gc
import pickle
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from spark_tiering.execution import task_entry
from spark_tiering.execution.in_process import InProcess
from spark_tiering.execution.protocol import CANCELLED, UnitLost
from spark_tiering.execution.task_entry import TaskContext, carry_out
from tests.support.spark.work_units import Unit, runs, work

if TYPE_CHECKING:
    from pathlib import Path


def test_engine_when_it_is_cancelled_in_the_middle_then_keeps_what_is_done(tmp_path: Path) -> None:
    """A cancelled engine keeps its outcomes and never starts the remaining units."""
    engine = InProcess()
    units = [Unit(number, "", tmp_path) for number in range(3)]
    outcomes = engine.run_units(units, work, lambda _: engine.cancel())
    assert outcomes == [0, UnitLost(1, CANCELLED), UnitLost(2, CANCELLED)]
    assert runs(tmp_path, 1) == runs(tmp_path, 2) == 0


def test_outcome_when_one_unit_is_done_then_is_told_before_the_next_begins(tmp_path: Path) -> None:
    """The second unit sees the effect of the first one's reported outcome."""
    units = [Unit(1, "", tmp_path), Unit(2, "wait", tmp_path)]
    outcomes = InProcess().run_units(units, work, lambda _: (tmp_path / "go-on").touch())
    assert outcomes == [1, 4]


def test_unit_when_it_cannot_be_sent_then_is_found_before_any_is_run(tmp_path: Path) -> None:
    """A unit that cannot be pickled is refused before any unit runs, as on Spark."""
    unsendable: list[Any] = [Unit(1, "", tmp_path), lambda: 1]
    with pytest.raises((AttributeError, TypeError)):
        InProcess().run_units(unsendable, work)
    assert runs(tmp_path, 1) == 0


def test_unit_when_it_is_interrupted_then_the_interrupt_is_the_callers() -> None:
    """An interrupt during a unit reaches the caller and is no failure of the unit."""

    def interrupted(unit: int) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        InProcess().run_units([1], interrupted)


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: found.append("frozen"))
    monkeypatch.setattr(task_entry, "_set_apart_at", set())
    return found


def test_imported_modules_are_frozen(freezes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker freezes imported modules once after each change."""
    errand = TaskContext(1, pickle.dumps(abs))
    for _ in range(3):
        assert pickle.loads(carry_out(errand, 0, pickle.dumps(-7))) == 7
    assert freezes == ["frozen"]
    monkeypatch.setitem(sys.modules, "imported_by_a_unit", ModuleType("imported_by_a_unit"))
    carry_out(errand, 1, pickle.dumps(-8))
    carry_out(errand, 2, pickle.dumps(-9))
    assert freezes == ["frozen", "frozen"]
