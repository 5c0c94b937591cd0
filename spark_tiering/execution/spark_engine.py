"""
The engine on Spark: units as jobs, their outcomes, their retries and their end. Where the one job
fails, units without an outcome are run again, each as a job of its own, to find the one at fault.
Invariant: when a call returns or raises, no task of it runs any more.
"""

from __future__ import annotations

import pickle
import queue
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol

from pyspark import cloudpickle

from rlmm.base.closing import ClosedByWith
from rlmm.errors import EngineUnfit
from spark_tiering.execution.failure_causes import cause_of
from spark_tiering.execution.protocol import CANCELLED, R, U, UnitLost
from spark_tiering.execution.task_entry import Parcel, TaskContext, said_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class UnitResults(Generic[R]):
    """Collects the outcomes; the thread that adds one passes it on, once."""

    def __init__(self, count: int, tell: Callable[[R | UnitLost], None] | None) -> None:
        self._count = count
        self._tell = tell
        self._found: dict[int, R | UnitLost] = {}

    def add(self, parcel: Parcel) -> None:
        """Add the result of a unit; a second result is passed over."""
        index, packed = parcel
        if index in self._found:
            return
        try:
            outcome: R | UnitLost = pickle.loads(packed)  # noqa: S301 - made by our own task
        except Exception as error:  # noqa: BLE001 - whatever an object's own pickling raises
            outcome = UnitLost(index, f"its result cannot be read: {said_by(error)}")
        self._keep(index, outcome)

    def lose(self, index: int, why: str) -> None:
        self._keep(index, UnitLost(index, why))

    def _keep(self, index: int, outcome: R | UnitLost) -> None:
        self._found[index] = outcome
        if self._tell is not None:
            self._tell(outcome)

    @property
    def is_empty(self) -> bool:
        return not self._found

    def missing(self) -> list[int]:
        return [index for index in range(self._count) if index not in self._found]

    def outcomes(self) -> list[R | UnitLost]:
        return [self._found[index] for index in range(self._count)]


LOOK_S: Final = 0.5
"""How often a cancelled job is cancelled again: one that was about to begin does not hear it."""
GIVE_UP_S: Final = 60.0
"""How long the engine waits for cancelled jobs to end."""
NOTICE_S: Final = 2.5
"""How late Spark looks at a cancelled task; only then `spark.python.task.killTimeout` begins."""


class SparkJobs(Protocol):
    @property
    def slots(self) -> int: ...

    @property
    def kill_timeout_s(self) -> float: ...

    def portions(self, parcels: list[Parcel]) -> list[list[Parcel]]:
        """Return the jobs that *parcels* are best made of, to be run one after the other."""

    def run(
        self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
    ) -> None:
        """Run a job, a task a parcel; *arrive* gets outcomes, also twice and from any thread."""

    def cancel(self) -> None: ...


class UnitArrival(NamedTuple):
    parcel: Parcel


class SparkJobFailure(NamedTuple):
    indexes: list[int]
    why: str


def _packed(thing: object) -> bytes:
    packed: bytes = cloudpickle.dumps(thing)  # type: ignore[no-untyped-call]  # has no annotations
    return packed


def _needed() -> tuple[str, ...]:
    """Return the libraries of objects that this process uses, as the tasks will."""
    return tuple(name for name in ("awscrt", "boto3", "zstandard") if name in sys.modules)


def _drop(parcel: Parcel) -> None: ...


class SparkEngine(ClosedByWith):
    def __init__(self, jobs: SparkJobs, end: Callable[[], None] | None = None) -> None:
        self._jobs = jobs
        self._end = end
        self._rounds = 0
        self._is_cancelled = threading.Event()

    @property
    def slots(self) -> int:
        """Return the slots that Spark has now. Raise `EngineUnfit` where it does not answer."""
        try:
            return self._jobs.slots
        except Exception as error:
            msg = f"Spark does not answer: {cause_of(error)}"
            raise EngineUnfit(msg) from error

    def run_units(
        self,
        units: Sequence[U],
        fn: Callable[[U], R],
        on_result: Callable[[R | UnitLost], None] | None = None,
    ) -> list[R | UnitLost]:
        parcels: list[Parcel] = [(index, _packed(unit)) for index, unit in enumerate(units)]
        gathered: UnitResults[R] = UnitResults(len(parcels), on_result)
        errand = TaskContext(0, _packed(fn), needs=_needed())
        why = self._round(errand, self._jobs.portions(parcels), 1, gathered.add)
        if not gathered.missing():
            return gathered.outcomes()
        self._let_workers_end()
        if not self._is_cancelled.is_set():
            why |= self._again(errand, [parcels[index] for index in gathered.missing()], gathered)
            if self._is_cancelled.is_set():
                self._let_workers_end()
        for index in gathered.missing():
            gathered.lose(index, CANCELLED if self._is_cancelled.is_set() else why.get(index, ""))
        return gathered.outcomes()

    def _again(
        self, errand: TaskContext, parcels: list[Parcel], gathered: UnitResults[R]
    ) -> dict[int, str]:
        """Run each of *parcels* as its own job; a failed one has no other task still running."""
        unfit = self._round(replace(errand, is_probe=True), [parcels[:1]], 1, _drop)
        if not unfit:
            return self._round(errand, [[each] for each in parcels], self.slots, gathered.add)
        (why,) = unfit.values()
        if gathered.is_empty and not self._is_cancelled.is_set():
            msg = f"no unit can run: {why}"
            raise EngineUnfit(msg)
        return {index: why for index, _ in parcels}

    def _round(
        self,
        errand: TaskContext,
        portions: list[list[Parcel]],
        at_a_time: int,
        add: Callable[[Parcel], None],
    ) -> dict[int, str]:
        self._rounds += 1
        told: queue.SimpleQueue[UnitArrival | SparkJobFailure | None] = queue.SimpleQueue()
        waiting = portions[::-1]
        lane = partial(self._lane, replace(errand, number=self._rounds), waiting, told)
        lanes = [
            threading.Thread(target=lane, name="rlmm-spark-job", daemon=True)
            for _ in range(min(at_a_time, len(portions)))
        ]
        failed: dict[int, str] = {}
        try:
            for thread in lanes:
                thread.start()
            under_way = len(lanes)
            while under_way:
                try:
                    said = told.get(timeout=LOOK_S)
                except queue.Empty:
                    if self._is_cancelled.is_set():
                        self._cancel_jobs()
                    continue
                if isinstance(said, UnitArrival):
                    add(said.parcel)
                elif said is None:
                    under_way -= 1
                else:
                    failed |= dict.fromkeys(said.indexes, said.why)
        except BaseException:
            waiting.clear()
            self._end_lanes(lanes)
            raise
        return failed

    def _lane(
        self,
        errand: TaskContext,
        waiting: list[list[Parcel]],
        told: queue.SimpleQueue[UnitArrival | SparkJobFailure | None],
    ) -> None:
        with suppress(IndexError):  # nothing is waiting any more
            while portion := waiting.pop():
                try:
                    if not self._is_cancelled.is_set():
                        self._jobs.run(
                            errand, portion, lambda parcel: told.put(UnitArrival(parcel))
                        )
                except Exception as error:  # noqa: BLE001 - Spark, py4j and grpc have no common one
                    told.put(SparkJobFailure([index for index, _ in portion], cause_of(error)))
        told.put(None)

    def _end_lanes(self, lanes: list[threading.Thread]) -> None:
        for _ in range(int(GIVE_UP_S / LOOK_S)):
            running = [thread for thread in lanes if thread.is_alive()]
            if not running:
                break
            self._cancel_jobs()
            running[0].join(LOOK_S)
        self._let_workers_end()

    def _let_workers_end(self) -> None:
        threading.Event().wait(self._jobs.kill_timeout_s + NOTICE_S)

    def cancel(self) -> None:
        self._is_cancelled.set()
        self._cancel_jobs()

    def _cancel_jobs(self) -> None:
        with suppress(Exception):  # what cannot be reached has ended, or is asked again
            self._jobs.cancel()

    def close(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()
