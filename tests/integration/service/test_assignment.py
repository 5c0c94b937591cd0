"""The assignment from the cluster, and the watch of copies that are disabled."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.config.loading import load
from rlmm.engine.engine import EngineSettings
from rlmm.engine.plan import EnginePlan, LogOpener, open_memory
from rlmm.engine.service import Service
from rlmm.errors import NotAssigned, NotReady, RlmmError
from rlmm.log.memory.memory_log import MemoryLog, MemoryLogStatistics
from rlmm.log.memory.topic import MemoryTopic
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.ids import TopicIdPartition
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.segment import SegmentState
from rlmm.metrics.served_state import ServedState
from rlmm.process.run import serve
from rlmm.process.wiring import SNAPSHOT_FOLDER, plans_of
from rlmm.snapshot.folder_check import stored_below
from tests.kafka.clients import create_topic, produce, wait_for_leader
from tests.kafka.cluster import Cluster
from tests.kafka.tiered import METADATA_PARTITIONS, TIERED_TOPIC, TieredKafka
from tests.support.builders import started, tp
from tests.support.engines import ROOM, until
from tests.support.server.serve_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kafka.jars import Jars


DEADLINE_S = 60.0
WATCHED = 1
TOPIC = "spread"
PARTITIONS = 6
RECORDS = [b"%03d" % number + b"x" * 497 for number in range(60)]
SEGMENTS = 2


async def test_d17_serve_when_a_broker_is_to_report_then_warns(tmp_path: Path) -> None:
    """The start warns that no broker has reported yet, and the service runs and stops in order."""
    async with serving(tmp_path, "--assignment", "broker", "--log-kind", "memory") as served:
        line = await served.until("nothing is answered before a broker has reported")
        assert line["level"] == "warning"
        await served.until("metadata topic")
        assert await served.end(signal.SIGTERM) == 0


async def test_f34_service_then_tells_how_its_engines_stand_and_what_was_asked_of_it() -> None:
    """The statistics have uptime, requested snapshots and every engine by name."""
    plan = EnginePlan(
        "memory",
        partial(open_memory, 2),
        Assignment.everything(),
        EngineSettings(memory=ROOM),
        None,
        is_observer=False,
    )
    service: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve([plan], DEADLINE_S, on_started=service.set_result))
    running = await service
    await running.engines["memory"].wait_all_ready(timeout_s=DEADLINE_S)
    await running.engines["memory"].write(started("a"))
    first = running.statistics()
    assert (list(first.engines), first.engines["memory"].writes.applied) == (["memory"], 1)
    assert isinstance(first.engines["memory"].log, MemoryLogStatistics)
    assert (first.snapshots_asked, first.watches) == (0, {})
    signal.raise_signal(signal.SIGUSR1)
    await until(lambda: running.statistics().snapshots_asked == 1, DEADLINE_S)
    assert running.statistics().uptime_s > first.uptime_s > 0
    signal.raise_signal(signal.SIGTERM)
    await task


@pytest.fixture(scope="module")
def tiered_cluster(kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(kafka_jars, tmp_path_factory.mktemp("kafka") / "tiered", tiered=True) as cluster:
        yield cluster.start()


class Spread:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.watched = TieredKafka(cluster.nodes[WATCHED])
        self.held: dict[int, TopicIdPartition] = {}
        self.others: list[TopicIdPartition] = []
        self.filled: list[TopicIdPartition] = []

    async def fill(self) -> None:
        login = self.cluster.login
        await create_topic(login, TOPIC, partitions=PARTITIONS, replicas=2, settings=TIERED_TOPIC)
        await create_topic(login, "plain", partitions=3, replicas=3)
        leaders = [await wait_for_leader(login, TOPIC, number) for number in range(PARTITIONS)]
        folders = [self.watched.node.data / f"{TOPIC}-{number}" for number in range(PARTITIONS)]
        numbers = [number for number, folder in enumerate(folders) if folder.is_dir()]
        topic_id = self.watched.topic_id(TOPIC, numbers[0])
        for number in range(PARTITIONS):
            partition = TopicIdPartition(topic_id, TOPIC, number)
            if number in numbers:
                self.held[number] = partition
            else:
                self.others.append(partition)
        led = next(number for number in numbers if leaders[number] == WATCHED)
        followed = next(number for number in numbers if leaders[number] != WATCHED)
        for number in (led, followed):
            await produce(login, TOPIC, RECORDS, partition=number)
            self.filled.append(self.held[number])
        await self.watched.wait_until_tiered(TOPIC, 2 * SEGMENTS, deadline_s=DEADLINE_S)

    def places(self) -> set[int]:
        return {
            metadata_partition_for(found.topic_id, found.partition, METADATA_PARTITIONS)
            for found in self.held.values()
        }

    def settings(self) -> dict[str, str]:
        return {"assignment": f"cluster:{WATCHED}", "assignment_refresh_ms": "1000"}


async def read_by_a_process(spread: Spread, folder: Path) -> set[int]:
    flags = [f"--{key.replace('_', '-')}={text}" for key, text in spread.settings().items()]
    brokers = spread.cluster.bootstrap
    async with serving(folder, "--bootstrap-server", brokers, *flags) as served:
        count = len(spread.held)
        await served.until(f"leads or follows {count} partitions of tiered topics")
        await served.until_open(len(spread.places()))
        assert await served.end(signal.SIGTERM) == 0
    assert served.messages[-1] == "stopped"
    snapshots = folder / "rlmm-data" / SNAPSHOT_FOLDER
    stored = await asyncio.to_thread(lambda: list(stored_below(snapshots)))
    return {snapshot.partition for snapshot in stored}


async def test_d17_f45_serve_when_a_broker_of_a_kafka_cluster_is_followed_then_answers_for_it(
    tiered_cluster: Cluster, tmp_path: Path
) -> None:
    """The service answers exactly for the partitions that the broker leads and follows."""
    spread = Spread(tiered_cluster)
    await spread.fill()
    assert spread.held
    assert spread.others
    written = await read_by_a_process(spread, tmp_path)
    assert written
    assert written <= spread.places()

    service: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    said = {"kafka_bootstrap_servers": spread.cluster.bootstrap, **spread.settings()}
    plans = plans_of(load({**said, "data_dir": str(tmp_path / "other")}))
    task = asyncio.create_task(serve(plans, DEADLINE_S, on_started=service.set_result))
    running = await service
    ((name, engine),) = running.engines.items()
    met: set[type[RlmmError]] = set()

    def answers(partition: TopicIdPartition) -> bool:
        try:
            found = engine.reads.segments(partition)
        except RlmmError as error:
            met.add(type(error))
            return False
        states = [segment.state for segment in found]
        return states.count(SegmentState.COPY_SEGMENT_FINISHED) >= SEGMENTS

    for partition in spread.filled:
        await until(partial(answers, partition), DEADLINE_S)
    assert met <= {NotReady}
    for partition in (*spread.others, tp("plain")):
        with pytest.raises(NotAssigned):
            engine.reads.segments(partition)
    stands = running.statistics()
    (watch,) = stands.watches.values()
    assert (watch.broker_id, watch.partitions, watch.failures) == (WATCHED, len(spread.held), 0)
    assert set(stands.engines[name].gates) == spread.places()
    signal.raise_signal(signal.SIGTERM)
    await task


class TellingLog(MemoryLog):
    async def topics_not_copied(self, *, timeout_s: float) -> frozenset[str]:
        return frozenset({"orders"})


async def test_topic_when_not_copied_then_the_status_of_the_service_names_it() -> None:
    """The watch runs with its engine, and the status shows its topics."""

    async def open_log() -> LogOpener:
        return LogOpener(TellingLog(MemoryTopic(2)))

    plan = EnginePlan(
        "main", open_log, Assignment.everything(), EngineSettings(memory=ROOM), None,
        is_observer=False, copying_warn_s=0.2,
    )  # fmt: skip
    service = Service({})
    await service.add(plan)
    running = asyncio.create_task(service.run())
    try:
        await until(lambda: service.statistics().copying["main"].answers == 6)
        sources = ServedState("0.0.test")
        sources.begin(service)
        shown = sources.process_view(asyncio.get_running_loop().time())["copying"]
    finally:
        running.cancel()
        await asyncio.wait([running])
        await service.close()
    assert isinstance(shown, dict)
    (topic,) = shown["main"]["not_copied"]
    assert topic["topic"] == "orders"
    assert topic["age_s"] >= 0.2


@pytest.mark.parametrize(
    ("flags", "warn_s"),
    [
        ({"log_kind": "memory"}, None),
        ({"kafka_bootstrap_servers": "localhost:1"}, 3_600.0),
        ({"kafka_bootstrap_servers": "localhost:1", "copy_disabled_warn_ms": "5000"}, 5.0),
    ],
    ids=["no-cluster", "as-it-is", "sooner"],
)
def test_plan_when_made_then_asks_a_cluster_alone(
    flags: dict[str, str], warn_s: float | None, tmp_path: Path
) -> None:
    """Only a log on Kafka has a copy watch."""
    (plan,) = plans_of(load({"data_dir": str(tmp_path), **flags}))
    assert plan.copying_warn_s == warn_s
