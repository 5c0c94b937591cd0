"""
Measurements of one run in their order: every asked figure of the pure-Python engine beside those
that explain it.
"""

from __future__ import annotations

from dataclasses import replace

from bench import decode_comparison
from bench.figures import Figure, Run
from bench.history import METADATA_PARTITIONS, RECORDS_PER_SET, user_partition_count
from bench.measure import Collector
from bench.questions import list_large_partition
from bench.replay import CHUNK_EVENTS, Plan, Replayed, replay

APPLY_TO_NAIVE_MIN = 1.6
BYTES_PER_SEGMENT_MAX = 750
GROWTH_MAX = 2.0

_ROUNDS = 5
_SMALL_EVENTS_MAX = 200_000
_REPLAYS_OF_SMALL = 3
_NAIVE_CHUNKS = 40
"""As many chunks of a large history are decoded naively too: enough for a ratio."""


def measure_all(run: Run, sizes: list[int], listed_segments: int) -> None:
    for mode in Collector:
        compare_decoding(run, sizes[0], mode)
    loaded = {size: load(run, size, sizes) for size in sizes}
    judge_growth(run, loaded, sizes)
    compare_collector(run, loaded, sizes)
    compare_layouts(run, sizes)
    show_answers(run, loaded, sizes, listed_segments)


def compare_decoding(run: Run, size: int, mode: Collector) -> None:
    what_it_does = "off" if mode is Collector.OFF else "on, nothing old to walk"
    at = f"collector {mode}, {size:,} events"
    run.section(f"Side by side, {size:,} events, collector {what_it_does}")
    costs = run.apart(decode_comparison.compare, size, _ROUNDS, mode)
    for name, cost in costs.items():
        run.add(Figure(f"{name}, {at}", cost, "ns/event"))
    apply_ns = costs[decode_comparison.APPLY]
    _ask_ratio(run, costs[decode_comparison.NAIVE] / apply_ns, at)
    kept = costs[decode_comparison.NAIVE_KEPT] / apply_ns
    run.add(Figure(f"naive, results kept / decode + apply, {at}", kept, "times"))


def load(run: Run, size: int, sizes: list[int]) -> Replayed:
    run.section(
        f"{size:,} events, {user_partition_count(size):,} user partitions, {METADATA_PARTITIONS} "
        f"shards, {RECORDS_PER_SET} records a batch, collector off while loading, then frozen"
    )
    plan = Plan(
        size,
        naive_every=max(size // CHUNK_EVENTS // _NAIVE_CHUNKS, 1),
        with_questions=True,
        with_images=size == sizes[len(sizes) // 2],
    )
    found = _replay(run, plan)
    at = f"{size:,} events"
    run.add(
        Figure(f"decode + apply while loading, collector off, {at}", found.apply_ns, "ns/event")
    )
    run.add(Figure(f"naive decode beside it, dropped per batch, {at}", found.naive_ns, "ns/event"))
    _ask_ratio(run, found.naive_ns / found.beside_apply_ns, at)
    run.add(Figure(f"decode + apply of what comes next, {at}", found.next_ns, "ns/event"))
    run.add(Figure(f"live segments, {at}", found.live_segments, "segments"))
    resident = found.resident_bytes_per_segment
    limit = BYTES_PER_SEGMENT_MAX if size == sizes[-1] else None
    run.add(Figure(f"resident memory, {at}", resident, "B/live segment", at_most=limit))
    if found.held_bytes_per_segment is not None:
        held = found.held_bytes_per_segment
        run.add(Figure(f"sizes of all objects held, {at}", held, "B/live segment"))
    return found


def judge_growth(run: Run, loaded: dict[int, Replayed], sizes: list[int]) -> None:
    run.section(f"Growth from {sizes[0]:,} to {sizes[-1]:,} events")
    least, most = loaded[sizes[0]], loaded[sizes[-1]]
    growths = {
        "decode + apply of the whole history, collector off": most.apply_ns / least.apply_ns,
        "decode + apply of what comes next, collector frozen": most.next_ns / least.next_ns,
    }
    for name, value in growths.items():
        figure = run.add(Figure(f"growth of {name}", value, "times", at_most=GROWTH_MAX))
        _explain(run, figure, sizes[-1])


def compare_collector(run: Run, loaded: dict[int, Replayed], sizes: list[int]) -> None:
    running = {
        size: _replay(run, Plan(size, collector=Collector.ON, naive_every=0)) for size in sizes
    }
    run.section("Decode + apply with the collector on all the time")
    for size in sizes:
        cost = running[size].apply_ns
        run.add(
            Figure(f"decode + apply while loading, collector on, {size:,} events", cost, "ns/event")
        )
    whole = running[sizes[-1]].apply_ns / running[sizes[0]].apply_ns
    run.add(Figure("growth of decode + apply of the whole history, collector on", whole, "times"))
    run.section(f"Pause: CPU time of one call that applies {RECORDS_PER_SET} events")
    for size in sizes:
        kinds = {
            "collector off": loaded[size].pauses_us,
            "what comes next, collector frozen": loaded[size].next_pauses_us,
            "collector on": running[size].pauses_us,
        }
        for kind, pauses in kinds.items():
            for percentile, pause in pauses.items():
                name = f"pause {percentile}, {kind}, {size:,} events"
                run.add(Figure(name, pause / 1000, "ms"))


def compare_layouts(run: Run, sizes: list[int]) -> None:
    run.section("Decode + apply in other layouts, collector off")
    for records, shards in ((RECORDS_PER_SET, 1), (1, METADATA_PARTITIONS), (1, 1)):
        for size in sizes:
            found = _replay(run, Plan(size, records, shards, naive_every=0))
            batch = "1 record" if records == 1 else f"{records} records"
            layout = "1 shard" if shards == 1 else f"{shards} shards"
            name = f"decode + apply, {batch} a batch, {layout}, {size:,} events"
            run.add(Figure(name, found.apply_ns, "ns/event"))


def show_answers(
    run: Run, loaded: dict[int, Replayed], sizes: list[int], listed_segments: int
) -> None:
    for size in sizes:
        run.section(f"Questions to shards of {size:,} events, one at a time")
        for figure in loaded[size].answers:
            run.add(replace(figure, name=f"{figure.name}, {size:,} events"))
    run.section("Listing one large user partition")
    for figure in run.apart(list_large_partition, listed_segments):
        run.add(figure)


def _ask_ratio(run: Run, ratio: float, at: str) -> None:
    name = f"naive, results dropped per batch / decode + apply, {at}"
    figure = run.add(Figure(name, ratio, "times", at_least=APPLY_TO_NAIVE_MIN))
    _explain(run, figure, _SMALL_EVENTS_MAX)


def _explain(run: Run, figure: Figure, size: int) -> None:
    if not figure.is_met:
        events = min(size, _SMALL_EVENTS_MAX)
        run.add_profile(figure.name, run.apart(decode_comparison.profile_apply, events))


def _replay(run: Run, plan: Plan) -> Replayed:
    times = _REPLAYS_OF_SMALL if plan.event_count <= _SMALL_EVENTS_MAX else 1
    done = [run.apart(replay, plan) for _ in range(times)]
    return sorted(done, key=lambda replayed: replayed.apply_ns)[times // 2]
