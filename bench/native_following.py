"""
N6 of `bench native`: from a broker until every metadata partition can be asked, beside a loop of
`getmany` that drops the records, and Kafka's consumer that feeds Kafka's own classes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from bench.engine_replay import follow
from bench.figures import Figure
from bench.history import history_partitions
from bench.kafka_log import PARTITIONS, USER_PARTITIONS, broker, measured, read_getmany, write
from bench.native_applying import cost_in_java
from bench.native_engines import Cost, parts_of
from bench.native_ground import BATCHES, ENGINES, Ground, best
from bench.native_stream import write_partitions
from rlmm.base.native_core import ShardEngine

if TYPE_CHECKING:
    from bench.kafka_log import Written

TO_GETMANY_MIN = {500: 3.5, 1: 3.0}
TO_KAFKA_MIN = 6.0
GETMANY, KAFKA = "getmany", "Kafka's consumer and classes"
_KINDS = ("wall", "process")


def compare_following(ground: Ground) -> None:
    sizes = ground.sizes
    if not sizes.followed:
        ground.run.note("N6: without a broker")
        return
    with broker(None) as bootstrap:
        for per_batch in BATCHES:
            written = asyncio.run(write(bootstrap, sizes.followed, per_batch))
            _compare(ground, written, per_batch)


def _compare(ground: Ground, written: Written, per_batch: int) -> None:
    run, sizes = ground.run, ground.sizes
    run.section(
        f"N6: broker to queryable, {written.records:,} events in batches of {per_batch}, "
        f"{PARTITIONS} metadata partitions"
    )
    jvm = ground.jvm
    made = history_partitions(USER_PARTITIONS, metadata_partitions=PARTITIONS)
    partitions = ground.place / "followed partitions"
    write_partitions(partitions, [each.id for each in made])
    costs: dict[str, list[Cost]] = {}
    for _ in range(sizes.rounds):
        for engine in ENGINES:
            costs.setdefault(engine, []).append(run.apart(followed, written, engine))
        costs.setdefault(GETMANY, []).append(run.apart(fetched, written))
        if jvm is not None:
            told = jvm.follow(written.bootstrap, written.topic, written.records, partitions)
            assert told["events"] == written.records, told
            costs.setdefault(KAFKA, []).append(cost_in_java(told))
    at = f"batches of {per_batch}"
    for name, found in costs.items():
        who = f"engine {name}" if name in ENGINES else name
        for kind in _KINDS:
            unit = "M/s" if kind == "wall" else "M/process CPU s"
            run.add(Figure(f"N6: {who}, {at}", best(found, kind) / 1e6, unit))
    native = costs[ShardEngine.NATIVE]
    for name, least in ((GETMANY, TO_GETMANY_MIN[per_batch]), (KAFKA, TO_KAFKA_MIN)):
        for kind in _KINDS if name in costs else ():
            ratio = best(native, kind) / best(costs[name], kind)
            run.add(Figure(f"N6: native / {name}, {at}, {kind}", ratio, "times", at_least=least))


def followed(written: Written, engine: ShardEngine) -> Cost:
    read = partial(follow, written.settings(), parts_of(engine))
    cost = asyncio.run(measured(read, written.records))
    return Cost(cost.records, cost.cpu_s, cost.cpu_s, cost.wall_s)


def fetched(written: Written) -> Cost:
    cost = asyncio.run(measured(partial(read_getmany, written), written.records))
    return Cost(cost.records, cost.cpu_s, cost.cpu_s, cost.wall_s)
