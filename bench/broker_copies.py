"""
Delays from a record's acknowledgement to its segment's place in the tier, with Kafka's own manager
and with ours. A producer fills segments at a steady pace; the clock runs from the acknowledgement
of the record that rolled a segment to its COPY_SEGMENT_FINISHED, and to the broker's answer that it
is tiered.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from aiokafka import AIOKafkaProducer

from bench.broker_ground import DEADLINE_S, Keeper, connected, tiered_ends, world
from bench.figures import Figure
from bench.measure import percentile
from rlmm.metadata.decoding import decode
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from tests.kafka.clients import consumer, create_topic
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from bench.broker_ground import World
    from bench.figures import Run
    from rlmm.metadata.ids import SegmentId
    from tests.kafka.jars import Jars

RECORD_BYTES: Final = 64_000
RECORDS_PER_SEGMENT: Final = 16
SEGMENT_BYTES: Final = 1 << 20
"""The least that brokers allow, and what so many records fill: one more does not fit."""
SEGMENT_EVERY_S: Final = 0.25
INTERVAL_MS: Final = 100
"""Between two looks of the broker for what can be copied; each segment waits for half of it."""
WARM_UP_SEGMENTS: Final = 3
_LOOK_EVERY_S: Final = 0.002


@dataclass(slots=True)
class Watched:
    first: int = 0
    acknowledged: list[float] = field(default_factory=list)
    started: dict[SegmentId, tuple[int, float]] = field(default_factory=dict)
    """The last offset of a segment, and when its COPY_SEGMENT_STARTED was read."""
    finished: dict[int, float] = field(default_factory=dict)
    copying: list[float] = field(default_factory=list)
    tiered: list[tuple[int, float]] = field(default_factory=list)
    """The highest offset in the tier, at each change."""

    def see(self, event: object, now: float) -> None:
        if isinstance(event, SegmentMetadata):
            self.started[event.id] = (event.last_offset, now)
        elif isinstance(event, SegmentUpdate) and event.id in self.started:
            last, begun = self.started[event.id]
            if event.state is SegmentState.COPY_SEGMENT_FINISHED:
                self.finished[last] = now
                self.copying.append(now - begun)

    def delays(self) -> tuple[list[float], list[float]]:
        events, told = [], []
        for last, finished in sorted(self.finished.items()):
            at = last + 1 - self.first
            if at < len(self.acknowledged):
                rolled = self.acknowledged[at]
                events.append(finished - rolled)
                told.append(min(when for offset, when in self.tiered if offset >= last) - rolled)
        return events, told


@dataclass(slots=True)
class Delays:
    to_event: list[float] = field(default_factory=list)
    to_told: list[float] = field(default_factory=list)
    copying: list[float] = field(default_factory=list)


def compare_copies(
    run: Run, jars: Jars, plugins: Path, place: Path, segments: int, rounds: int, chance: Random
) -> None:
    found = {manager: Delays() for manager in Keeper}
    with world(jars, place / "copies", plugins) as ground:
        for number in range(rounds):
            for manager in Keeper:
                with ground.running(manager, INTERVAL_MS):
                    seen = asyncio.run(
                        _watch(ground, f"copied-{number}-{manager.name.lower()}", segments, chance)
                    )
                to_event, to_told = seen.delays()
                found[manager].to_event += to_event
                found[manager].to_told += to_told
                found[manager].copying += seen.copying
    count = len(found[Keeper.OURS].to_event)
    run.section(
        f"from the roll of a segment to its tier, {count} segments of {SEGMENT_BYTES:,} B for "
        f"each, one every {SEGMENT_EVERY_S:g} s, looked for every {INTERVAL_MS} ms"
    )
    _tell(run, found)


def _tell(run: Run, found: dict[Keeper, Delays]) -> None:
    ways = {
        "roll to COPY_SEGMENT_FINISHED": {one: found[one].to_event for one in Keeper},
        "roll to highest tiered offset": {one: found[one].to_told for one in Keeper},
        "COPY_SEGMENT_STARTED to FINISHED": {one: found[one].copying for one in Keeper},
    }
    for name, seconds in ways.items():
        for kind, figure in (("median", median), ("p95", _p95)):
            times = {manager: figure(seconds[manager]) for manager in Keeper}
            for manager, taken in times.items():
                run.add(Figure(f"{name}, {kind}, {manager}", taken * 1_000, "ms"))
            ratio = times[Keeper.OURS] / times[Keeper.KAFKA]
            run.add(Figure(f"{name}, {kind}, rlmm / Kafka's manager", ratio, "times"))


def _p95(seconds: list[float]) -> float:
    return percentile([round(one * 1e6) for one in seconds], 95) / 1e6


async def _watch(ground: World, topic: str, segments: int, chance: Random) -> Watched:
    settings = {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "retention.ms": "-1",
    }
    await create_topic(ground.node.login, topic, settings=settings)
    # The first ones wait for a topic that is new to everybody, and for Java.
    await _watch_some(ground, topic, Watched(), WARM_UP_SEGMENTS, chance)
    watched = Watched(first=WARM_UP_SEGMENTS * RECORDS_PER_SEGMENT + 1)
    await _watch_some(ground, topic, watched, segments, chance)
    return watched


async def _watch_some(
    ground: World, topic: str, watched: Watched, segments: int, chance: Random
) -> None:
    last = watched.first // RECORDS_PER_SEGMENT
    last = (last + segments) * RECORDS_PER_SEGMENT - 1
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as tasks:
        joined = asyncio.Event()
        tasks.create_task(_see_events(ground, topic, watched, last, joined))
        tasks.create_task(_see_ends(ground, topic, watched, last))
        await joined.wait()
        await _produce(ground, topic, watched, last + 2 - watched.first, chance)


async def _produce(
    ground: World, topic: str, watched: Watched, records: int, chance: Random
) -> None:
    begin = time.monotonic()
    async with AIOKafkaProducer(**ground.node.login.for_aiokafka(), acks="all") as producer:
        for number in range(records):
            due = begin + number // RECORDS_PER_SEGMENT * SEGMENT_EVERY_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await producer.send_and_wait(topic, chance.randbytes(RECORD_BYTES), partition=0)
            watched.acknowledged.append(time.monotonic())


async def _see_events(
    ground: World, topic: str, watched: Watched, last: int, joined: asyncio.Event
) -> None:
    """Seconds of the monotonic clock by offset of one topic."""
    async with consumer(ground.node.login, METADATA_TOPIC, *range(METADATA_PARTITIONS)) as client:
        for place, end in (await client.end_offsets(list(client.assignment()))).items():
            client.seek(place, end)
        joined.set()
        while last not in watched.finished:
            batches = await client.getmany(timeout_ms=200)
            now = time.monotonic()
            for record in (one for batch in batches.values() for one in batch):
                event = decode(record.value)
                if isinstance(event, SegmentMetadata | SegmentUpdate) and (
                    event.id.partition.topic == topic
                ):
                    watched.see(event, now)


async def _see_ends(ground: World, topic: str, watched: Watched, last: int) -> None:
    highest = -1
    async with connected(ground.node.bootstrap) as connection:
        while highest < last:
            (end,) = await tiered_ends(connection, topic, 1)
            if end != highest:
                highest = end
                watched.tiered.append((highest, time.monotonic()))
            await asyncio.sleep(_LOOK_EVERY_S)
