"""
Reads of a trimmed topic from the tier with Kafka's own consumer, and single look-ups of both
managers, each in a process of its own beside the same broker.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Final

from bench.broker_ground import DEADLINE_S, QUICK_INTERVAL_MS, USUAL_INTERVAL_MS, Keeper, world
from bench.broker_history import SEGMENT_OFFSETS, write_history
from bench.figures import Figure
from bench.measure import percentile
from tests.kafka.clients import create_topic, until, wait_for_leader
from tests.kafka.stock_manager import StockPeer
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.broker_ground import World
    from bench.broker_history import Written
    from bench.figures import Run
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm_conformance.fields import Json
    from tests.kafka.jars import Jars

PRODUCER: Final = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER: Final = "org.apache.kafka.tools.ConsumerPerformance"
BULK: Final = "bulk"
RECORD_BYTES: Final = 1_000
_SEGMENT_BYTES: Final = 16 << 20
LOOKUP_DEADLINE_US: Final = 450_000
_EPOCH: Final = 0
_WARM_UP: Final = 2_000


def compare_reads(
    run: Run, jars: Jars, plugins: Path, place: Path, megabytes: int, rounds: int, passes: int
) -> None:
    """
    Read the whole topic from offset 0 with both managers in turns. Each round starts the broker
    anew; its first pass does not count, because Java is slow at first.
    """
    records = megabytes * 1_000_000 // RECORD_BYTES
    rates: dict[Keeper, list[float]] = {manager: [] for manager in Keeper}
    with world(jars, place / "reads", plugins) as ground:
        _fill(ground, records)
        for _ in range(rounds):
            for manager in Keeper:
                with ground.running(manager, USUAL_INTERVAL_MS):
                    found = [_consume(ground, records) for _ in range(passes + 1)]
                rates[manager] += found[1:]
    run.section(
        f"{megabytes} MB in records of {RECORD_BYTES:,} B from the tier, Kafka's own consumer, "
        f"{rounds} starts of the broker with {passes} passes each"
    )
    for manager, each in rates.items():
        run.add(Figure(f"tier read, best pass, {manager}", max(each), "MB/s"))
        run.add(Figure(f"tier read, median pass, {manager}", median(each), "MB/s"))
    for kind, figure in (("best pass", max), ("median pass", median)):
        ratio = figure(rates[Keeper.OURS]) / figure(rates[Keeper.KAFKA])
        run.add(Figure(f"tier read, {kind}, rlmm / Kafka's manager", ratio, "times"))


def _fill(ground: World, records: int) -> None:
    settings = {
        "remote.storage.enable": "true", "segment.bytes": str(_SEGMENT_BYTES), "retention.ms": "-1",
        "local.retention.ms": "1000", "local.retention.bytes": "1", "file.delete.delay.ms": "100",
    }  # fmt: skip
    with ground.running(Keeper.OURS, QUICK_INTERVAL_MS):
        asyncio.run(create_topic(ground.node.login, BULK, settings=settings))
        ground.node.tools.run(
            PRODUCER, "--topic", BULK, "--num-records", str(records), "--record-size",
            str(RECORD_BYTES), "--throughput", "-1", deadline_s=DEADLINE_S,
        )  # fmt: skip
        asyncio.run(ground.kafka.wait_until_trimmed(BULK, deadline_s=DEADLINE_S))


def _consume(ground: World, records: int) -> float:
    told = ground.node.tools.run(
        CONSUMER, "--topic", BULK, "--num-records", str(records), "--timeout", "60000",
        deadline_s=DEADLINE_S,
    )  # fmt: skip
    count, rate = consumed(told)
    if count < records:
        msg = f"{count} of {records} records were read:\n{told}"
        raise ValueError(msg)
    return rate


def consumed(told: str) -> tuple[int, float]:
    """Return records and MB per second, as `kafka-consumer-perf-test` prints them."""
    names, values = ([one.strip() for one in line.split(",")] for line in told.splitlines()[-2:])
    row = dict(zip(names, values, strict=True))
    mebibytes_per_s = float(row["fetch.MB.sec"])
    return int(row["data.consumed.in.nMsg"]), mebibytes_per_s * (1 << 20) / 1e6


# --------------------------------------------------------------------------------------- look-ups


def compare_lookups(
    run: Run, jars: Jars, plugins: Path, place: Path, events: int, questions: int
) -> None:
    with world(jars, place / "lookups", plugins) as ground:
        with ground.running(Keeper.OURS, QUICK_INTERVAL_MS):
            asyncio.run(_create_tiered(ground))
            partition = ground.kafka.user_partition(BULK)
        written = write_history(ground.node.data, BULK, partition.topic_id, 1, events)
        ground.forget_snapshots()
        with ground.running(Keeper.OURS, USUAL_INTERVAL_MS):
            taken = _ask_both(ground, place, partition, written, questions)
    run.section(
        f"{questions:,} look-ups in {written.live_segments:,} live segments of one user partition"
    )
    for percent in (50, 99):
        for manager, each in taken.items():
            run.add(Figure(f"look-up p{percent}, {manager}", percentile(each, percent), "us"))
    ours = percentile(taken[Keeper.OURS], 99) / LOOKUP_DEADLINE_US
    run.add(Figure("look-up p99, rlmm / the longest that a fetch waits for one", ours, "times"))


async def _create_tiered(ground: World) -> None:
    settings = {"remote.storage.enable": "true", "retention.ms": "-1"}
    login = ground.node.login
    await create_topic(login, BULK, settings=settings)
    for number in range(METADATA_PARTITIONS):
        await wait_for_leader(login, METADATA_TOPIC, number)


def _ask_both(
    ground: World, place: Path, partition: TopicIdPartition, written: Written, questions: int
) -> dict[Keeper, list[int]]:
    chance = Random(1)
    (last,) = written.tiered_ends
    first = last + 1 - written.live_segments * SEGMENT_OFFSETS
    taken: dict[Keeper, list[int]] = {manager: [] for manager in Keeper}
    node = ground.node
    with ExitStack() as closing:
        peers = {
            manager: closing.enter_context(
                StockPeer(
                    node.jars, place / f"peer-{manager.name}", node.bootstrap,
                    settings=_peer_settings(ground, manager), broker_id=100 + number,
                )
            )
            for number, manager in enumerate(Keeper)
        }  # fmt: skip
        for peer in peers.values():
            peer.assign(partition)
        for peer in peers.values():
            asyncio.run(_wait_ready(peer, partition))
        for is_counted, count in ((False, _WARM_UP), (True, questions)):
            for manager, peer in peers.items():
                asked: list[dict[str, Json]] = [
                    {"op": "lookup", "epoch": _EPOCH, "offset": chance.randint(first, last)}
                    for _ in range(count)
                ]
                answers, latencies_us = peer.ask_all(partition, asked)
                _require_found(answers)
                if is_counted:
                    taken[manager] += latencies_us
    return taken


def _peer_settings(ground: World, manager: Keeper) -> dict[str, str]:
    if manager is Keeper.KAFKA:
        return {}
    ours = ground.ours
    return {
        "manager.class.name": ours["remote.log.metadata.manager.class.name"],
        "manager.class.path": ours["remote.log.metadata.manager.class.path"],
        "cluster.id": ground.node.cluster_id,
        "sidecar.address": ours["rlmm.config.sidecar.address"],
    }


async def _wait_ready(peer: StockPeer, partition: TopicIdPartition) -> None:
    await until(lambda: peer.is_ready(partition), "a manager is ready", deadline_s=DEADLINE_S)


def _require_found(answers: Sequence[dict[str, Json]]) -> None:
    missed = [answer for answer in answers if not answer.get("ok")]
    if missed:
        msg = f"{len(missed)} of {len(answers)} look-ups found nothing: {missed[0]}"
        raise ValueError(msg)
