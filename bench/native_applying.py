"""N1 and N8 of `bench native`: decode + apply, in batches of 500 and of one, and as states grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.figures import Figure
from bench.measure import Collector, collector, profile_of
from bench.native_engines import Cost, apply_all, cost_of_applying, empty_shards, live_segments
from bench.native_ground import BATCHES, ENGINES, Ground, best
from rlmm.base.native_core import ShardEngine

if TYPE_CHECKING:
    from bench.native_stream import Stream

TO_PYTHON_MIN = {500: 9.0, 1: 11.0}
TO_KAFKA_MIN = {"thread": 2.5, "process": 7.0}
TWO_CORES_MIN = 1.7
GROWTH_MAX = 2.0
_JVM_PASSES = 2
"""The first is cold, the second warm."""


def applied(
    stream: Stream, engine: ShardEngine, per_batch: int, events: int, threads: int
) -> tuple[Cost, int]:
    sets = list(stream.sets(per_batch, events))
    shards = empty_shards(engine)
    with collector(Collector.OFF):
        cost = cost_of_applying(shards, sets, threads)
    assert cost.events == events, cost
    return cost, live_segments(shards)


def compare_applying(ground: Ground) -> None:
    for per_batch in BATCHES:
        _compare_batches(ground, per_batch)


def _compare_batches(ground: Ground, per_batch: int) -> None:
    run, sizes = ground.run, ground.sizes
    ground.with_questions()  # the Java program asks after each of its passes
    stream = ground.with_sets(per_batch)
    run.section(f"N1: decode + apply, {sizes.events:,} events in batches of {per_batch}")
    jvm = ground.jvm
    costs: dict[Any, list[Cost]] = {}
    live = set()
    for _ in range(sizes.rounds):
        for engine in ENGINES:
            cost, found = run.apart(applied, stream, engine, per_batch, sizes.events, 1)
            costs.setdefault(engine, []).append(cost)
            live.add(found)
        cost, found = run.apart(applied, stream, ShardEngine.NATIVE, per_batch, sizes.events, 2)
        costs.setdefault("two cores", []).append(cost)
        live.add(found)
        if jvm is not None:
            passes = jvm.apply(stream, per_batch, sizes.events, _JVM_PASSES, sizes.hot)["passes"]
            for name, one in zip(("cold", "warm"), passes, strict=True):
                assert one["events"] == sizes.events, one
                costs.setdefault(name, []).append(cost_in_java(one))
    assert len(live) == 1, live
    run.add(Figure(f"N1: live segments, batches of {per_batch}", live.pop(), "segments"))
    _judge(ground, per_batch, costs)


def cost_in_java(one: dict[str, Any]) -> Cost:
    seconds = (one[f"{kind}_ns"] / 1e9 for kind in ("thread", "process", "wall"))
    return Cost(one["events"], *seconds)


def _judge(ground: Ground, per_batch: int, costs: dict[Any, list[Cost]]) -> None:
    run, at = ground.run, f"batches of {per_batch}"
    for name, found in costs.items():
        who = f"engine {name}" if name in ENGINES else f"Kafka's classes, {name}"
        if name == "two cores":
            who = "engine native, two threads"
        ground.rates(f"N1: {who}, {at}", found)
    native = costs[ShardEngine.NATIVE]
    ratio = best(native, "thread") / best(costs[ShardEngine.PYTHON], "thread")
    asked = TO_PYTHON_MIN[per_batch]
    figure = run.add(Figure(f"N1: native / Python, {at}", ratio, "times", at_least=asked))
    if not figure.is_met:
        lines = run.apart(profile_of_applying, ground.stream, per_batch, ground.sizes.events)
        run.add_profile(figure.name, lines)
    for kind, least in TO_KAFKA_MIN.items():
        if "warm" in costs:
            ratio = best(native, kind) / best(costs["warm"], kind)
            name = f"N1: native / Kafka's classes, warm, by {kind}, {at}"
            run.add(Figure(name, ratio, "times", at_least=least))
    ratio = best(costs["two cores"], "wall") / best(native, "wall")
    run.add(Figure(f"N1: two cores / one, {at}", ratio, "times", at_least=TWO_CORES_MIN))


def profile_of_applying(stream: Stream, per_batch: int, events: int) -> list[str]:
    sets = list(stream.sets(per_batch, events))
    shards = empty_shards(ShardEngine.NATIVE)
    return profile_of(lambda: apply_all(shards, sets))


def compare_growth(ground: Ground) -> None:
    run, sizes = ground.run, ground.sizes
    stream = ground.with_sets(BATCHES[0])
    run.section(f"N8: decode + apply of {sizes.many:,} events beside {sizes.few:,}")
    for engine in ENGINES:
        costs = {
            events: [
                run.apart(applied, stream, engine, BATCHES[0], events, 1)[0]
                for _ in range(sizes.rounds if engine is ShardEngine.NATIVE else 1)
            ]
            for events in (sizes.few, sizes.many)
        }
        ns = {events: 1e9 / best(found, "thread") for events, found in costs.items()}
        for events, each in ns.items():
            run.add(Figure(f"N8: engine {engine}, {events:,} events", each, "ns/event"))
        limit = GROWTH_MAX if engine is ShardEngine.NATIVE else None
        ratio = ns[sizes.many] / ns[sizes.few]
        run.add(Figure(f"N8: growth, engine {engine}", ratio, "times", at_most=limit))
