"""
A Kafka cluster in this process, as far as the `kafka` log asks one: brokers, leaders, one topic.

It takes the dialer's requests as objects and keeps them. Every broker answers a connection in
order, waits for new records as requested, and can fail in each way that a test is about.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.base.doorbell import Doorbell
from rlmm.errors import LogError, LogUnavailable
from rlmm.kafka_client.settings import KafkaSettings, TopicSettings
from rlmm.kafka_messages.cluster import (
    BrokerAddress,
    ClusterMetadata,
    MetadataRequest,
    PartitionLeader,
    TopicMetadata,
)
from rlmm.kafka_messages.configs import (
    CreateTopicsRequest,
    DescribedTopic,
    DescribeTopicsRequest,
    TopicRequestOutcome,
    TopicSetting,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import (
    NO_EPOCH,
    FetchAnswer,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
)
from rlmm.kafka_messages.offsets import EARLIEST, ListedOffset, ListOffsetsRequest
from rlmm.kafka_messages.produce import (
    InitProducerIdRequest,
    ProduceRequest,
    ProduceResult,
    ProducerId,
)
from rlmm.log.new_ids import random_uuid
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_messages.wire import Request
    from tests.support.kafka.fake_connections import FakeConnection

TOPIC = "metadata"
CLUSTER_ID = "made-up-cluster"


@dataclass
class FakePartition:
    """One partition: its leader, its batches, and the producers it knows."""

    leader: int
    bell: Doorbell
    epoch: int = 0
    log_start: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of each producer, the number of its last record and the base offset of its last batch."""
    next_offset: int = 0

    def store(self, *values: bytes) -> int:
        """Let another writer store *values* as one batch; return the offset of the first."""
        base = self.next_offset
        data = build_batch(records_of(values, base), base, leader_epoch=self.epoch)
        self.batches.append((base, base + len(values) - 1, data))
        self.next_offset += len(values)
        self.bell.ring()
        return base

    def fetch(self, position: int, bytes_max: int, *, at_least_one: bool) -> bytes:
        """Return batches from *position* on, cut off at *bytes_max* as brokers do."""
        data = b"".join(batch for _, last, batch in self.batches if last >= position)
        if at_least_one and data:
            first = next(batch for _, last, batch in self.batches if last >= position)
            bytes_max = max(bytes_max, len(first))
        return data[:bytes_max]

    def append(self, batch: Batch) -> tuple[int, int]:
        values = list(batch.values())
        first, count = batch.base_sequence, len(values)
        known = self.producers.get(batch.producer_id)
        if known is not None:
            last, base = known
            if first + count - 1 == last:
                return ErrorCode.NONE, base
            if first != last + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        base = self.store(*(value or b"" for _, value in values))
        self.producers[batch.producer_id] = first + count - 1, base
        return ErrorCode.NONE, base


class FakeKafka:
    def __init__(self, partitions: int = 3, brokers: int = 1) -> None:
        self.topic_id = random_uuid()
        self.cluster_id = CLUSTER_ID
        self.exists = True
        self.brokers = {
            number: BrokerAddress(number, f"broker-{number}", 9092) for number in range(brokers)
        }
        self.bell = Doorbell()
        """Rings at every change."""
        self.partitions = self._made(partitions)
        self.down: set[int] = set()
        """Brokers that refuse connections, and whose connections are cut."""
        self.unregistered: set[int] = set()
        """Brokers that answer but are not registered yet."""
        self.refuses: dict[int, LogError] = {}
        """Brokers that refuse every client, with their error."""
        self.hangs: set[tuple[int, str]] = set()
        """Broker and request that is never answered."""
        self.delays: dict[str, float] = {}
        """How many seconds a request takes, or a "dial", at every broker."""
        self.codes: dict[tuple[str, int], int] = {}
        """Request and partition that is answered with a code."""
        self.missing: set[tuple[str, int]] = set()
        """Request and partition that is left out of the answer."""
        self.topic_code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.lost_answers: set[int] = set()
        """Partitions whose next append is stored, but the connection is cut before the answer."""
        self.dials: list[tuple[float, int, str]] = []
        self.asked: list[tuple[int, Request[Any]]] = []
        """Every request, and by whom it was answered."""
        self.knows_epochs = True
        self.is_diverging = False
        """Whether the leaders' histories differ from those of all readers that name an epoch."""
        """Whether leaders can place the epoch of the batch before a position."""
        self.settings: dict[str, str] = {}
        self.code_of_settings = int(ErrorCode.NONE)
        self.created: list[CreateTopicsRequest] = []
        self.creation = TopicRequestOutcome(ErrorCode.NONE, None)
        self.connections: defaultdict[int, list[FakeConnection]] = defaultdict(list)
        self._producer_ids = 1000

    def _made(self, partitions: int) -> dict[int, FakePartition]:
        return {
            number: FakePartition(number % len(self.brokers), self.bell)
            for number in range(partitions)
        }

    def log_settings(self, **changed: Any) -> KafkaSettings:
        settings: dict[str, Any] = {
            "bootstrap_servers": tuple(
                f"{broker.host}:{broker.port}" for broker in self.brokers.values()
            ),
            "topic": TopicSettings(name=TOPIC),
            "is_observer": False,
        }
        return KafkaSettings(**{**settings, **changed})

    def requests(self, kind: type[Request[Any]], broker: int | None = None) -> list[Any]:
        return [
            request
            for asked, request in self.asked
            if isinstance(request, kind) and broker in {None, asked}
        ]

    def lead(self, partition: int, broker: int) -> None:
        """Move the leadership of a partition to another broker; -1 is none."""
        held = self.partitions[partition]
        held.leader = broker
        held.epoch += 1
        self.bell.ring()

    def release(self, broker: int, request: str) -> None:
        """Answer the requests that came to a broker while it hung."""
        self.hangs.discard((broker, request))
        self.bell.ring()

    def stop(self, broker: int) -> None:
        self.down.add(broker)
        for connection in self.connections[broker]:
            connection.abort()

    def recreate(self, partitions: int | None = None) -> None:
        """Delete the topic and create another of its name."""
        self.topic_id = random_uuid()
        self.partitions = self._made(len(self.partitions) if partitions is None else partitions)
        self.bell.ring()

    def add_partitions(self, count: int) -> None:
        """Alter the topic to *count* partitions; its id and its records stay."""
        self.partitions = self._made(count) | self.partitions
        self.bell.ring()

    # What brokers answer.

    async def answer(self, broker: int, request: Request[Any]) -> Any:
        self.asked.append((broker, request))
        await self.await_release(broker, request.api.name)
        answers: dict[type[Any], Callable[[int, Any], Any]] = {
            MetadataRequest: self._metadata,
            ListOffsetsRequest: self._offsets,
            InitProducerIdRequest: self._producer_id,
            ProduceRequest: self._produce,
            CreateTopicsRequest: self._create,
            DescribeTopicsRequest: self._describe,
        }
        if isinstance(request, FetchRequest):
            return await self._fetch(broker, request)
        return answers[type(request)](broker, request)

    async def await_release(self, broker: int, request: str) -> None:
        if request in self.delays:
            await asyncio.sleep(self.delays[request])
        while (broker, request) in self.hangs:
            await self.bell.wait()

    def _metadata(self, broker: int, request: MetadataRequest) -> ClusterMetadata:
        del broker, request
        untold = self.down | self.unregistered
        alive = tuple(one for number, one in self.brokers.items() if number not in untold)
        if not self.exists:
            topic = TopicMetadata(self.topic_code, TOPIC, random_uuid(), ())
            return ClusterMetadata(alive, self.cluster_id, (topic,))
        leaders = tuple(
            PartitionLeader(
                ErrorCode.NONE if held.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                number,
                held.leader,
                held.epoch,
                tuple(self.brokers),
            )
            for number, held in self.partitions.items()
        )
        topic = TopicMetadata(ErrorCode.NONE, TOPIC, self.topic_id, leaders)
        return ClusterMetadata(alive, self.cluster_id, (topic,))

    def _offsets(
        self, broker: int, request: ListOffsetsRequest
    ) -> dict[str, dict[int, ListedOffset]]:
        told = {}
        for partition in request.partitions[TOPIC]:
            if ("ListOffsets", partition) in self.missing:
                continue
            code, held = self._judge("ListOffsets", broker, partition)
            offset = held.log_start if request.offset == EARLIEST else held.next_offset
            told[partition] = ListedOffset(code, -1 if code else offset)
        return {TOPIC: told}

    def _producer_id(self, broker: int, request: InitProducerIdRequest) -> ProducerId:
        del request
        code = self.codes.get(("InitProducerId", broker), ErrorCode.NONE)
        self._producer_ids += 1
        return ProducerId(code, self._producer_ids, 0)

    def _produce(self, broker: int, request: ProduceRequest) -> ProduceResult | None:
        partition = request.partition
        code, held = self._judge("Produce", broker, partition)
        if request.topic_id != self.topic_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        if code != ErrorCode.NONE:
            return ProduceResult(code, -1, None, is_by_topic_id=True)
        (batch,) = walk(request.batch)
        assert isinstance(batch, Batch), batch
        code, base = held.append(batch)
        if partition in self.lost_answers:
            self.lost_answers.remove(partition)
            raise LogUnavailable(f"broker {broker} cut the connection")
        return ProduceResult(code, base, None, is_by_topic_id=True)

    def _create(self, broker: int, request: CreateTopicsRequest) -> TopicRequestOutcome:
        del broker
        self.created.append(request)
        if self.creation.code == ErrorCode.NONE:
            self.exists = True
        return self.creation

    def _describe(self, broker: int, request: DescribeTopicsRequest) -> list[DescribedTopic]:
        del broker
        settings = {
            name: TopicSetting(value, is_default=False)
            for name, value in self.settings.items()
            if name in (request.names or ())
        }
        return [
            DescribedTopic(self.code_of_settings, None, topic, settings) for topic in request.topics
        ]

    def _judge(self, request: str, broker: int, partition: int) -> tuple[int, FakePartition]:
        held = self.partitions[partition]
        if (request, partition) in self.codes:
            return self.codes[request, partition], held
        return ErrorCode.NONE if held.leader == broker else ErrorCode.NOT_LEADER_OR_FOLLOWER, held

    async def _fetch(self, broker: int, request: FetchRequest) -> FetchAnswer:
        found = self._look(broker, request)
        if request.wait_ms > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.wait_ms / 1000):
                    while not any(fetched.data or fetched.code for fetched in found):
                        await self.bell.wait()
                        found = self._look(broker, request)
        return FetchAnswer(ErrorCode.NONE, tuple(found))

    def _look(self, broker: int, request: FetchRequest) -> list[FetchedPartition]:
        found = []
        room = request.bytes_max
        for wanted in request.wanted:
            if ("Fetch", wanted.partition) in self.missing:
                continue
            fetched = self._fetched(broker, request, wanted, room)
            room -= len(fetched.data)
            found.append(fetched)
        return found

    def _fetched(
        self, broker: int, request: FetchRequest, wanted: FetchPartition, room: int
    ) -> FetchedPartition:
        code, held = self._judge("Fetch", broker, wanted.partition)
        if request.topic_id != self.topic_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif code == ErrorCode.NONE and (
            not held.log_start <= wanted.position <= held.next_offset
            or (wanted.last_epoch != NO_EPOCH and not self.knows_epochs)
        ):
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if code != ErrorCode.NONE:
            return FetchedPartition(wanted.partition, code, -1, -1, memoryview(b""))
        if self.is_diverging and wanted.last_epoch != NO_EPOCH:
            ends = held.next_offset, held.log_start
            return FetchedPartition(wanted.partition, 0, *ends, memoryview(b""), is_diverging=True)
        is_first = room == request.bytes_max
        bytes_max = min(wanted.bytes_max, max(room, 0))
        data = held.fetch(wanted.position, bytes_max, at_least_one=is_first)
        return FetchedPartition(
            wanted.partition, ErrorCode.NONE, held.next_offset, held.log_start, memoryview(data)
        )
