"""
Decode + apply: a history of a given size goes through shards, and what that costs is noted.

Each replay is meant for a process of its own: memory that another one gave back would blur its
figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from bench.history import METADATA_PARTITIONS, RECORDS_PER_SET, record_sets, user_partition_count
from bench.measure import (
    Collector,
    collector,
    cpu_ns,
    freeze_what_is_loaded,
    held_bytes,
    percentile,
    resident_bytes,
)
from bench.naive import naive_decode
from bench.questions import ask, export_and_import
from rlmm.metadata.python_shard import PythonShard
from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.figures import Figure
    from rlmm.records.record_set import RecordSet

CHUNK_EVENTS = 25_000
"""Events that are made at a time; what makes them is not measured."""
_HELD_SEGMENTS_MAX = 100_000
"""Up to here the held objects are counted one by one."""


@dataclass(frozen=True, slots=True)
class Plan:
    event_count: int
    records_per_batch: int = RECORDS_PER_SET
    metadata_partitions: int = METADATA_PARTITIONS
    collector: Collector = Collector.OFF
    naive_every: int = 1
    """Of how many chunks one is decoded naively beside; 0 for none."""
    with_questions: bool = False
    with_images: bool = False


@dataclass
class Replayed:
    """CPU nanoseconds per event, unless the name says otherwise."""

    events: int = 0
    apply_ns: float = 0.0
    beside_apply_ns: float = 0.0
    """As `apply_ns`, of those chunks alone that were decoded naively too."""
    naive_ns: float = 0.0
    next_ns: float = 0.0
    """The next events after loading, on the loaded and frozen state."""
    pauses_us: dict[str, float] = field(default_factory=dict)
    """Percentiles of the CPU time of one call, which applies one record set."""
    next_pauses_us: dict[str, float] = field(default_factory=dict)
    live_segments: int = 0
    resident_bytes_per_segment: float = 0.0
    held_bytes_per_segment: float | None = None
    answers: list[Figure] = field(default_factory=list)


def replay(plan: Plan) -> Replayed:
    partitions = user_partition_count(plan.event_count)
    history = record_sets(
        partitions,
        records_per_batch=plan.records_per_batch,
        metadata_partitions=plan.metadata_partitions,
    )
    chunk = max(min(CHUNK_EVENTS, plan.event_count // 4) // RECORDS_PER_SET, 1)
    first = list(islice(history, chunk))  # so that what makes the history has its memory
    before = resident_bytes()
    shards = [PythonShard(number) for number in range(plan.metadata_partitions)]
    result = Replayed()
    with collector(plan.collector):
        pauses = _load(plan, shards, _chunks(history, first, chunk), result)
        result.pauses_us = _percentiles(pauses)
        freeze_what_is_loaded()
        _measure_memory(shards, before, result)
        tail = list(islice(history, max(chunk // 2, 1)))
        pauses = []
        spent = _apply_all(shards, tail, pauses)
        result.next_ns = spent / (len(tail) * RECORDS_PER_SET)
        result.next_pauses_us = _percentiles(pauses)
        if plan.with_questions:
            result.answers += ask(shards)
        if plan.with_images:
            result.answers += export_and_import(shards)
    return result


def _chunks(
    history: Iterator[RecordSet], first: list[RecordSet], chunk: int
) -> Iterator[list[RecordSet]]:
    yield first
    while True:
        yield list(islice(history, chunk))


def _load(
    plan: Plan, shards: list[PythonShard], chunks: Iterator[list[RecordSet]], result: Replayed
) -> list[int]:
    pauses: list[int] = []
    spent = beside = naive = beside_events = 0
    for number, sets in enumerate(chunks):
        events = len(sets) * RECORDS_PER_SET
        measured_beside = plan.naive_every != 0 and number % plan.naive_every == 0
        if measured_beside:
            naive += naive_pass(values_of(sets), kept=False)
            beside_events += events
        cost = _apply_all(shards, sets, pauses)
        spent += cost
        beside += cost if measured_beside else 0
        result.events += events
        if result.events >= plan.event_count:
            break
    result.apply_ns = spent / result.events
    result.naive_ns = naive / max(beside_events, 1)
    result.beside_apply_ns = beside / max(beside_events, 1)
    return pauses


def _apply_all(shards: list[PythonShard], sets: list[RecordSet], pauses: list[int]) -> int:
    begin = before = cpu_ns()
    for record_set in sets:
        shards[record_set.partition].apply(record_set)
        now = cpu_ns()
        pauses.append(now - before)
        before = now
    return before - begin


def _percentiles(pauses: list[int]) -> dict[str, float]:
    return {
        "p50": percentile(pauses, 50) / 1000,
        "p99": percentile(pauses, 99) / 1000,
        "max": max(pauses) / 1000,
    }


def _measure_memory(shards: list[PythonShard], before: int, result: Replayed) -> None:
    statistics = [shard.statistics() for shard in shards]
    live = sum(each.segments_started + each.segments_finished for each in statistics)
    result.live_segments = live
    result.resident_bytes_per_segment = (resident_bytes() - before) / max(live, 1)
    if live <= _HELD_SEGMENTS_MAX:
        result.held_bytes_per_segment = held_bytes(shards) / max(live, 1)


def values_of(sets: list[RecordSet]) -> list[list[bytes]]:
    return [
        [value for _, value in batch.values() if value is not None]
        for record_set in sets
        for batch in walk(record_set.data)
        if isinstance(batch, Batch)
    ]


def naive_pass(batches: list[list[bytes]], *, kept: bool) -> int:
    kept_results = []
    begin = cpu_ns()
    for values in batches:
        results = [naive_decode(value) for value in values]
        if kept:
            kept_results.append(results)
    return cpu_ns() - begin
