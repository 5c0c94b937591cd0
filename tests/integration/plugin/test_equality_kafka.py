"""
Our plugin and Kafka's own manager on one live topic: answers are equal or a named rule applies.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import pytest

from rlmm.metadata.encoding import encode_any
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm_conformance.rules import ConformanceRule
from tests.kafka.clients import PAUSE_S, produce, until
from tests.kafka.node import kafka_id
from tests.kafka.side_by_side import Comparison, Question, compare, questions_about
from tests.kafka.tiered import METADATA_PARTITIONS, user_partition_of
from tests.kafka.tools import METADATA_TOPIC
from tests.support.builders import segment_id, started
from tests.support.records.rival_histories import EPOCHS, RivalHistory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from rlmm.metadata.events import PartitionDelete, SegmentUpdate
    from rlmm.metadata.segment import SegmentMetadata
    from tests.integration.plugin.conftest import NewPeer
    from tests.kafka.fixtures import StockPeers
    from tests.kafka.plugin_kafka import PluginKafka
    from tests.kafka.stock_manager import StockPeer

    LogEvent = SegmentMetadata | SegmentUpdate | PartitionDelete

RECORDS = [b"%04d" % number + b"x" * 496 for number in range(112)]
SEGMENTS = 4
DEADLINE_S = 60.0
SEEDS = 3
LOOKS = 5_000
LOOKUP_MS_MAX = 450.0
"""What a broker has for the whole of a read is 500 ms."""


def new_partition(topic: str) -> TopicIdPartition:
    return TopicIdPartition(Uuid.parse(kafka_id()), topic, 0)


def place_of(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, METADATA_PARTITIONS)


class BothFollow:
    def __init__(self, kafka: PluginKafka, stock: StockPeer, ours: StockPeer) -> None:
        self.kafka, self.stock, self.ours = kafka, stock, ours
        marked = (new_partition(f"mark-{number}") for number in count())
        self.marks: dict[int, TopicIdPartition] = {}
        while len(self.marks) < METADATA_PARTITIONS:
            one = next(marked)
            self.marks.setdefault(place_of(one), one)
        self._marks_written = 0
        self.rounds = 0
        """How often both were asked while others wrote."""

    async def follow(self, *partitions: TopicIdPartition) -> None:
        for peer in (self.stock, self.ours):
            peer.assign(*partitions, *self.marks.values())
        await until(
            lambda: all(
                peer.is_ready(one) for peer in (self.stock, self.ours) for one in partitions
            ),
            "both were ready",
            deadline_s=DEADLINE_S,
        )

    async def write(self, events: Iterable[LogEvent]) -> None:
        values: dict[int, list[bytes]] = {}
        for event in events:
            place = place_of(user_partition_of(event))
            values.setdefault(place, []).append(encode_any(event))
        for place, some in values.items():
            await produce(self.kafka.login, METADATA_TOPIC, some, partition=place)

    async def catch_up(self) -> None:
        self._marks_written += 1
        marks = [started(segment_id(self._marks_written, one)) for one in self.marks.values()]
        await self.write(marks)
        await until(
            lambda: all(
                mark in peer.list(mark.id.partition)
                for peer in (self.stock, self.ours)
                for mark in marks
            ),
            "both had read everything",
            deadline_s=DEADLINE_S,
        )

    def history(self, partition: TopicIdPartition) -> list[LogEvent]:
        return [
            found.event
            for found in self.kafka.metadata_events(partition.topic)
            if user_partition_of(found.event) == partition
        ]

    async def keep_asking(self, partition: TopicIdPartition) -> None:
        """Ask both without end and fail only on a refusal, since other answers change meanwhile."""
        chance = random.Random(0)
        while True:
            asked = [one.of_peer() for one in questions_about(range(EPOCHS), 1_000, 5, chance)]
            for peer in (self.stock, self.ours):
                answers, _ = peer.ask_all(partition, asked)
                assert all("ok" in answer for answer in answers), answers
            self.rounds += 1
            await asyncio.sleep(PAUSE_S)

    async def agree(
        self, partition: TopicIdPartition, questions: Sequence[Question], found: Comparison
    ) -> None:
        events = self.history(partition)
        await asyncio.to_thread(compare, self.stock, self.ours, partition, events, questions, found)
        assert self.history(partition) == events, "somebody wrote while both were asked"
        assert found.unproved == []


@pytest.fixture
def both(our_kafka: PluginKafka, new_peer: NewPeer, stock_peer: StockPeers) -> BothFollow:
    kafka = our_kafka
    stock = stock_peer(kafka.bootstrap)
    ours = new_peer(kafka.bootstrap, kafka.node.cluster_id, kafka.sidecar.address)
    return BothFollow(kafka, stock, ours)


async def live_topics(both: BothFollow) -> list[TopicIdPartition]:
    """Two topics: one with two leader epochs and lost segments, one that was deleted."""
    kafka = both.kafka
    for topic in ("orders", "gone"):
        await kafka.create_topic(topic)
        await produce(kafka.login, topic, RECORDS[:1])  # makes the broker write down its id
    orders, gone = kafka.user_partition("orders"), kafka.user_partition("gone")
    await both.follow(orders, gone)
    for topic in ("orders", "gone"):
        await produce(kafka.login, topic, RECORDS[1:])
    await kafka.wait_until_tiered("orders", SEGMENTS, deadline_s=DEADLINE_S)
    await kafka.wait_until_tiered("gone", SEGMENTS, deadline_s=DEADLINE_S)
    await kafka.delete_topic("gone")
    await kafka.wait_until_deleted("gone", SEGMENTS, deadline_s=DEADLINE_S)
    kafka.restart_broker()  # a leader that comes back has a new epoch
    await produce(kafka.login, "orders", RECORDS)
    await kafka.wait_until_tiered("orders", 2 * SEGMENTS, deadline_s=DEADLINE_S)
    await kafka.expire("orders", 3 * 16_000)
    await kafka.wait_until_deleted("orders", SEGMENTS, deadline_s=DEADLINE_S)
    return [orders, gone]


def epochs_of(events: Iterable[LogEvent]) -> set[int]:
    return {epoch for event in events for epoch, _ in getattr(event, "epochs", ())}


async def test_answers_when_others_write_then_equal_or_by_a_named_rule(both: BothFollow) -> None:
    """Both managers agree through copies, retention, deletion, a new epoch and rival brokers."""
    chance = random.Random(8)
    rivals = new_partition("rivals")
    await both.follow(rivals)
    history = RivalHistory(rivals, chance, 150)
    writing = asyncio.create_task(both.write(history.events))
    async with asking(both, rivals):
        orders, gone = await live_topics(both)
        await writing
        await both.catch_up()
    found = Comparison()
    assert len(epochs_of(both.history(orders))) >= 2
    for partition, last, looks in ((orders, 250, 300), (gone, 120, 20)):
        epochs = range(max(epochs_of(both.history(partition))) + 2)
        await both.agree(partition, questions_about(epochs, last, looks, chance), found)
    assert found.proved == Counter()  # a broker alone gives no occasion for any rule
    assert both.history(rivals) == history.events
    asked = questions_about(range(EPOCHS + 1), history.last + 250, 700, chance)
    await both.agree(rivals, asked, found)
    assert found.questions >= 2_000
    assert ConformanceRule.COVER_LOOKUP in rules_met(found)
    assert both.kafka.tiering_errors() == []


@pytest.mark.long
async def test_answers_when_histories_are_long_then_equal_or_by_a_named_rule(
    both: BothFollow, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tens of thousands of questions agree, also after a restart from snapshots."""
    chance = random.Random(2)
    partitions = [new_partition(f"rivals-{seed}") for seed in range(SEEDS)]
    await both.follow(*partitions)
    histories = [RivalHistory(one, chance, 240) for one in partitions]
    async with asking(both, partitions[0]):
        await asyncio.gather(*(both.write(history.events) for history in histories))
        await both.catch_up()
    found = Comparison()
    for _ in range(2):
        for partition, history in zip(partitions, histories, strict=True):
            assert both.history(partition) == history.events
            asked = questions_about(range(EPOCHS + 1), history.last + 250, LOOKS, chance)
            await both.agree(partition, asked, found)
        both.kafka.sidecar.stop()
        both.kafka.sidecar.start()
        await both.follow(*partitions)
    assert found.questions > 4 * SEEDS * LOOKS
    assert {
        ConformanceRule.COVER_LOOKUP,
        ConformanceRule.KAFKA_20932,
        ConformanceRule.COVER_NEXT_TXN,
    } <= rules_met(found)
    assert found.latency_ms(0.99) < LOOKUP_MS_MAX
    with capsys.disabled():
        sys.stdout.write(f"\n{told_of(found)}\n")


@contextlib.asynccontextmanager
async def asking(both: BothFollow, partition: TopicIdPartition) -> AsyncIterator[None]:
    task = asyncio.create_task(both.keep_asking(partition))
    yield
    assert both.rounds > 0
    assert not task.done(), task.result()
    task.cancel()


def rules_met(found: Comparison) -> set[str]:
    return {rule for rules in found.proved for rule in rules.split("+")}


def told_of(found: Comparison) -> str:
    rules = ", ".join(f"{rules} {times}" for rules, times in found.proved.most_common())
    return (
        f"{found.questions} questions equal, but for {rules}; {len(found.latencies_us)} look-ups "
        f"through the plugin: p50 {found.latency_ms(0.5):.2f} ms, p99 {found.latency_ms(0.99):.2f}"
        f" ms, slowest {found.latency_ms(1):.2f} ms"
    )
