"""
`python -m bench.kafka_log`: reading a real broker through the `kafka` log, beside a bare `getmany`
loop of the client library over the same records.

Without `--bootstrap` a broker is started, from the jars that the tests use.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from aiokafka import AIOKafkaConsumer, TopicPartition

from bench.figures import Figure, Run
from bench.history import written_events
from bench.measure import cpu_ns, machine_facts
from rlmm.kafka_client.connections.connection import Dialer
from rlmm.kafka_client.settings import KafkaSettings, TopicSettings, address_of
from rlmm.kafka_messages.produce import ProduceRequest, ProduceResult
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
from tests.kafka.fixtures import FreshKafka
from tests.kafka.prepared import prepare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

PARTITIONS = 8
USER_PARTITIONS = 400
LAYOUTS = {500: 3.0, 1: 1.0}
"""Records of a batch, and how many times the speed of `getmany` is asked for."""
ROUNDS = 5
DEADLINE_S = 60.0
_IN_FLIGHT = 64
_FIRST_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    records: int
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Written:
    bootstrap: str
    topic: str
    ends: tuple[int, ...]

    @property
    def records(self) -> int:
        return sum(self.ends)

    def settings(self, *, is_observer: bool = True) -> KafkaSettings:
        return settings_for(self.bootstrap, self.topic, is_observer=is_observer)


def settings_for(bootstrap: str, topic: str, *, is_observer: bool) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=tuple(bootstrap.split(",")),
        topic=TopicSettings(
            name=topic,
            num_partitions=PARTITIONS,
            is_created=not is_observer,
            replication_factor=1,
            min_isr=1,
        ),
        is_observer=is_observer,
    )


async def write(bootstrap: str, records: int, per_batch: int) -> Written:
    topic = f"bench-{per_batch}-{time.time_ns()}"
    settings = settings_for(bootstrap, topic, is_observer=False)
    log = await KafkaLog.open(settings)
    identity = await log.identity(timeout_s=DEADLINE_S)
    while not all(
        isinstance(bounds, LogBounds)
        for bounds in (await log.bounds(range(PARTITIONS), timeout_s=DEADLINE_S)).values()
    ):
        pass  # leaders are elected
    waiting: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    connection = await (await Dialer.prepare(settings)).dial(
        *address_of(settings.bootstrap_servers[0]), "producer"
    )
    sent: list[Awaitable[ProduceResult | None]] = []
    try:
        history = written_events(USER_PARTITIONS, metadata_partitions=PARTITIONS)
        for event in islice(history, records):
            values = waiting[event.metadata_partition]
            values.append(event.value)
            if len(values) == per_batch:
                batch = build_batch(records_of(values, 0, _FIRST_MS), 0)
                request = ProduceRequest(
                    topic, identity.topic_id, event.metadata_partition, batch, 30_000
                )
                sent.append(connection.call(request))
                values.clear()
            if len(sent) >= _IN_FLIGHT:
                await all_stored(sent)
        await all_stored(sent)
        bounds = await log.bounds(range(PARTITIONS), timeout_s=DEADLINE_S)
    finally:
        await connection.close()
        await log.close()
    return Written(bootstrap, topic, tuple(_end(bounds[at]) for at in range(PARTITIONS)))


async def all_stored(sent: list[Awaitable[ProduceResult | None]]) -> None:
    for told in await asyncio.gather(*sent):
        assert told is not None
        assert told.code == 0, told
    sent.clear()


def _end(bounds: object) -> int:
    assert isinstance(bounds, LogBounds), bounds
    return bounds.high_watermark


async def read_raw(written: Written, *, walks: bool) -> int:
    log = await KafkaLog.open(written.settings())
    await log.identity(timeout_s=DEADLINE_S)

    async def follow(partition: int, end: int) -> int:
        position = found = 0
        while position < end:
            record_set = await log.read(partition, position, timeout_s=DEADLINE_S)
            assert record_set is not None
            assert record_set.next_offset is not None
            if walks:
                found += sum(
                    batch.record_count
                    for batch in walk(record_set.data)
                    if isinstance(batch, Batch)
                )
            else:
                found += record_set.next_offset - position
            position = record_set.next_offset
        return found

    try:
        return sum(await asyncio.gather(*(follow(*each) for each in enumerate(written.ends))))
    finally:
        await log.close()


async def read_getmany(written: Written) -> int:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=written.bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=250
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(written.topic, at) for at in range(PARTITIONS)])
        found = 0
        while found < written.records:
            batches = await consumer.getmany(timeout_ms=1000)
            found += sum(map(len, batches.values()))
        return found
    finally:
        await consumer.stop()


async def measured(read: Callable[[], Awaitable[int]], expected: int) -> Cost:
    wall, cpu = time.perf_counter(), cpu_ns()
    found = await read()
    cost = Cost(found, time.perf_counter() - wall, (cpu_ns() - cpu) / 1e9)
    assert found == expected, f"{found} records read, {expected} written"
    return cost


async def compare(run: Run, bootstrap: str, records: int, per_batch: int, asked: float) -> None:
    written = await write(bootstrap, records, per_batch)
    run.section(f"{written.records:,} records in batches of {per_batch}, {PARTITIONS} partitions")
    ways: dict[str, Callable[[], Awaitable[int]]] = {
        "getmany": lambda: read_getmany(written),
        "raw": lambda: read_raw(written, walks=False),
        "raw, walked with CRC": lambda: read_raw(written, walks=True),
    }
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            costs[name].append(await measured(way, written.records))
    speeds: dict[tuple[str, str], float] = {}
    for name, found in costs.items():
        for kind in ("wall", "cpu"):
            taken = statistics.median(
                cost.wall_s if kind == "wall" else cost.cpu_s for cost in found
            )
            speeds[name, kind] = written.records / taken
            run.add(
                Figure(f"{name}, batches of {per_batch}", speeds[name, kind], f"records/s {kind}")
            )
    for kind in ("wall", "cpu"):
        ratio = speeds["raw", kind] / speeds["getmany", kind]
        run.add(Figure(f"raw / getmany, batches of {per_batch}, {kind}", ratio, "times", asked))


@contextlib.contextmanager
def broker(bootstrap: str | None) -> Iterator[str]:
    if bootstrap is not None:
        yield bootstrap
        return
    with (
        tempfile.TemporaryDirectory(prefix="bench-kafka-") as folder,
        contextlib.closing(FreshKafka(prepare(), Path(folder))) as fresh,
    ):
        yield fresh.node().start().bootstrap


@click.command()
@click.option("--bootstrap", help="host:port of a broker; without it one is started.")
@click.option("--records", default=1_000_000, show_default=True, help="Records in batches of 500.")
@click.option("--single", default=80_000, show_default=True, help="Records in batches of one.")
def main(bootstrap: str | None, records: int, single: int) -> None:
    """Measure the raw path beside a bare getmany loop, and judge what is asked of it."""
    run = Run(in_this_process=True)
    facts = machine_facts()
    click.echo(", ".join(f"{name.replace('_', ' ')}: {fact}" for name, fact in facts.items()))
    with broker(bootstrap) as address:
        for per_batch, asked in LAYOUTS.items():
            count = single if per_batch == 1 else records
            asyncio.run(compare(run, address, count, per_batch, asked))
    run.section("of these something is asked:")
    for figure in run.asked:
        click.echo(f"  {figure}")


if __name__ == "__main__":
    main()
