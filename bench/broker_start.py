"""
Starts of a broker, from its process to the first record from its tier, and the memory it holds
then: with Kafka's own manager, which reads the whole history, and with ours. All starts use one
data folder, in turns, after orderly stops; the broker leads all user partitions.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from bench.broker_ground import (
    DEADLINE_S,
    QUICK_INTERVAL_MS,
    Keeper,
    Memory,
    Spent,
    World,
    first_read,
    memory_of,
    processor_of,
    wait_for_tiered_ends,
    world,
)
from bench.broker_history import Written, write_history
from bench.figures import Figure
from rlmm.metadata.partitioner import metadata_partition_for
from tests.kafka.clients import create_topic, end_offsets, produce
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC

if TYPE_CHECKING:
    from pathlib import Path

    from bench.figures import Run
    from rlmm.metadata.ids import Uuid
    from tests.kafka.jars import Jars

HISTORY: Final = "history"
PROBE: Final = "probe"
_PROBE_RECORDS: Final = 100
_MIB: Final = 1 << 20


class Start(StrEnum):
    KAFKA = "Kafka's manager"
    BROKER = "rlmm, its service runs on"
    BOTH = "rlmm, its service started too, from snapshots"
    ANEW = "rlmm, its service started too, from nothing"

    @property
    def manager(self) -> Keeper:
        return Keeper.KAFKA if self is Start.KAFKA else Keeper.OURS


@dataclass(frozen=True, slots=True)
class Took:
    to_started: float
    """Until it says that it has started."""
    to_read: float
    """Until the first record came from the tier."""

    @property
    def from_started(self) -> float:
        """
        Return the seconds that follow the broker's own start, which is the same for every manager.
        """
        return self.to_read - self.to_started


@dataclass(frozen=True, slots=True)
class Sizes:
    events: tuple[int, ...]
    partitions: int
    rounds: int
    interval_ms: int
    """How often a leader looks for what can be copied, and lists all segments to expire some."""


def compare_starts(run: Run, jars: Jars, plugins: Path, place: Path, sizes: Sizes) -> None:
    for events in sizes.events:
        with world(jars, place / f"start-{events}", plugins) as ground:
            probe_id, history_id = asyncio.run(_prepare(ground, sizes.partitions))
            starts = Starts(ground, probe_id, sizes.interval_ms)
            places = {place_of(history_id, number) for number in range(sizes.partitions)}
            places.add(place_of(probe_id, 0))
            without = starts.hold([]) if events == sizes.events[-1] else {}
            data = ground.node.data
            written = write_history(data, HISTORY, history_id, sizes.partitions, events)
            ground.forget_snapshots()
            run.section(
                f"{events:,} events, {written.live_segments:,} live segments in {sizes.partitions} "
                f"user partitions, {METADATA_PARTITIONS} metadata partitions; best of "
                f"{sizes.rounds}"
            )
            starts.check(written)
            _tell_starts(run, events, starts.in_turns(sizes.rounds, len(places)))
            if without:
                _tell_held(run, events, without, starts.hold(written.tiered_ends))
                _tell_idle(run, events, sizes.interval_ms, starts.idle)


# ------------------------------------------------------------------------------------- the ground


def place_of(topic_id: Uuid, partition: int) -> int:
    return metadata_partition_for(topic_id, partition, METADATA_PARTITIONS)


async def _prepare(ground: World, partitions: int) -> tuple[Uuid, Uuid]:
    with ground.running(Keeper.OURS, QUICK_INTERVAL_MS):
        kafka = ground.kafka
        await kafka.create_topic(PROBE)
        await produce(kafka.login, PROBE, [b"x" * 500] * _PROBE_RECORDS)
        settings = {"remote.storage.enable": "true", "retention.ms": "-1"}
        await create_topic(kafka.login, HISTORY, partitions=partitions, settings=settings)
        await kafka.wait_until_trimmed(PROBE, deadline_s=DEADLINE_S)
        return kafka.topic_id(PROBE), kafka.topic_id(HISTORY)


# ----------------------------------------------------------------------------------------- starts


class Starts:
    """Starts one broker again and again."""

    def __init__(self, ground: World, probe_id: Uuid, interval_ms: int) -> None:
        self._ground = ground
        self._probe_id = probe_id
        self._interval_ms = interval_ms
        self.idle: dict[Keeper, Spent] = {}
        """What each manager cost in one interval without any traffic, when it held what it did."""

    def check(self, written: Written) -> None:
        ground = self._ground
        with ground.running(Keeper.KAFKA, self._interval_ms):
            ends = asyncio.run(end_offsets(ground.node.login, METADATA_TOPIC, METADATA_PARTITIONS))
            self._read()
        # The probe's own events come before.
        if sum(ends.values()) < written.events:
            msg = f"{written.events} events were written, the broker has {sum(ends.values())}"
            raise ValueError(msg)

    def _read(self) -> None:
        asyncio.run(first_read(self._ground.node.bootstrap, self._probe_id))

    def in_turns(self, rounds: int, places: int) -> dict[Start, list[Took]]:
        ground = self._ground
        found: dict[Start, list[Took]] = {start: [] for start in Start}
        for _ in range(rounds):
            found[Start.KAFKA].append(self._one(Start.KAFKA))
            ground.stop()
            ground.forget_snapshots()
            said = ground.sidecar.log.position
            found[Start.ANEW].append(self._one(Start.ANEW))
            whole = f"{places} of {places} are"
            ground.sidecar.log.wait_for(whole, position=said, deadline_s=DEADLINE_S)
            ground.node.stop(DEADLINE_S)
            found[Start.BROKER].append(self._one(Start.BROKER))
            ground.stop()
            found[Start.BOTH].append(self._one(Start.BOTH))
            ground.stop()
        return found

    def _one(self, start: Start) -> Took:
        ground = self._ground
        begin = time.monotonic()
        ground.spawn(start.manager, self._interval_ms)
        if start in {Start.BOTH, Start.ANEW}:
            ground.sidecar.start()
        ground.node.wait_until_ready(DEADLINE_S)
        started = time.monotonic() - begin
        self._read()
        return Took(started, time.monotonic() - begin)

    def hold(self, ends: list[int]) -> dict[Keeper, Memory]:
        held, ground = {}, self._ground
        for manager in Keeper:
            with ground.running(manager, self._interval_ms):
                self._read()
                asyncio.run(wait_for_tiered_ends(ground.node.bootstrap, HISTORY, ends))
                held[manager] = memory_of(ground)
                before = processor_of(ground)
                time.sleep(self._interval_ms / 1_000)
                self.idle[manager] = processor_of(ground).since(before)
        return held


def _tell_starts(run: Run, size: int, found: dict[Start, list[Took]]) -> None:
    kinds = {
        "broker start to first read from the tier": {
            start: min(one.to_read for one in took) for start, took in found.items()
        },
        "broker started to first read from the tier": {
            start: min(one.from_started for one in took) for start, took in found.items()
        },
    }
    for name, best in kinds.items():
        for start, seconds in best.items():
            run.add(Figure(f"{name}, {start}, {size:,} events", seconds, "s"))
        for start, seconds in best.items():
            if start is not Start.KAFKA:
                at = f"{start} / Kafka's manager, {size:,} events"
                run.add(Figure(f"{name}, {at}", seconds / best[Start.KAFKA], "times"))


# ----------------------------------------------------------------------------------- what is held


def _tell_held(
    run: Run, size: int, without: dict[Keeper, Memory], holding: dict[Keeper, Memory]
) -> None:
    at = f"{size:,} events"
    grown = {}
    for manager in Keeper:
        before, after = without[manager], holding[manager]
        grown[manager] = after.heap_bytes - before.heap_bytes
        for name, value in (
            (f"broker heap, {manager}, without a history", before.heap_bytes / _MIB),
            (f"broker heap, {manager}, {at}", after.heap_bytes / _MIB),
            (f"broker resident, {manager}, {at}", after.broker_bytes / _MIB),
        ):
            run.add(Figure(name, value, "MiB"))
    kafka, ours = holding[Keeper.KAFKA], holding[Keeper.OURS]
    before = without[Keeper.OURS]
    run.add(Figure("service resident, without a history", before.sidecar_bytes / _MIB, "MiB"))
    run.add(Figure(f"service resident, {at}", ours.sidecar_bytes / _MIB, "MiB"))
    ratios = {
        "broker heap, rlmm / Kafka's manager": ours.heap_bytes / kafka.heap_bytes,
        "broker heap and service resident, rlmm / broker heap, Kafka's manager": (
            ours.heap_bytes + ours.sidecar_bytes
        ) / kafka.heap_bytes,
        "what a history adds, service resident / heap with Kafka's manager": (
            ours.sidecar_bytes - before.sidecar_bytes
        ) / max(grown[Keeper.KAFKA], 1),
    }  # fmt: skip
    for name, value in ratios.items():
        run.add(Figure(f"{name}, {at}", value, "times"))


def _tell_idle(run: Run, size: int, interval_ms: int, idle: dict[Keeper, Spent]) -> None:
    at = f"{size:,} events"
    for manager, spent in idle.items():
        name = f"processor time of the broker in {interval_ms / 1_000:g} s without traffic"
        run.add(Figure(f"{name}, {manager}, {at}", spent.broker_s, "s"))
    spent_s = idle[Keeper.OURS].sidecar_s
    run.add(Figure(f"of the service meanwhile, {at}", spent_s, "s"))
