"""Jobs as RDDs, a partition for each unit: accumulators bring outcomes early, results count."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from pyspark.accumulators import AccumulatorParam

from spark_tiering.execution.settings import KILL_TIMEOUT, seconds_of
from spark_tiering.execution.task_entry import Parcel, TaskContext, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import Accumulator, SparkContext

Update = tuple[int, Parcel]
"""The number of a round, and an outcome of it."""


class OutcomeSum(AccumulatorParam[list[Update]]):
    """Outcomes added up, in the process of a task."""

    def zero(self, value: list[Update]) -> list[Update]:
        return []

    def addInPlace(self, value1: list[Update], value2: list[Update]) -> list[Update]:
        return value1 + value2


class OutcomeArrivals(OutcomeSum):
    """Passes outcomes on in the driver's process, on a thread of Spark's, and keeps none."""

    def __init__(self) -> None:
        self._round = 0
        self._arrive: Callable[[Parcel], None] | None = None

    def __reduce__(self) -> tuple[type[OutcomeSum], tuple[()]]:
        return OutcomeSum, ()

    def listen(self, number: int, arrive: Callable[[Parcel], None]) -> None:
        """Hand on the results of one round; results of others come too late."""
        self._round, self._arrive = number, arrive

    def addInPlace(self, value1: list[Update], value2: list[Update]) -> list[Update]:
        for number, parcel in value2:
            if number == self._round and self._arrive is not None:
                self._arrive(parcel)
        return value1


class RddJobs:
    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._group = f"rlmm-{uuid.uuid4().hex}"
        self._arrivals = OutcomeArrivals()
        self._arrived = context.accumulator([], self._arrivals)
        self.kill_timeout_s = seconds_of(context.getConf().get(KILL_TIMEOUT, "2s"))

    @property
    def slots(self) -> int:
        return self._context.defaultParallelism

    def portions(self, parcels: list[Parcel]) -> list[list[Parcel]]:
        return [parcels] if parcels else []

    def run(
        self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
    ) -> None:
        self._arrivals.listen(errand.number, arrive)
        self._context.setJobGroup(self._group, f"rlmm: {len(parcels)} units")
        work = partial(_in_task, errand, self._arrived)
        for parcel in (
            self._context.parallelize(parcels, len(parcels)).mapPartitions(work).collect()
        ):
            arrive(parcel)

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)


def _in_task(
    errand: TaskContext, arrived: Accumulator[list[Update]], parcels: Iterable[Parcel]
) -> Iterator[Parcel]:
    for index, unit in parcels:
        parcel = index, carry_out(errand, index, unit)
        arrived.add([(errand.number, parcel)])
        yield parcel
