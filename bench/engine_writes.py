"""
Writes: time to the verdict, writes per second, and time to visibility in another service, beside
Kafka's own metadata manager on the same broker. Each round adds segments and then finishes them;
events are made before.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bench.engine_ground import services, wait_queryable
from bench.figures import Figure, Run
from bench.kafka_log import PARTITIONS, settings_for
from bench.measure import percentile
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.stock_manager import StockPeer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from bench.engine_ground import Place
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from tests.kafka.jars import Jars

    _Way = Callable[[int], Coroutine[Any, Any, "Taken"]]

USER_PARTITIONS = 32
SEGMENT_OFFSETS = 1_000
READY_S = 60.0
ROUNDS = 3
_NOW_MS = 1_760_000_000_000

Event = SegmentMetadata | SegmentUpdate


@dataclass(frozen=True, slots=True)
class Taken:
    seconds: float
    latencies_us: Sequence[int]

    @property
    def per_s(self) -> float:
        return len(self.latencies_us) / self.seconds

    def ms(self, percent: float) -> float:
        """Return the latency at the given percentile, in milliseconds."""
        return percentile(self.latencies_us, percent) / 1_000


def user_partitions() -> list[TopicIdPartition]:
    return [TopicIdPartition(Uuid(os.urandom(16)), "bench", 0) for _ in range(USER_PARTITIONS)]


def copies(
    partitions: Sequence[TopicIdPartition], first: int, count: int
) -> tuple[list[SegmentMetadata], list[SegmentUpdate]]:
    adds, ends = [], []
    for number in range(first, first + count):
        partition = partitions[number % len(partitions)]
        start = number // len(partitions) * SEGMENT_OFFSETS
        segment_id = SegmentId(partition, Uuid.of(1, number))
        last = start + SEGMENT_OFFSETS - 1
        begun, finished = SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED
        adds.append(
            SegmentMetadata(
                segment_id,
                start,
                last,
                broker_id=1,
                max_timestamp_ms=_NOW_MS,
                event_timestamp_ms=_NOW_MS,
                epochs=((0, start),),
                size_bytes=1 << 30,
                custom_metadata=None,
                state=begun,
            )
        )
        ends.append(SegmentUpdate(segment_id, 1, _NOW_MS + 1, None, finished))
    return adds, ends


def together(taken: Sequence[Taken]) -> Taken:
    latencies = [latency for each in taken for latency in each.latencies_us]
    return Taken(sum(each.seconds for each in taken), latencies)


async def write_all(metadata: RemoteLogMetadata, events: Sequence[Event], in_flight: int) -> Taken:
    waiting = iter(events)
    latencies_us: list[int] = []

    async def write() -> None:
        for event in waiting:
            begin = time.perf_counter_ns()
            await put(metadata, event)
            latencies_us.append((time.perf_counter_ns() - begin) // 1_000)

    begin = time.perf_counter()
    await asyncio.gather(*(write() for _ in range(in_flight)))
    return Taken(time.perf_counter() - begin, latencies_us)


async def put(metadata: RemoteLogMetadata, event: Event) -> int:
    if isinstance(event, SegmentMetadata):
        return (await metadata.add_segment(event)).offset
    return (await metadata.update_segment(event)).offset


async def our_writes(place: Place, in_flight: int, count: int) -> Taken:
    partitions = user_partitions()
    async with services(place, partitions=PARTITIONS) as (metadata,):
        await wait_queryable(metadata)
        return await _measured(partial(write_all, metadata), partitions, in_flight, count)


async def _measured(
    write: Callable[[Sequence[Event], int], Awaitable[Taken]],
    partitions: Sequence[TopicIdPartition],
    in_flight: int,
    count: int,
) -> Taken:
    for events in copies(partitions, 0, USER_PARTITIONS):
        await write(events, 2)
    adds, ends = copies(partitions, USER_PARTITIONS, max(count // 2, 1))
    return together([await write(adds, in_flight), await write(ends, in_flight)])


class Stock:
    def __init__(self, peer: StockPeer) -> None:
        self._peer = peer

    async def writes(self, in_flight: int, count: int) -> Taken:
        partitions = user_partitions()
        self._peer.assign(*partitions)
        deadline = time.monotonic() + READY_S
        while not all(map(self._peer.is_ready, partitions)):
            assert time.monotonic() < deadline, "the stock manager is not ready"
            await asyncio.sleep(0.1)
        return await _measured(self._write, partitions, in_flight, count)

    async def _write(self, events: Sequence[Event], in_flight: int) -> Taken:
        return Taken(*self._peer.write_all(events, in_flight))


def compare_writes(
    run: Run,
    folder: Path,
    bootstrap: str | None,
    jars: Jars | None,
    ours: Mapping[int, int],
    stock: Mapping[int, int],
) -> None:
    with ExitStack() as opened:
        ways: dict[str, _Way] = {
            "`files`": lambda in_flight: our_writes(folder / "writes", in_flight, ours[in_flight])
        }
        if bootstrap is not None:
            topic = settings_for(bootstrap, f"bench-writes-{time.time_ns()}", is_observer=False)
            ways["broker"] = lambda in_flight: our_writes(topic, in_flight, ours[in_flight])
            if jars is not None:
                peer = StockPeer(jars, folder / "stock", bootstrap, partitions=PARTITIONS)
                manager = Stock(opened.enter_context(peer))
                ways["stock manager"] = lambda in_flight: manager.writes(
                    in_flight, stock[in_flight]
                )
        for in_flight in ours:
            run.section(f"writes, {in_flight:,} in flight, until the writer knows the verdict")
            _compare_ways(run, ways, in_flight)


def _compare_ways(run: Run, ways: Mapping[str, _Way], in_flight: int) -> None:
    rounds: dict[str, list[Taken]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            rounds[name].append(asyncio.run(way(in_flight)))
    taken = {
        name: sorted(found, key=lambda one: one.per_s)[ROUNDS // 2]
        for name, found in rounds.items()
    }
    for name, each in taken.items():
        at = f"{name}, {in_flight:,} in flight"
        run.add(Figure(f"writes, {at}", each.per_s, "writes/s"))
        run.add(Figure(f"verdict p50, {at}", each.ms(50), "ms"))
        run.add(Figure(f"verdict p99, {at}", each.ms(99), "ms"))
    if "stock manager" in taken:
        _compare(run, taken["broker"], taken["stock manager"], in_flight)


def _compare(run: Run, broker: Taken, stock: Taken, in_flight: int) -> None:
    at = f"{in_flight:,} in flight"
    run.add(Figure(f"writes, broker / stock manager, {at}", broker.per_s / stock.per_s, "times"))
    for percent in (50, 99):
        ratio = broker.ms(percent) / stock.ms(percent)
        run.add(Figure(f"verdict p{percent}, broker / stock manager, {at}", ratio, "times"))


async def visible_elsewhere(place: Place, count: int) -> tuple[Taken, Taken]:
    partitions = user_partitions()
    adds, _ = copies(partitions, 0, count + len(partitions))
    seen_us: list[int] = []
    verdict_us: list[int] = []
    begin = time.perf_counter()
    async with services(place, 2, partitions=PARTITIONS) as (writer, reader):
        await asyncio.gather(wait_queryable(writer), wait_queryable(reader))
        for event in adds:
            segment = event.id
            offset = _next_offset(writer, segment.partition)
            before = time.perf_counter_ns()
            seeing = asyncio.create_task(_see(reader, segment, offset))
            assert await put(writer, event) == offset[1]
            verdict_us.append((time.perf_counter_ns() - before) // 1_000)
            seen_us.append((await seeing - before) // 1_000)
        seconds = time.perf_counter() - begin
    warm = len(partitions)
    return Taken(seconds, seen_us[warm:]), Taken(seconds, verdict_us[warm:])


def _next_offset(metadata: RemoteLogMetadata, partition: TopicIdPartition) -> tuple[int, int]:
    place = metadata_partition_for(partition.topic_id, partition.partition, PARTITIONS)
    return place, metadata.read_token()[place] + 1


async def _see(metadata: RemoteLogMetadata, segment: SegmentId, at: tuple[int, int]) -> int:
    found = await metadata.segment(segment, at_least=dict([at]), timeout_s=READY_S)
    assert found is not None, segment
    return time.perf_counter_ns()


def compare_visibility(run: Run, folder: Path, bootstrap: str | None, count: int) -> None:
    places: dict[str, Place] = {"`files`": folder / "visible"}
    if bootstrap is not None:
        topic = f"bench-visible-{time.time_ns()}"
        places["broker"] = settings_for(bootstrap, topic, is_observer=False)
    run.section("publish to visible in a second service, one write after the other")
    for name, place in places.items():
        seen, verdict = asyncio.run(visible_elsewhere(place, count))
        for percent in (50, 99):
            run.add(
                Figure(f"visible in a second service p{percent}, {name}", seen.ms(percent), "ms")
            )
            run.add(
                Figure(f"verdict of the same writes p{percent}, {name}", verdict.ms(percent), "ms")
            )
