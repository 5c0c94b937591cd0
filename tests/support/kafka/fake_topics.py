"""Topics of users in that cluster: leaders, offsets, settings."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlmm.errors import LogUnavailable, UnsupportedVersion
from rlmm.kafka_messages.cluster import (
    ClusterMetadata,
    MetadataRequest,
    PartitionLeader,
    TopicMetadata,
)
from rlmm.kafka_messages.configs import (
    AlterTopicRequest,
    DescribedTopic,
    DescribeTopicsRequest,
    TopicRequestOutcome,
    TopicSetting,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    READ_COMMITTED,
    EpochEnd,
    EpochEndsRequest,
    ListedOffset,
    ListOffsetsRequest,
)
from rlmm.log.new_ids import random_uuid
from rlmm.metadata.ids import TopicIdPartition
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.kafka_messages.wire import Request
    from rlmm.metadata.ids import Uuid

DEFAULTS = {"remote.storage.enable": "false", "retention.ms": "604800000"}


@dataclass
class FakeLog:
    leader: int = 0
    ends: dict[int, int] = field(
        default_factory=lambda: {
            EARLIEST: 0,
            EARLIEST_LOCAL: 40,
            LATEST_TIERED: 39,
            EARLIEST_PENDING_UPLOAD: 40,
            LATEST: 100,
        }
    )
    last_stable_offset: int = 90
    epochs: tuple[tuple[int, int], ...] = ((0, 0),)


@dataclass
class FakeTopic:
    partitions: list[FakeLog]
    settings: dict[str, str] = field(default_factory=dict)
    topic_id: Uuid = field(default_factory=random_uuid)
    is_internal: bool = False
    code: int = ErrorCode.NONE
    """Of its metadata, in place of everything else."""
    code_of_settings: int = ErrorCode.NONE


class FakeTopics(FakeKafka):
    def __init__(self, brokers: int = 1, **topics: FakeTopic) -> None:
        super().__init__(partitions=0, brokers=brokers)
        self.topics = topics
        self.offsets_version_max = 11
        """The newest form of the question for offsets that its brokers know."""
        self.on_request: Callable[[int, Request[Any]], None] = lambda _, __: None
        """Called with each request before the broker answers it."""
        self.change = TopicRequestOutcome(ErrorCode.NONE, None)

    def partition(self, topic: str, number: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.topics[topic].topic_id, topic, number)

    async def answer(self, broker: int, request: Request[Any]) -> Any:
        self.asked.append((broker, request))
        await self.await_release(broker, request.api.name)
        self.on_request(broker, request)
        answers: dict[type[Any], Callable[[int, Any], Any]] = {
            MetadataRequest: self._topics,
            ListOffsetsRequest: self._ends,
            EpochEndsRequest: self._epochs,
            DescribeTopicsRequest: self._settings,
            AlterTopicRequest: self._alter,
        }
        return answers[type(request)](broker, request)

    def _topics(self, broker: int, request: MetadataRequest) -> ClusterMetadata:
        del broker
        names = [*self.topics] if request.topics is None else request.topics
        told = [self._topic(name) for name in names]
        alive = tuple(one for number, one in self.brokers.items() if number not in self.down)
        return ClusterMetadata(alive, self.cluster_id, tuple(told))

    def _topic(self, name: str) -> TopicMetadata:
        topic = self.topics.get(name)
        if topic is None or topic.code not in {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.code
            return TopicMetadata(code, name, random_uuid(), ())
        leaders = tuple(
            PartitionLeader(ErrorCode.NONE, number, held.leader, 0, ())
            for number, held in enumerate(topic.partitions)
        )
        return TopicMetadata(topic.code, name, topic.topic_id, leaders, topic.is_internal)

    def _ends(self, broker: int, request: ListOffsetsRequest) -> dict[str, dict[int, ListedOffset]]:
        if request.api.choose({2: (1, self.offsets_version_max)}) is None:
            raise UnsupportedVersion(f"version {self.offsets_version_max} is too old")
        found: defaultdict[str, dict[int, ListedOffset]] = defaultdict(dict)
        for topic, numbers in request.partitions.items():
            for number in numbers:
                code, held = self._led("ListOffsets", broker, topic, number)
                is_stable = request.isolation == READ_COMMITTED
                offset = held.last_stable_offset if is_stable else held.ends[request.offset]
                found[topic][number] = ListedOffset(code, -1 if code else offset)
        return found

    def _epochs(self, broker: int, request: EpochEndsRequest) -> dict[str, dict[int, EpochEnd]]:
        found: defaultdict[str, dict[int, EpochEnd]] = defaultdict(dict)
        for topic, epochs in request.epochs.items():
            for number, asked in epochs.items():
                code, held = self._led("OffsetForLeaderEpoch", broker, topic, number)
                ends = [*(start for _, start in held.epochs[1:]), held.ends[LATEST]]
                known = [
                    (epoch, end)
                    for (epoch, _), end in zip(held.epochs, ends, strict=True)
                    if epoch <= asked
                ]
                found[topic][number] = EpochEnd(code, *(known[-1] if known else (-1, -1)))
        return found

    def _led(self, request: str, broker: int, topic: str, number: int) -> tuple[int, FakeLog]:
        held = self.topics[topic].partitions[number]
        if (request, number) in self.codes:
            return self.codes[request, number], held
        return ErrorCode.NONE if held.leader == broker else ErrorCode.NOT_LEADER_OR_FOLLOWER, held

    def _settings(self, broker: int, request: DescribeTopicsRequest) -> list[DescribedTopic]:
        del broker
        described = []
        for name in request.topics:
            topic = self.topics.get(name)
            if topic is None or topic.code_of_settings:
                code = (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if topic is None
                    else topic.code_of_settings
                )
                described.append(DescribedTopic(code, None, name, {}))
                continue
            names = {*DEFAULTS, *topic.settings} if request.names is None else request.names
            in_force = {**DEFAULTS, **topic.settings}
            settings = {
                one: TopicSetting(in_force[one], one not in topic.settings)
                for one in names
                if one in in_force
            }
            described.append(DescribedTopic(ErrorCode.NONE, None, name, settings))
        return described

    def _alter(self, broker: int, request: AlterTopicRequest) -> TopicRequestOutcome:
        if self.change.code == ErrorCode.NONE and not request.is_only_checked:
            settings = self.topics[request.topic].settings
            settings.update(request.given)
            for name in request.unset:
                settings.pop(name, None)
        if -1 in self.lost_answers:
            raise LogUnavailable(f"broker {broker} cut the connection")
        return self.change
