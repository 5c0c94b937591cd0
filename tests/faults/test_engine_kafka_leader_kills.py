"""An engine whose Kafka leaders are killed: its answers, and a second service's, are right."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rlmm.engine.engine import EngineSettings
from rlmm.errors import NotReady, UnknownPartition
from rlmm.library.remote_log_metadata import open_metadata
from rlmm.log.kafka.kafka_log import KafkaLog
from rlmm.log.protocol import LogBounds
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.pump.settings import PumpSettings
from tests.conformance.log.under_test import ANSWER_S, read_until
from tests.kafka.clients import create_topic, until, wait_for_leader
from tests.support.engine.broker_writers import Copier, ask
from tests.support.engine.claims import KINDS, Claims, Question, check, judge, user_partition
from tests.support.kafka.kafka_logs import own_topic, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.library.remote_log_metadata import RemoteLogMetadata
    from tests.kafka.cluster import Cluster
    from tests.support.engine.claims import Stored

_log = logging.getLogger(__name__)

PLACES = 6
COPIERS = 24
REPLICATED = {"min.insync.replicas": "2"}
SETTINGS = EngineSettings(
    pump=PumpSettings(bounds_interval_ms=250, retry_first_ms=50, retry_last_ms=1_000)
)
PATIENCE_S = 120.0
IMPATIENT_S = 1.5
"""A writer gives up before a leader change ends, so that some writes have an unknown outcome."""


def place_of(writer: int, generation: int) -> int:
    partition = user_partition(writer, generation)
    return metadata_partition_for(partition.topic_id, partition.partition, PLACES)


async def read_elsewhere(metadata: RemoteLogMetadata, claims: Claims, rng: random.Random) -> None:
    heard = 0

    def is_news() -> bool:
        return len(claims.wrote) > heard

    while True:
        await until(is_news, "one more event was acknowledged", deadline_s=PATIENCE_S)
        heard = len(claims.wrote)
        last = claims.wrote[-1]
        near = [writer for writer in range(COPIERS) if place_of(writer, 0) == last.place]
        if not near:
            continue
        question = Question(rng.choice(KINDS), rng.choice(near), 0, 0, rng.randrange(20_000))
        try:
            await metadata.segments(
                user_partition(question.writer, 0), at_least={last.place: last.offset}
            )
        except NotReady:
            continue
        except UnknownPartition:
            pass
        # The wait has ended: what is answered now may not be older.
        ask(metadata, question, PLACES, claims.add, last.offset + 1)


async def kill_leaders(
    cluster: Cluster, topic: str, claims: Claims, rng: random.Random, writes: int, kills: int
) -> None:
    async def grown(count: int) -> None:
        wanted = len(claims.wrote) + count
        await until(
            lambda: len(claims.wrote) >= wanted,
            f"{wanted} events were acknowledged",
            deadline_s=PATIENCE_S,
        )

    step = writes // (2 * kills)
    for number in range(kills):
        await grown(rng.randint(1, step))
        partition = rng.randrange(PLACES)
        victim = await wait_for_leader(cluster.login, topic, partition)
        _log.warning("kill %d: node %d after %d events", number, victim, len(claims.wrote))
        await asyncio.to_thread(cluster.kill, victim)
        await wait_for_leader(cluster.login, topic, partition, besides=victim)
        await grown(rng.randint(1, step))
        await asyncio.to_thread(cluster.restart, victim)
    await grown(max(1, writes - len(claims.wrote)))


async def read_topic(settings: KafkaSettings) -> Stored:
    log = await KafkaLog.open(settings)
    try:
        stored: Stored = {}
        for place, bounds in (await log.bounds(range(PLACES), timeout_s=ANSWER_S)).items():
            assert isinstance(bounds, LogBounds), bounds
            assert bounds.log_start_offset == 0
            stored[place] = await read_until(log, place, 0, bounds.high_watermark)
    finally:
        await log.close()
    return stored


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(
    ("writes", "kills"),
    [
        pytest.param(1_000, 3, id="1000-writes"),
        pytest.param(100_000, 20, id="100000-writes", marks=pytest.mark.long),
    ],
)
async def test_f40_engine_when_leaders_are_killed_then_every_claim_it_made_is_true(
    kafka_cluster: Cluster, tmp_path: Path, writes: int, kills: int
) -> None:
    """Leader kills lose or duplicate no acknowledged event, and all verdicts are right."""
    rng = random.Random(kills)
    topic = own_topic("kills")
    await create_topic(
        kafka_cluster.login, topic, partitions=PLACES, replicas=3, settings=REPLICATED
    )
    settings = replace(settings_for(kafka_cluster.login, topic, replicas=3), fetch_max_wait_ms=100)
    claims = Claims()
    copiers: list[Copier] = []
    async with AsyncExitStack() as opened:
        services = []
        for name in ("one", "two"):
            log = await KafkaLog.open(settings)
            opened.push_async_callback(log.close)
            service = open_metadata(log, snapshots=tmp_path / name, settings=SETTINGS)
            services.append(await opened.enter_async_context(service))
        copiers += [
            Copier(services[0], claims.add_own, 0, number, COPIERS, PLACES, IMPATIENT_S)
            for number in range(COPIERS)
        ]
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(read_elsewhere(services[1], claims, rng))
            writing = [tasks.create_task(copier.run()) for copier in copiers]
            await kill_leaders(kafka_cluster, topic, claims, rng, writes, kills)
            for copier in copiers:
                copier.is_over = True
            await asyncio.wait(writing)
            reading.cancel()
    _log.warning(
        "%d events acknowledged, %d answers; %d appends uncertain, %d refused",
        len(claims.wrote),
        len(claims.answered),
        sum(copier.uncertain for copier in copiers),
        sum(copier.refused for copier in copiers),
    )
    stored = await read_topic(settings_for(kafka_cluster.login, topic, replicas=3))
    judgement = judge(stored, claims.answered)
    attempts = sum((copier.attempts for copier in copiers), start=Counter[int]())
    check(claims, judgement, repeats_max=max(attempts.values()))
    too_often = {
        stamp: found for stamp, found in judgement.stamps.items() if len(found) > attempts[stamp]
    }
    assert not too_often, "stored more often than they were written"
    assert len(claims.wrote) >= writes
    assert len({claim.place for claim in claims.wrote}) == PLACES
    assert sum(claim.floor > 0 for claim in claims.answered) > writes // 10
