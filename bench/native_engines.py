"""
What `bench native` calls of both engines of the shard: each call has its name here and nowhere else
in the benchmark, and works on either engine.
"""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bench.history import METADATA_PARTITIONS
from rlmm.base.native_core import VARIABLE
from rlmm.engine.service import PROCESS_PARTS
from rlmm.metadata.engines import shard_type
from rlmm.metadata.page_order_cache import PageOrderCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlmm.base.native_core import ShardEngine
    from rlmm.engine.engine import EngineParts
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.python_shard import PythonShard
    from rlmm.records.record_set import RecordSet

Asked = tuple["TopicIdPartition", int, int]
"""User partition, leader epoch, offset."""
Row = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Cost:
    events: int
    thread_s: float
    """Of the thread that applied, or asked."""
    process_s: float
    wall_s: float

    def seconds(self, kind: str) -> float:
        """Return the time of one *kind*, `thread`, `process` or `wall`."""
        return {"thread": self.thread_s, "process": self.process_s, "wall": self.wall_s}[kind]


def empty_shards(engine: ShardEngine) -> list[PythonShard]:
    make = shard_type(engine)
    return [make(number) for number in range(METADATA_PARTITIONS)]


def apply_all(shards: Sequence[PythonShard], sets: Iterable[RecordSet]) -> int:
    """Apply every set whole; nothing of it may be rejected. Return how many events that were."""
    applied = 0
    for record_set in sets:
        report = shards[record_set.partition].apply(record_set)
        assert report.complete, record_set.partition
        assert report.tally.applied == report.tally.offsets, report.tally
        applied += report.tally.applied
    return applied


def cost_of_applying(
    shards: Sequence[PythonShard], sets: Sequence[RecordSet], threads: int = 1
) -> Cost:
    """Apply *sets* in as many threads, each with metadata partitions of its own."""
    shares = [[one for one in sets if one.partition % threads == at] for at in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(gc.is_tracked, shares))  # the threads are there before the clock runs
        wall, process = time.perf_counter(), time.process_time()
        done = list(pool.map(partial(_timed, shards), shares))
        return Cost(
            sum(events for events, _ in done),
            sum(thread_s for _, thread_s in done),
            time.process_time() - process,
            time.perf_counter() - wall,
        )


def _timed(shards: Sequence[PythonShard], sets: Sequence[RecordSet]) -> tuple[int, float]:
    begin = time.thread_time()
    return apply_all(shards, sets), time.thread_time() - begin


def look_up(shard: PythonShard) -> Callable[[TopicIdPartition, int, int], Row | None]:
    """Return the question that costs least, of one look-up: as the frame server asks it."""
    return shard.row_for


def look_up_many(shard: PythonShard) -> Callable[[Sequence[Asked]], Sequence[Row | None]]:
    return shard.rows_for


def states_of(shards: Sequence[PythonShard]) -> list[bytes]:
    return [shard.image() for shard in shards]


def shards_from(engine: ShardEngine, images: Sequence[bytes]) -> list[PythonShard]:
    make = shard_type(engine)
    return [make.from_image(image) for image in images]


def live_segments(shards: Sequence[PythonShard]) -> int:
    """Count the segments whose copy was started or finished and that nobody deletes."""
    return sum(sum(shard.segment_counts()[:2]) for shard in shards)


def parts_of(engine: ShardEngine, made: type[PythonShard] | None = None) -> EngineParts:
    """Return what an engine in this process is built on, with shards of *engine*, or of *made*."""
    make = made or shard_type(engine)
    return replace(PROCESS_PARTS, make_shard=partial(make, order_cache=PageOrderCache()))


def environment(engine: ShardEngine) -> dict[str, str]:
    """Return what chooses the engine of `rlmm serve`."""
    return {VARIABLE: engine.value}
