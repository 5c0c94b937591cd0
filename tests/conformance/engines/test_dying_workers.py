"""Engines on Spark when workers die, when a call is cancelled, and with unfit workers."""

from __future__ import annotations

import os
import re
import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EngineUnfit
from spark_tiering.execution import spark_engine as spark_engine_module
from spark_tiering.execution.protocol import CANCELLED, UnitLost
from spark_tiering.execution.task_entry import TaskContext
from tests.support.spark.work_units import Unit, is_running, runs, wait_for, work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from spark_tiering.execution.protocol import ExecutionEngine


def test_unit_when_its_worker_is_killed_once_then_is_run_again(
    spark_engine: ExecutionEngine, tmp_path: Path
) -> None:
    """A worker killed once costs its unit a second try within the same job and no result."""
    units = [Unit(3, "", tmp_path), Unit(4, "die-once", tmp_path), Unit(5, "", tmp_path)]
    tries_before = 1
    assert spark_engine.run_units(units, work) == [9, tries_before, 25]
    assert runs(tmp_path, 4) == 2


def test_unit_when_it_kills_always_then_lost(dying_engine: ExecutionEngine, tmp_path: Path) -> None:
    """A unit that always kills its worker is lost alone, after two jobs."""
    told: list[object] = []
    units = [Unit(number, "die" if number == 3 else "", tmp_path) for number in range(6)]
    outcomes = dying_engine.run_units(units, work, told.append)
    lost = UnitLost(3, "the Python worker died")
    assert outcomes == [lost if number == 3 else number**2 for number in range(6)]
    assert sorted(map(str, told)) == sorted(map(str, outcomes))
    assert runs(tmp_path, 3) == 8


def test_unit_when_job_fails_then_one_worker(dying_engine: ExecutionEngine, tmp_path: Path) -> None:
    """The worker of a failed job has ended before another worker gets its unit."""
    units = [Unit(1, "hang-once", tmp_path), Unit(2, "die-beside", tmp_path)]
    was_running, lost = dying_engine.run_units(units, work)
    assert was_running is False
    assert lost == UnitLost(1, "the Python worker died")


def test_outcome_when_its_task_has_ended_then_is_told_while_others_still_run(
    early_engine: ExecutionEngine, tmp_path: Path
) -> None:
    """The engine reports the first unit's outcome while the second unit still runs."""

    def hear(outcome: object) -> None:
        if outcome == 1:
            (tmp_path / "go-on").touch()

    units = [Unit(1, "", tmp_path), Unit(2, "wait", tmp_path)]
    assert early_engine.run_units(units, work, hear) == [1, 4]


def test_units_when_run_then_each_is_a_task(spark_engine: ExecutionEngine) -> None:
    """Each unit runs in a task of its own, so one that kills its worker kills no other unit."""
    tasks = spark_engine.run_units([Unit(number, "task") for number in range(20)], work)
    assert len(set(tasks)) == 20


def test_units_when_run_then_each_runs_once(spark_engine: ExecutionEngine, tmp_path: Path) -> None:
    """Spark runs each job once."""
    spark_engine.run_units([Unit(number, "", tmp_path) for number in range(12)], work)
    assert [runs(tmp_path, number) for number in range(12)] == [1] * 12


def test_call_when_cancelled_then_all_end(spark_engine: ExecutionEngine, tmp_path: Path) -> None:
    """A cancelled call ends a hanging unit with its worker before it returns."""

    def cancel() -> None:
        wait_for(tmp_path / "hanging")
        spark_engine.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    outcomes = spark_engine.run_units([Unit(1, "hang", tmp_path)], work)
    thread.join()
    assert outcomes == [UnitLost(0, CANCELLED)]
    assert not is_running(int((tmp_path / "hanging").read_text()))


def test_call_when_interrupted_then_all_end(spark_engine: ExecutionEngine, tmp_path: Path) -> None:
    """A keyboard interrupt ends the call with its job and workers, and the next call works."""

    units = [Unit(1, "hang", tmp_path), Unit(2, "interrupt", tmp_path, os.getpid())]
    with pytest.raises(KeyboardInterrupt):
        spark_engine.run_units(units, work)
    assert not is_running(int((tmp_path / "hanging").read_text()))
    assert spark_engine.run_units([Unit(3)], work) == [9]


@pytest.fixture
def not_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engine_module, "NOTICE_S", 0.0)


@pytest.fixture
def of_the_driver_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[object], object]:
    (tmp_path / "of_the_driver_alone.py").write_text("def do(unit):\n    return unit\n")
    monkeypatch.syspath_prepend(tmp_path)
    do: Callable[[object], object] = __import__("of_the_driver_alone").do
    return do


def test_engine_when_workers_have_another_version_then_is_unfit(
    rdd_engine: ExecutionEngine, not_waiting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With different versions of driver and workers the engine runs nothing and names both."""
    monkeypatch.setattr(spark_engine_module, "TaskContext", partial(TaskContext, version="0.0.1"))
    with pytest.raises(EngineUnfit, match=r"no unit can run: the driver is rlmm 0\.0\.1, a worker"):
        rdd_engine.run_units([Unit(1), Unit(2)], work)


def test_engine_when_workers_cannot_import_the_function_then_is_unfit(
    dying_engine: ExecutionEngine,
    not_waiting: None,
    of_the_driver_alone: Callable[[object], object],
) -> None:
    """A package missing on the workers is named in one line."""
    said = (
        r"no unit can run: a worker cannot read what it is to run: ModuleNotFoundError:"
        r" No module named 'of_the_driver_alone' \(task_entry\.py:\d+\)"
    )
    with pytest.raises(EngineUnfit) as raised:
        dying_engine.run_units([1, 2, 3], of_the_driver_alone)
    assert re.fullmatch(said, str(raised.value))
