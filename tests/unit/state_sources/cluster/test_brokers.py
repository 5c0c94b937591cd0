"""Facts of a cluster: the known ones, and gaps for those without an answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlmm.errors import LogNotPermitted, LogUnavailable, UnsupportedVersion
from rlmm.inspection.cluster_facts import ClusterSetting, LogDir, PartitionOffsets
from rlmm.kafka_messages.cluster import ClusterRights, DescribeClusterRequest, MetadataRequest
from rlmm.kafka_messages.configs import BrokerSetting, DescribeBrokerRequest, DescribedBroker
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.log_dirs import DescribedLogDir, DescribedLogDirs, LogDirsRequest
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.state_sources.brokers import Brokers
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_topics import FakeLog, FakeTopic, FakeTopics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.kafka_client.connections.connection import Dialer
    from rlmm.kafka_messages.wire import Request

TIMEOUT_S = 30.0
READ, DESCRIBE = 3, 8
"""Kafka's codes for what a right is about."""


class AskedCluster(FakeTopics):
    def __init__(self, brokers: int = 2, **topics: FakeTopic) -> None:
        super().__init__(brokers, **topics)
        self.code = ErrorCode.NONE
        """The error code of questions about brokers."""
        self.on_cluster: int | None = 1 << DESCRIBE
        self.too_old: set[type[Any]] = set()
        """Questions that no broker knows."""

    async def answer(self, broker: int, request: Request[Any]) -> Any:
        if type(request) in self.too_old:
            raise UnsupportedVersion("the broker is too old")
        if isinstance(request, DescribeClusterRequest):
            return ClusterRights(self.code, self.on_cluster)
        if isinstance(request, DescribeBrokerRequest):
            settings = {"log.dirs": BrokerSetting(f"/{broker}", is_explicit=True)}
            return DescribedBroker(self.code, None, {} if self.code else settings)
        if isinstance(request, LogDirsRequest):
            offline = DescribedLogDir(ErrorCode.KAFKA_STORAGE_ERROR, "/gone", {}, None, None)
            folder = DescribedLogDir(0, f"/{broker}", {("a", 0): 7}, 100, 10)
            return DescribedLogDirs(self.code, () if self.code else (folder, offline))
        answered = await super().answer(broker, request)
        if isinstance(request, MetadataRequest) and request.has_operations:
            bits = 1 << READ | 1 << DESCRIBE
            topics = tuple(topic_with(topic, bits) for topic in answered.topics)
            return type(answered)(answered.brokers, answered.cluster_id, topics)
        return answered


def topic_with(topic: Any, bits: int) -> Any:
    bits_told = bits if topic.code == ErrorCode.NONE else None
    return type(topic)(
        topic.code, topic.name, topic.topic_id, topic.partitions, topic.is_internal, bits_told
    )


@asynccontextmanager
async def asking(kafka: FakeTopics, timeout_s: float = TIMEOUT_S) -> AsyncIterator[Brokers]:
    brokers = Brokers(kafka.log_settings(), cast("Dialer", FakeDialer(kafka)), timeout_s)
    try:
        yield brokers
    finally:
        await brokers.close()


def two_topics() -> AskedCluster:
    return AskedCluster(
        a=FakeTopic([FakeLog(0), FakeLog(1)], {"remote.storage.enable": "true"}),
        hidden=FakeTopic([FakeLog(0)], code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )


async def test_topics_when_asked_then_have_settings_and_where_each_came_from() -> None:
    """The settings of a topic and those from its brokers have different sources."""
    async with asking(two_topics()) as brokers:
        found = await brokers.topics()
        assert list(found) == ["a"]
        assert found["a"].is_tiered
        assert found["a"].settings is not None
        assert found["a"].settings["remote.storage.enable"] == ClusterSetting("true", True)
        assert found["a"].settings["retention.ms"] == ClusterSetting("604800000", False)
        assert {one.leader for one in found["a"].partitions.values()} == {0, 1}
        assert await brokers.topics(["hidden", "nobody"]) == {}
        assert await brokers.brokers() == [0, 1]
        assert await brokers.cluster_id() == "made-up-cluster"


async def test_topics_when_settings_are_not_ours_to_read_then_they_are_unknown() -> None:
    """A topic without its settings is still a topic, and no topic without a tier."""
    kafka = two_topics()
    kafka.topics["a"].code_of_settings = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with asking(kafka) as brokers:
        found = await brokers.topics(["a"])
        assert found["a"].settings is None
        assert found["a"].setting("remote.storage.enable") is None


async def test_topics_when_a_partition_has_no_leader_then_says_so() -> None:
    """The leader of such a partition is None."""
    kafka = AskedCluster(a=FakeTopic([FakeLog(-1)]))
    async with asking(kafka) as brokers:
        place = (await brokers.topics(["a"]))["a"].partitions[0]
        assert (place.leader, place.leader_epoch) == (None, None)


async def test_offsets_when_asked_then_each_end_is_told() -> None:
    """The answer has all six offsets of each partition with a leader."""
    kafka = two_topics()
    partitions = [kafka.partition("a", 0), kafka.partition("a", 1), kafka.partition("hidden")]
    expected = PartitionOffsets(
        earliest=0, earliest_local=40, latest=100, last_stable=90, latest_tiered=39,
        earliest_pending_upload=40,
    )  # fmt: skip
    async with asking(kafka) as brokers:
        assert await brokers.offsets(partitions) == dict.fromkeys(partitions[:2], expected)
        assert await brokers.offsets([]) == {}


@pytest.mark.parametrize(
    ("version", "local", "tiered", "pending"),
    [(11, 40, 39, 40), (10, 40, 39, None), (8, 40, None, None), (7, None, None, None)],
)
async def test_offsets_when_the_brokers_are_older_then_what_they_do_not_know_is_none(
    version: int, local: int | None, tiered: int | None, pending: int | None
) -> None:
    """Offsets that an older broker does not know are None, and the others are there."""
    kafka = two_topics()
    kafka.offsets_version_max = version
    one = kafka.partition("a")
    async with asking(kafka) as brokers:
        told = (await brokers.offsets([one]))[one]
    assert (told.earliest, told.latest) == (0, 100)
    assert (told.earliest_local, told.latest_tiered, told.earliest_pending_upload) == (
        local, tiered, pending,
    )  # fmt: skip


async def test_offsets_when_the_tier_has_nothing_then_minus_one_is_no_offset_elsewhere() -> None:
    """An offset of -1 is valid for the end of the tier and unknown elsewhere."""
    kafka = AskedCluster(a=FakeTopic([FakeLog(0)]))
    kafka.topics["a"].partitions[0].ends.update({-4: 0, -5: -1, -6: -1})
    one = kafka.partition("a")
    async with asking(kafka) as brokers:
        told = (await brokers.offsets([one]))[one]
    assert (told.latest_tiered, told.earliest_pending_upload) == (-1, None)


async def test_offsets_when_there_is_no_leader_or_another_topic_then_left_out() -> None:
    """Partitions without a leader and other topics are missing from the answer, without a wait."""
    kafka = AskedCluster(a=FakeTopic([FakeLog(-1), FakeLog(0)]))
    stranger = TopicIdPartition(Uuid.of(9, 9), "a", 1)
    async with asking(kafka) as brokers:
        asked = [kafka.partition("a", 0), kafka.partition("a", 1), stranger]
        begin_s = asyncio.get_running_loop().time()
        assert (await brokers.offsets(asked)).keys() == {kafka.partition("a", 1)}
        assert asyncio.get_running_loop().time() - begin_s < 1


async def test_brokers_when_asked_then_tell_settings_and_disks() -> None:
    """Each broker returns its own settings and disks, and an offline folder has none."""
    async with asking(two_topics()) as brokers:
        assert await brokers.broker_settings(1) == {"log.dirs": ClusterSetting("/1", True)}
        assert await brokers.log_dirs() == [
            LogDir(number, f"/{number}", 100, 10, {("a", 0): 7}) for number in (0, 1)
        ]


@pytest.mark.parametrize("is_too_old", [False, True], ids=["denied", "too-old"])
async def test_brokers_when_denied_or_too_old_then_nothing_is_known(*, is_too_old: bool) -> None:
    """Brokers whose settings cannot be read are unknown, and this is no error."""
    kafka = two_topics()
    if is_too_old:
        kafka.too_old = {LogDirsRequest, DescribeBrokerRequest, DescribeClusterRequest}
    else:
        kafka.code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    async with asking(kafka) as brokers:
        assert await brokers.broker_settings(1) is None
        assert await brokers.log_dirs() == []
        assert (await brokers.rights(["a"])).on_cluster is None


async def test_brokers_when_one_is_away_then_the_others_tell() -> None:
    """A broker that is down has no known folders, and the others answer."""
    kafka = two_topics()
    async with asking(kafka) as brokers:
        assert len(await brokers.log_dirs()) == 2
        kafka.refuses[1] = LogUnavailable("broker-1: no broker listens there")
        for connection in kafka.connections[1]:
            connection.abort()
        assert [one.broker for one in await brokers.log_dirs()] == [0]
        assert await brokers.broker_settings(1) is None
        assert await brokers.broker_settings(7) is None


async def test_rights_when_asked_then_hidden_and_absent_topics_are_told_apart() -> None:
    """The client distinguishes unknown rights, no rights and some rights."""
    async with asking(two_topics()) as brokers:
        rights = await brokers.rights(["a", "hidden", "nobody"])
    assert rights.on_cluster == frozenset({"DESCRIBE"})
    assert rights.on_topic == {"a": {"READ", "DESCRIBE"}, "hidden": frozenset(), "nobody": None}


async def test_cluster_when_it_refuses_us_or_nobody_listens_then_is_an_error() -> None:
    """A refusal or an unreachable cluster is an error, not an empty answer."""
    kafka = two_topics()
    kafka.refuses[0] = kafka.refuses[1] = LogNotPermitted("the broker refused user 'x'")
    async with asking(kafka) as brokers:
        for question in (brokers.topics, brokers.brokers, brokers.log_dirs):
            with pytest.raises(LogNotPermitted, match="refused user"):
                await question()
        with pytest.raises(LogNotPermitted, match="refused user"):
            await brokers.broker_settings(0)
    kafka = two_topics()
    kafka.down = {0, 1}
    async with asking(kafka, timeout_s=0.2) as brokers:
        with pytest.raises(LogUnavailable, match="no broker listens"):
            await brokers.offsets([kafka.partition("a")])
