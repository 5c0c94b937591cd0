"""N3 of `bench native`: look-ups in one process, one by one, many in a call, and of few keys."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import TYPE_CHECKING

from bench.figures import Figure
from bench.measure import Collector, collector, percentile
from bench.native_engines import (
    Asked,
    Row,
    apply_all,
    empty_shards,
    look_up,
    look_up_many,
)
from bench.native_ground import BATCHES, ENGINES, Ground
from rlmm.base.native_core import ShardEngine
from rlmm.metadata.ids import TopicIdPartition
from rlmm.metadata.partitioner import metadata_partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.native_stream import Stream
    from rlmm.metadata.python_shard import PythonShard

SINGLE_TO_PYTHON_MIN, SINGLE_TO_KAFKA_MIN = 6.0, 2.0
MANY_TO_PYTHON_MIN, MANY_TO_KAFKA_MIN = 15.0, 8.0
P99_US_MAX = 5.0
_PASSES = 3
_JVM_PASSES = 3
MANY = (64, 1_000)
"""Look-ups of one call."""


@dataclass(frozen=True, slots=True)
class Answered:
    found: int
    ids: int
    """All ids found, their halves folded into one number."""
    single_ns: float
    hot_ns: float
    """The same of few questions, asked again and again."""
    many_ns: dict[int, float]
    """A look-up, by the number of them in a call."""
    p50_us: float
    p99_us: float


def answered(stream: Stream, engine: ShardEngine, events: int, hot: int) -> Answered:
    shards = empty_shards(engine)
    apply_all(shards, stream.sets(BATCHES[0], events))
    asked = _asked(stream, shards)
    with collector(Collector.OFF):
        rows = [look_up(shard)(*each) for shard, each in asked]
        single = min(_single_ns(asked) for _ in range(_PASSES))
        again = asked[:hot] * -(-len(asked) // hot)
        hot_ns = min(_single_ns(again) for _ in range(_PASSES))
        many = {size: min(_many_ns(asked, size) for _ in range(_PASSES)) for size in MANY}
        times = _times_ns(asked)
    found = [row[0] for row in rows if row is not None]
    together = [row for ask, piece in _in_pieces(asked, MANY[0]) for row in ask(piece)]
    assert sorted(found) == sorted(row[0] for row in together if row is not None)
    return Answered(
        len(found), _folded(found), single, hot_ns, many,
        percentile(times, 50) / 1e3, percentile(times, 99) / 1e3,
    )  # fmt: skip


def _asked(stream: Stream, shards: list[PythonShard]) -> list[tuple[PythonShard, Asked]]:
    """Return the questions by the shard they go to, each with a user partition of its own."""
    users = stream.partitions()
    found: list[tuple[PythonShard, Asked]] = []
    for one in stream.questions():
        user = users[one.user]
        place = metadata_partition_for(user.topic_id, user.partition, len(shards))
        own = TopicIdPartition(user.topic_id, user.topic, user.partition)
        found.append((shards[place], (own, one.epoch, one.offset)))
    return found


def _single_ns(asked: list[tuple[PythonShard, Asked]]) -> float:
    calls = [(look_up(shard), *each) for shard, each in asked]
    begin = time.thread_time_ns()
    for ask, partition, epoch, offset in calls:
        ask(partition, epoch, offset)
    return (time.thread_time_ns() - begin) / len(calls)


def _times_ns(asked: list[tuple[PythonShard, Asked]]) -> list[int]:
    calls = [(look_up(shard), *each) for shard, each in asked]
    times = []
    clock = time.perf_counter_ns
    for ask, partition, epoch, offset in calls:
        begin = clock()
        ask(partition, epoch, offset)
        times.append(clock() - begin)
    return times


def _many_ns(asked: list[tuple[PythonShard, Asked]], size: int) -> float:
    calls = list(_in_pieces(asked, size))
    random.Random(7).shuffle(calls)  # a shard asked twice in a row is in the processor's caches
    begin = time.thread_time_ns()
    for ask, piece in calls:
        ask(piece)
    return (time.thread_time_ns() - begin) / len(asked)


def _in_pieces(
    asked: list[tuple[PythonShard, Asked]], size: int
) -> Iterable[tuple[Callable[[list[Asked]], Sequence[Row | None]], list[Asked]]]:
    by_shard: dict[int, tuple[PythonShard, list[Asked]]] = {}
    for shard, each in asked:
        by_shard.setdefault(shard.partition, (shard, []))[1].append(each)
    for shard, each_of in by_shard.values():
        for at in range(0, len(each_of), size):
            yield look_up_many(shard), each_of[at : at + size]


def _folded(ids: Iterable[bytes]) -> int:
    halves = (int.from_bytes(one[at : at + 8]) for one in ids for at in (0, 8))
    return reduce(xor, halves, 0)


def compare_lookups(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    stream = ground.with_questions()
    run.section(f"N3: {sizes.questions:,} look-ups at random, {sizes.events:,} events")
    costs: dict[str, float] = {}
    seen: set[tuple[int, int]] = set()
    for engine in ENGINES:
        each = [
            run.apart(answered, stream, engine, sizes.events, sizes.hot)
            for _ in range(sizes.rounds)
        ]
        seen |= {(one.found, one.ids) for one in each}
        costs[engine] = min(one.single_ns for one in each)
        run.add(Figure(f"N3: one look-up, engine {engine}", costs[engine], "ns"))
        costs[f"{engine} hot"] = min(one.hot_ns for one in each)
        run.add(Figure(f"N3: hot, engine {engine}", costs[f"{engine} hot"], "ns"))
        for size in MANY:
            costs[f"{engine} {size}"] = min(one.many_ns[size] for one in each)
            name = f"N3: a look-up of {size:,} in a call, engine {engine}"
            run.add(Figure(name, costs[f"{engine} {size}"], "ns"))
        run.add(Figure(f"N3: one look-up, p50, engine {engine}",
                       min(one.p50_us for one in each), "us"))  # fmt: skip
        limit = P99_US_MAX if engine is ShardEngine.NATIVE else None
        p99 = min(one.p99_us for one in each)
        run.add(Figure(f"N3: one look-up, p99, engine {engine}", p99, "us", at_most=limit))
    jvm = ground.jvm
    if jvm is not None:
        told = jvm.apply(stream, BATCHES[0], sizes.events, _JVM_PASSES, sizes.hot)
        seen |= {(one["found"], int(one["ids"], 16)) for one in told["lookups"]}
        for key, passes, name in (
            ("kafka", told["lookups"], "one look-up"), ("kafka hot", told["hot"], "hot"),
        ):  # fmt: skip
            costs[key] = min(one["thread_ns"] / one["asked"] for one in passes)
            run.add(Figure(f"N3: {name}, Kafka's classes, warm", costs[key], "ns"))
    assert len(seen) == 1, f"the contenders answer differently: {seen}"
    run.add(Figure("N3: look-ups answered, equal in all", seen.pop()[0], "look-ups"))
    _judge_lookups(ground, costs)


def _judge_lookups(ground: Ground, costs: dict[str, float]) -> None:
    ways = {"one by one": (ShardEngine.NATIVE, SINGLE_TO_PYTHON_MIN, SINGLE_TO_KAFKA_MIN)}
    for size in MANY:
        way = f"{ShardEngine.NATIVE} {size}", MANY_TO_PYTHON_MIN, MANY_TO_KAFKA_MIN
        ways[f"{size:,} in a call"] = way  # type: ignore[assignment]
    for name, (key, to_python, to_kafka) in ways.items():
        ratio = costs[ShardEngine.PYTHON] / costs[key]
        named = f"N3: native, {name} / Python, one by one"
        ground.run.add(Figure(named, ratio, "times", at_least=to_python))
        if "kafka" in costs:
            named = f"N3: native, {name} / Kafka's classes"
            ratio = costs["kafka"] / costs[key]
            ground.run.add(Figure(named, ratio, "times", at_least=to_kafka))
    if "kafka hot" in costs:
        ratio = costs["kafka hot"] / costs[f"{ShardEngine.NATIVE} hot"]
        ground.run.add(Figure("N3: native, hot / Kafka's classes, hot", ratio, "times"))
