"""
Jobs by mapInArrow, the only way to run Python on Spark Connect; good for any session. `range(0, n,
1, n)` gives each unit a partition of its own; there is exactly one action, since a second would run
everything again. All units of a job travel to each of its tasks, so a job has a limit.
"""

from __future__ import annotations

import importlib
import uuid
from typing import TYPE_CHECKING, Any, Final

from spark_tiering.execution.settings import KILL_TIMEOUT, seconds_of
from spark_tiering.execution.task_entry import Parcel, TaskContext, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

JOB_BYTES_MAX: Final = 8 << 20
"""All units of one job: what each of its tasks is sent, at some milliseconds."""
SCHEMA: Final = "unit long, outcome binary"
COUNT_SLOTS: Final = "SELECT 1 + max(p) FROM (SELECT spark_partition_id() AS p FROM range(65536))"
"""Connect does not tell how many slots there are; rows are spread over all of them."""


def is_connect(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


class ArrowJobs:
    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context = None if is_connect(session) else session.sparkContext
        self._group = f"rlmm-{uuid.uuid4().hex}"
        self._slots = 0
        self.kill_timeout_s = seconds_of(session.conf.get(KILL_TIMEOUT, "2s") or "2s")

    @property
    def slots(self) -> int:
        self._slots = self._slots or int(self._session.sql(COUNT_SLOTS).collect()[0][0])
        return self._slots

    def portions(self, parcels: list[Parcel]) -> list[list[Parcel]]:
        return portions_of(parcels, JOB_BYTES_MAX)

    def run(
        self, errand: TaskContext, parcels: list[Parcel], arrive: Callable[[Parcel], None]
    ) -> None:
        if self._context is None:
            self._session.addTag(self._group)
        else:
            self._context.setJobGroup(self._group, f"rlmm: {len(parcels)} units")
        count = len(parcels)
        frame = self._session.range(0, count, 1, count).mapInArrow(_work(errand, parcels), SCHEMA)
        # On a classic session an iterator would be a job for each partition, one after the other.
        rows = frame.toLocalIterator() if self._context is None else frame.collect()
        for row in rows:
            arrive((row[0], bytes(row[1])))

    def cancel(self) -> None:
        if self._context is None:
            self._session.interruptTag(self._group)
        else:  # whose tags belong to the thread that has added them
            self._context.cancelJobGroup(self._group)


def portions_of(parcels: list[Parcel], bytes_max: int) -> list[list[Parcel]]:
    """Group neighbours up to so many bytes; a longer one stands alone."""
    found: list[list[Parcel]] = []
    room = 0
    for parcel in parcels:
        if not found or len(parcel[1]) > room:
            found.append([])
            room = bytes_max
        found[-1].append(parcel)
        room -= len(parcel[1])
    return found


def _work(errand: TaskContext, parcels: list[Parcel]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def in_task(batches: Iterable[Any]) -> Iterator[Any]:
        # Only workers need it.
        pa: Any = importlib.import_module("pyarrow")
        for batch in batches:
            for row in batch.column(0).to_pylist():
                index, unit = parcels[row]
                outcome = carry_out(errand, index, unit)
                columns = [pa.array([index], pa.int64()), pa.array([outcome], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, names=["unit", "outcome"])

    return in_task
