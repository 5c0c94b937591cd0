"""Units run here, without Spark: for tests and for small jobs."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from rlmm.base.closing import ClosedByWith
from spark_tiering.execution.protocol import CANCELLED, R, U, UnitLost
from spark_tiering.execution.task_entry import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class InProcess(ClosedByWith):
    """Runs units in this process, one by one or on threads; an interrupt waits for threads."""

    def __init__(self, slots: int = 1) -> None:
        self._slots = slots
        self._is_cancelled = False

    @property
    def slots(self) -> int:
        return self._slots

    def run_units(
        self,
        units: Sequence[U],
        fn: Callable[[U], R],
        on_result: Callable[[R | UnitLost], None] | None = None,
    ) -> list[R | UnitLost]:
        tell = on_result or _nobody
        # What cannot be sent to a worker is to be found here as well.
        parcels = [pickle.dumps(unit) for unit in units]

        def run(index: int) -> R | UnitLost:
            if self._is_cancelled:
                return UnitLost(index, CANCELLED)
            unit: U = pickle.loads(parcels[index])  # noqa: S301 - made above
            outcome: R | UnitLost = pickle.loads(outcome_of(index, unit, fn))  # noqa: S301
            return outcome

        if self._slots == 1:
            outcomes = []
            for index in range(len(parcels)):
                outcomes.append(run(index))
                tell(outcomes[-1])
            return outcomes
        return self._run_by_threads(len(parcels), run, tell)

    def _run_by_threads(
        self,
        count: int,
        run: Callable[[int], R | UnitLost],
        tell: Callable[[R | UnitLost], None],
    ) -> list[R | UnitLost]:
        with ThreadPoolExecutor(self._slots, "rlmm-unit") as pool:
            running = [pool.submit(run, index) for index in range(count)]
            try:
                for done in as_completed(running):
                    tell(done.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [done.result() for done in running]

    def cancel(self) -> None:
        self._is_cancelled = True

    def close(self) -> None: ...


def _nobody(outcome: object) -> None: ...
