"""Rounds of units as jobs: repeats, the end of a call, and the outcomes of units."""

from __future__ import annotations

import pickle
import threading
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import EngineUnfit
from spark_tiering.execution import spark_engine
from spark_tiering.execution.arrow import JOB_BYTES_MAX, portions_of
from spark_tiering.execution.protocol import CANCELLED, UnitLost
from spark_tiering.execution.spark_engine import SparkEngine, UnitResults
from spark_tiering.execution.task_entry import Parcel, TaskContext, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class FakeJobs:
    """Run units in this process, one after the other, until one of *deadly* comes."""

    def __init__(self, deadly: Sequence[int] = (), *, probe_fails: bool = False) -> None:
        self.kill_timeout_s = 0.0
        self.slots = 2
        self.jobs: list[list[int]] = []
        """The units of each job but for probes, in the order in which jobs began."""
        self.probes = 0
        self.most = 0
        self._deadly = set(deadly)
        self._probe_fails = probe_fails
        self._running = 0
        self._lock = threading.Lock()
        self.cancelled = threading.Event()

    def portions(self, parcels: list[Parcel]) -> list[list[Parcel]]:
        return [parcels] if parcels else []

    def run(
        self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
    ) -> None:
        if errand.is_probe:
            self.probes += 1
            if self._probe_fails:
                msg = "no worker anywhere"
                raise RuntimeError(msg)
        else:
            with self._lock:
                self.jobs.append([index for index, _ in parcels])
                self._running += 1
                self.most = max(self.most, self._running)
        try:
            for index, unit in parcels:
                if index in self._deadly and not errand.is_probe:
                    msg = f"Python worker exited unexpectedly ({index})"
                    raise RuntimeError(msg)
                parcel = index, carry_out(errand, index, unit)
                arrive(parcel)
                arrive(parcel)
        finally:
            if not errand.is_probe:
                with self._lock:
                    self._running -= 1

    def cancel(self) -> None:
        self.cancelled.set()


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_engine, "NOTICE_S", 0.0)
    monkeypatch.setattr(spark_engine, "LOOK_S", 0.001)


def test_units_when_all_are_done_then_are_one_job() -> None:
    """Without failures all units are one job, and no probe runs."""
    jobs = FakeJobs()
    assert SparkEngine(jobs).run_units([-1, -2], abs) == [1, 2]
    assert jobs.jobs == [[0, 1]]
    assert jobs.probes == 0


def test_job_when_it_fails_then_units_without_an_outcome_are_jobs_of_their_own() -> None:
    """When a job fails, each unit without an outcome is a job, so that only one is lost."""
    jobs = FakeJobs(deadly=[2])
    told: list[object] = []
    outcomes = SparkEngine(jobs).run_units([-1, -2, -3, -4, -5], abs, told.append)
    lost = UnitLost(2, "the Python worker died")
    assert outcomes == [1, 2, lost, 4, 5]
    assert jobs.jobs[0] == [0, 1, 2, 3, 4]
    assert sorted(jobs.jobs[1:]) == [[2], [3], [4]]
    assert jobs.probes == 1
    assert jobs.most <= jobs.slots
    assert len(told) == 5


def test_job_when_it_fails_and_no_unit_can_run_then_the_engine_is_unfit() -> None:
    """When a job and the probe fail, the engine is unfit and no unit is blamed."""
    jobs = FakeJobs(deadly=[0], probe_fails=True)
    with pytest.raises(EngineUnfit, match=r"^no unit can run: no worker anywhere$"):
        SparkEngine(jobs).run_units([-1, -2], abs)
    assert jobs.jobs == [[0, 1]]


def test_job_when_it_fails_and_spark_has_gone_then_the_rest_is_lost() -> None:
    """When Spark has gone, the outcomes that came back are kept and the other units are lost."""
    jobs = FakeJobs(deadly=[1], probe_fails=True)
    assert SparkEngine(jobs).run_units([-1, -2, -3], abs) == [
        1,
        UnitLost(1, "no worker anywhere"),
        UnitLost(2, "no worker anywhere"),
    ]


def test_engine_when_cancelled_while_a_job_runs_then_cancels_until_it_ends() -> None:
    """A cancel during a job is repeated until the job ends, and outcomes until then are kept."""

    class Stubborn(FakeJobs):
        def run(
            self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
        ) -> None:
            arrive((0, pickle.dumps("done")))
            for _ in range(2):
                assert self.cancelled.wait(60)
                self.cancelled.clear()
            msg = "cancelled"
            raise RuntimeError(msg)

    jobs = Stubborn()
    engine = SparkEngine(jobs)
    outcomes = engine.run_units([1, 2], abs, lambda _: engine.cancel())
    assert outcomes == ["done", UnitLost(1, CANCELLED)]


def test_call_when_who_is_told_raises_then_what_runs_is_cancelled_first() -> None:
    """An error of the caller's callback leaves the call after the running job has ended."""

    class Patient(FakeJobs):
        has_ended = False

        def run(
            self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
        ) -> None:
            arrive((0, pickle.dumps("done")))
            assert self.cancelled.wait(60)
            self.has_ended = True

    def refuse(outcome: object) -> None:
        raise ZeroDivisionError

    jobs = Patient()
    with pytest.raises(ZeroDivisionError):
        SparkEngine(jobs).run_units([1, 2], abs, refuse)
    assert jobs.has_ended


def test_slots_when_spark_does_not_answer_then_are_an_error_of_ours() -> None:
    """An unanswered request for slots is an error of ours."""

    class Gone(FakeJobs):
        @property
        def slots(self) -> int:
            msg = "connection refused"
            raise ConnectionError(msg)

        @slots.setter
        def slots(self, value: int) -> None:
            pass

    with pytest.raises(EngineUnfit, match=r"^Spark does not answer: connection refused$"):
        _ = SparkEngine(Gone()).slots


def test_engine_when_closed_twice_then_its_session_ends_once() -> None:
    """A second close of an engine does not call the session's end again."""
    ended: list[int] = []
    engine = SparkEngine(FakeJobs(), lambda: ended.append(1))
    with engine:
        pass
    engine.close()
    assert ended == [1]


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


def test_units_when_they_are_small_then_are_one_job() -> None:
    """Small units form one job, since between jobs most slots are idle."""
    parcels = [(number, b"x") for number in range(1_000)]
    assert portions_of(parcels, JOB_BYTES_MAX) == [parcels]
    assert portions_of([], JOB_BYTES_MAX) == []


def test_units_when_they_are_many_bytes_then_no_job_has_more_than_its_limit() -> None:
    """No job has more bytes of units than the limit, and a unit above it is a job alone."""
    sizes = [40, 60, 1, 99, 1, 101, 5]
    parcels = [(number, bytes(size)) for number, size in enumerate(sizes)]
    jobs = portions_of(parcels, 100)
    assert [[len(unit) for _, unit in job] for job in jobs] == [[40, 60], [1, 99], [1], [101], [5]]
    assert list(chain(*jobs)) == parcels
