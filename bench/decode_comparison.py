"""
Decoding side by side: the naive reader, the compiled walk, the codec, and decode + apply, over the
same events, one after the other and again, so that a change of the machine's pace meets all.
"""

from __future__ import annotations

from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from bench.history import METADATA_PARTITIONS, RECORDS_PER_SET, record_sets, user_partition_count
from bench.measure import Collector, collector, cpu_ns, profile_of
from bench.replay import naive_pass, values_of
from rlmm.metadata.decoding import decode
from rlmm.metadata.python_shard import PythonShard
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.records.record_set import RecordSet

NAIVE, NAIVE_KEPT, WALK, DECODE, APPLY = (
    "naive decode, results dropped per batch",
    "naive decode, results kept",
    "compiled walk of the record sets, values read",
    "codec.decode to events, dropped per batch",
    "decode + apply",
)


def compare(event_count: int, repeats: int, mode: Collector) -> dict[str, float]:
    sets = _history(event_count)
    events = len(sets) * RECORDS_PER_SET
    batches = values_of(sets)
    ways: dict[str, Callable[[], int]] = {
        NAIVE: lambda: naive_pass(batches, kept=False),
        NAIVE_KEPT: lambda: naive_pass(batches, kept=True),
        WALK: lambda: _walk(sets),
        DECODE: lambda: _decode(batches),
        APPLY: lambda: _apply(sets),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    with collector(mode):
        for _ in range(repeats):
            for name, way in ways.items():
                spent[name].append(way() / events)
    return {name: median(costs) for name, costs in spent.items()}


def profile_apply(event_count: int) -> list[str]:
    sets = _history(event_count)
    return profile_of(lambda: _apply(sets))


def _history(event_count: int) -> list[RecordSet]:
    partitions = user_partition_count(event_count)
    return list(islice(record_sets(partitions), max(event_count // RECORDS_PER_SET, 1)))


def _walk(sets: list[RecordSet]) -> int:
    begin = cpu_ns()
    for record_set in sets:
        for batch in walk(record_set.data):
            if isinstance(batch, Batch):
                batch.values()
    return cpu_ns() - begin


def _decode(batches: list[list[bytes]]) -> int:
    begin = cpu_ns()
    for values in batches:
        [decode(value) for value in values]
    return cpu_ns() - begin


def _apply(sets: list[RecordSet]) -> int:
    shards = [PythonShard(number) for number in range(METADATA_PARTITIONS)]
    begin = cpu_ns()
    for record_set in sets:
        shards[record_set.partition].apply(record_set)
    return cpu_ns() - begin
