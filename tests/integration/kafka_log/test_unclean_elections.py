"""
The metadata topic is cut by an unclean election and grows back: nothing of what was lost is ever
answered again, by a service that was down, that had given its partitions up, or that followed it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    LogError,
    LogUnavailable,
    NotReady,
    OutcomeUnknown,
)
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.verdicts import APPLIED
from tests.kafka.clients import until
from tests.kafka.cluster import Cluster
from tests.kafka.elections import REPLICAS, WITNESS, UncleanTopic
from tests.support.builders import segment_id, started
from tests.support.kafka.cut_log import (
    BEYOND,
    PLACES,
    SAME,
    SELDOM,
    SHORTER,
    WAIT_S,
    Service,
    answers,
    common,
    lost,
    others,
    partition_on,
    replayed,
    require_clean_snapshots,
    require_truth,
    true_answers,
)
from tests.support.kafka.kafka_logs import own_topic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from tests.kafka.jars import Jars

WRITERS = 6
ELECTIONS = 3
SHORT_S = 1.0
"""A deadline that is meant to pass."""


@pytest.fixture(scope="module")
def started_cluster(
    kafka_jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start nodes that wait only briefly for the controller, which may be the stopped node."""
    folder = tmp_path_factory.mktemp("kafka") / "cluster"
    with Cluster(kafka_jars, folder, properties={"request.timeout.ms": "2000"}) as cluster:
        yield cluster.start()


@asynccontextmanager
async def unclean_topic(cluster: Cluster, *, kills: bool = False) -> AsyncIterator[UncleanTopic]:
    topic = UncleanTopic(cluster, own_topic("unclean"), len(PLACES), kills=kills)
    await topic.create()
    try:
        yield topic
    finally:
        await topic.mend()


@pytest.fixture(params=["stopped", pytest.param("killed", marks=pytest.mark.long)])
async def topic(
    kafka_cluster: Cluster, request: pytest.FixtureRequest
) -> AsyncIterator[UncleanTopic]:
    """Return a topic whose nodes all come back when the test ends."""
    async with unclean_topic(kafka_cluster, kills=request.param == "killed") as topic:
        yield topic


async def grow_back(topic: UncleanTopic, cut: Sequence[int], ends: Sequence[int]) -> None:
    """Store other events from *cut* on: beyond the former *ends*, up to them, and fewer."""
    counts = {BEYOND: ends[BEYOND] - cut[BEYOND] + 4, SAME: ends[SAME] - cut[SAME], SHORTER: 2}
    await topic.store({place: others(place, number) for place, number in counts.items()})
    assert [end - was for end, was in zip(await topic.ends(), ends, strict=True)][:2] == [4, 0]


async def waiting(service: Service, topic: UncleanTopic, writers: int) -> list[int]:
    """Wait until each of the *writers* has stored an event that is not read; return the ends."""
    async with asyncio.timeout(WAIT_S):
        await service.holds_reads()
        read = sum(offset + 1 for offset in service.metadata.read_token().values())
        while True:
            ends = await topic.ends()
            if sum(ends) == read + writers:
                return ends


async def test_services_when_the_log_was_cut_and_grew_back_then_answer_as_a_fresh_replay(
    topic: UncleanTopic, tmp_path: Path
) -> None:
    """A service that was down, unassigned, or following answers and keeps nothing of the lost."""
    await topic.store({place: common(place) for place in PLACES})
    down, unassigned = Service(topic, tmp_path / "down"), Service(topic, tmp_path / "unassigned")
    following = Service(topic, tmp_path / "following")
    by_epochs = Service(topic, tmp_path / "by-epochs", SELDOM)
    running = unassigned, following, by_epochs
    async with AsyncExitStack() as stack:
        for service in running:
            await stack.enter_async_context(service.run())
        async with down.run():
            await asyncio.gather(*(service.save() for service in (down, *running)))
            cut = await topic.ends()
            await topic.leave_alone()
            await topic.store({place: lost(place)[:3] for place in PLACES})
            await asyncio.gather(*(service.save() for service in running))
        assert down.stopped.written == PLACES
        await topic.store({place: lost(place)[3:] for place in PLACES})
        saving = await asyncio.gather(*(service.begin_save() for service in running))
        await unassigned.metadata.reconcile(Assignment.nothing())
        ends = await topic.ends()
        await topic.elect_other()
        assert await topic.ends() == cut
        await grow_back(topic, cut, ends)
        await topic.mend()

        records = await topic.records()
        truth = [replayed(records[place], place) for place in PLACES]
        await unassigned.metadata.reconcile(Assignment.everything())
        assert await unassigned.metadata.wait_all_ready(timeout_s=WAIT_S) == []
        await require_truth(unassigned, truth)
        for service in (following, by_epochs):
            await service.has_begun_anew()
            await require_truth(service, truth)
        for service, task in zip(running, saving, strict=True):
            service.disk.may_end.set()
            assert (await task).written == (), service.folder
        async with down.run():
            await require_truth(down, truth)
    for service in (down, *running):
        await asyncio.to_thread(require_clean_snapshots, service, records)
        async with service.run():
            await require_truth(service, truth)
            assert service.engine.statistics().pump.tally.offsets == 0


async def test_writer_when_its_event_was_lost_then_hears_no_verdict_of_another(
    topic: UncleanTopic, tmp_path: Path
) -> None:
    """A writer whose event an election removed is told so; its next event is its own again."""
    await topic.store({place: common(place)[:2] for place in PLACES})
    segments = [started(segment_id("mine", partition_on(place)), 300, 399) for place in PLACES]
    service = Service(topic, tmp_path, SELDOM)
    async with service.run():
        for place in PLACES:  # a broker whose controller is stopped may give no producer id
            first = started(segment_id("first", partition_on(place)), 400, 499)
            await service.metadata.add_segment(first)
        service.log.may_read.clear()
        await topic.store({place: common(place)[2:] for place in PLACES})  # ends the reads
        cut = await waiting(service, topic, 0)
        await topic.leave_alone()
        writing = [asyncio.create_task(service.metadata.add_segment(one)) for one in segments]
        ends = await waiting(service, topic, len(writing))
        await topic.elect_other()
        assert await topic.ends() == cut
        await grow_back(topic, cut, ends)
        await topic.mend()
        assert not any(task.done() for task in writing)
        service.log.may_read.set()
        for outcome in await asyncio.gather(*writing, return_exceptions=True):
            assert isinstance(outcome, OutcomeUnknown), outcome
        for segment in segments:
            written = await service.metadata.add_segment(segment)
            assert written.verdict == APPLIED
            assert await service.metadata.segment(segment.id) == segment
            stored = (await topic.records())[written.metadata_partition]
            assert stored[written.offset] == encode_any(segment)


@pytest.mark.long
async def test_isolated_leader_when_its_successor_was_heard_of_then_is_not_believed(
    kafka_cluster: Cluster, tmp_path: Path
) -> None:
    """A service that heard of the successor refuses; one that did not tells the old log end."""
    async with unclean_topic(kafka_cluster) as topic:
        await topic.store({place: common(place) for place in PLACES})
        old = [replayed(values, place) for place, values in enumerate(await topic.records())]
        heard, cut_off = Service(topic, tmp_path / "heard"), Service(topic, tmp_path / "cut-off")
        former = await topic.leader()
        heard.login = cut_off.login = kafka_cluster.nodes[former].login
        async with heard.run():
            await topic.elect_other()
            await topic.store({place: others(place, 4) for place in PLACES})
            await heard.save()
            truth = [replayed(values, place) for place, values in enumerate(await topic.records())]
            token = heard.metadata.read_token()
            for node_id in {*REPLICAS, WITNESS} - {former}:
                await topic.take(node_id)
            await topic.bring(former)
            async with cut_off.run():
                await require_truth(cut_off, old)
                await heard.has_asked_again()
                for place in PLACES:
                    for service, how in (
                        (heard, {"linearizable": True}),
                        (cut_off, {"at_least": token}),
                    ):
                        with pytest.raises((LogError, NotReady)):
                            await service.metadata.segments(
                                partition_on(place), **how, timeout_s=SHORT_S
                            )
                assert await answers(heard.metadata) == true_answers(truth)
                await topic.mend()
                await cut_off.metadata.segments_for([], at_least=token, timeout_s=WAIT_S)
                for service in (heard, cut_off):
                    await require_truth(service, truth)


class Writers:
    """Writers of one service that write until the test stops them."""

    def __init__(self, service: Service, tasks: asyncio.TaskGroup) -> None:
        self.applied = 0
        self.unknown = 0
        self.is_over = False
        self._service = service
        self._tasks = tasks
        self._begun = 0

    def begin(self) -> None:
        for number in range(self._begun, self._begun + WRITERS):
            self._tasks.create_task(self.write(number))
        self._begun += WRITERS

    async def write(self, writer: int) -> None:
        partition = partition_on(writer % len(PLACES))
        number = 0
        while not self.is_over:
            event = started(segment_id(f"{writer}-{number}", partition), number, number)
            number += 1
            try:
                written = await self._service.metadata.add_segment(event, timeout_s=WAIT_S)
            except (OutcomeUnknown, AppendUncertain):
                self.unknown += 1
            except (AppendRefused, LogUnavailable, NotReady):
                continue
            else:
                at = written.metadata_partition, written.offset
                assert (*at, encode_any(event)) in self._service.log.has_read
                self.applied += 1

    async def all_wait(self, topic: UncleanTopic) -> list[int]:
        return await waiting(self._service, topic, self._begun)

    async def go_on(self) -> None:
        wanted = self.applied + 100
        await until(lambda: self.applied >= wanted, f"{wanted} events were applied")


@pytest.mark.long
async def test_writers_when_leaders_are_lost_again_and_again_then_hear_of_their_own_events(
    topic: UncleanTopic, tmp_path: Path
) -> None:
    """The service has read each event that it calls applied; at the end it answers as a replay."""
    service = Service(topic, tmp_path, SELDOM)
    async with service.run():
        async with asyncio.TaskGroup() as tasks:
            writers = Writers(service, tasks)
            for _ in range(ELECTIONS):
                writers.begin()
                await writers.go_on()
                service.log.may_read.clear()
                cut = await writers.all_wait(topic)
                await topic.leave_alone()
                writers.begin()
                ends = await writers.all_wait(topic)
                await topic.elect_other()
                assert await topic.ends() == cut
                await grow_back(topic, cut, ends)
                await topic.mend()
                service.log.may_read.set()
                await writers.go_on()
            writers.is_over = True
        assert writers.unknown >= ELECTIONS * WRITERS
        records = await topic.records()
        truth = [replayed(values, place) for place, values in enumerate(records)]
        await require_truth(service, truth)
    await asyncio.to_thread(require_clean_snapshots, service, records)
    async with service.run():
        await require_truth(service, truth)
