"""A cluster asked about users' topics: which brokers, how often, and missing answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from rlmm.errors import LogNotPermitted, LogUnavailable, UnsupportedVersion
from rlmm.kafka_client.admin.user_topics import UserTopics
from rlmm.kafka_client.offsets.log_ends import LastStableOffsets
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.configs import AlterTopicRequest, DescribeTopicsRequest, TopicSetting
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.offsets import (
    EARLIEST,
    LATEST,
    LATEST_TIERED,
    ListedOffset,
    ListOffsetsRequest,
)
from rlmm.log.new_ids import random_uuid
from tests.support.kafka.fake_connections import FakeDialer
from tests.support.kafka.fake_topics import FakeLog, FakeTopic, FakeTopics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from rlmm.errors import LogError
    from rlmm.kafka_client.connections.connection import Dialer
    from rlmm.kafka_client.settings import KafkaSettings
    from rlmm.kafka_messages.wire import Request
    from rlmm.metadata.ids import TopicIdPartition


TIMEOUT_S = 30.0


@asynccontextmanager
async def asking(kafka: FakeTopics) -> AsyncIterator[UserTopics]:
    dialer = cast("Dialer", FakeDialer(kafka))
    topics = UserTopics(kafka.log_settings(), dialer, TIMEOUT_S)
    try:
        yield topics
    finally:
        await topics.close()


def ends(by_topic: Mapping[str, Sequence[int]]) -> ListOffsetsRequest:
    return ListOffsetsRequest(by_topic, LATEST)


def end_of(one: TopicIdPartition) -> int:
    return 7 if one.topic == "b" else 100


def three_brokers() -> FakeTopics:
    return FakeTopics(
        brokers=3,
        a=FakeTopic([FakeLog(0), FakeLog(1), FakeLog(2)]),
        b=FakeTopic([FakeLog(1, {LATEST: 7})]),
    )


def all_of(kafka: FakeTopics) -> list[TopicIdPartition]:
    return [
        kafka.partition(name, number)
        for name, topic in kafka.topics.items()
        for number in range(len(topic.partitions))
    ]


async def test_leaders_when_asked_then_each_once_for_all_that_it_leads() -> None:
    """Each leader gets one request for all topics, and leaders are looked up before and after."""
    kafka = three_brokers()
    async with asking(kafka) as topics:
        told = await topics.of_leaders(all_of(kafka), ends)
    assert {one: end.offset for one, (end,) in told.items()} == {
        one: end_of(one) for one in all_of(kafka)
    }
    asked = [
        (broker, dict(request.partitions))
        for broker, request in kafka.asked
        if isinstance(request, ListOffsetsRequest)
    ]
    assert sorted(asked) == [(0, {"a": [0]}), (1, {"a": [1], "b": [0]}), (2, {"a": [2]})]


async def test_leaders_when_asked_several_things_then_in_order_and_all_or_nothing() -> None:
    """Each leader answers all questions in order, and all again when one failed."""
    kafka = three_brokers()
    codes = [ErrorCode.NONE, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.NONE, ErrorCode.NONE]

    def fail_once(_: int, request: Request[Any]) -> None:
        if isinstance(request, ListOffsetsRequest):
            kafka.codes["ListOffsets", 0] = codes.pop(0)

    kafka.on_request = fail_once
    wanted = [kafka.partition("a")]
    async with asking(kafka) as topics:
        told = await topics.of_leaders(
            wanted, lambda partitions: ListOffsetsRequest(partitions, EARLIEST), ends
        )
    assert told == {wanted[0]: (ListedOffset(ErrorCode.NONE, 0), ListedOffset(ErrorCode.NONE, 100))}
    assert [one.offset for one in kafka.requests(ListOffsetsRequest)] == [EARLIEST, LATEST] * 2


async def test_leaders_when_one_changes_then_the_new_one_is_asked() -> None:
    """When a broker is no longer the leader, only its partitions are requested again."""
    kafka = three_brokers()
    held = kafka.topics["a"].partitions

    def elect(broker: int, request: Request[Any]) -> None:
        if isinstance(request, ListOffsetsRequest) and broker == 2:
            held[2].leader = 0

    kafka.on_request = elect
    async with asking(kafka) as topics:
        told = await topics.of_leaders(all_of(kafka), ends)
    assert len(told) == 4
    again = kafka.requests(ListOffsetsRequest)[-1]
    assert again.partitions == {"a": [2]}


def lose_leader(kafka: FakeTopics) -> None:
    kafka.topics["b"].partitions[0].leader = -1


LEFT_OUT: dict[str, tuple[Callable[[FakeTopics], object], str, int]] = {
    "its leader is away": (lambda kafka: kafka.down.add(2), "a", 2),
    "its leader hangs": (lambda kafka: kafka.hangs.add((2, "ListOffsets")), "a", 2),
    "it has no leader": (lose_leader, "b", 0),
    "the answer has a code": (
        lambda kafka: kafka.codes.update({("ListOffsets", 2): ErrorCode.OFFSET_NOT_AVAILABLE}),
        "a",
        2,
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
async def test_leaders_when_one_has_no_answer_then_its_partition_is_left_out(case: str) -> None:
    """Its partition is missing from the answer, which only a hanging leader delays to the end."""
    happens, topic, number = LEFT_OUT[case]
    kafka = three_brokers()
    happens(kafka)
    async with asking(kafka) as topics:
        begin = asyncio.get_running_loop().time()
        told = await topics.of_leaders(all_of(kafka), ends)
        took_s = asyncio.get_running_loop().time() - begin
    assert set(told) == {*all_of(kafka)} - {kafka.partition(topic, number)}
    assert {one: end.offset for one, (end,) in told.items()} == {one: end_of(one) for one in told}
    assert took_s < TIMEOUT_S + 0.5
    assert (took_s > TIMEOUT_S - 0.5) == ("hangs" in case)


@pytest.mark.parametrize("moment", ["gone", "recreated before", "recreated while asked"])
async def test_topic_when_gone_or_recreated_then_is_left_out(moment: str) -> None:
    """Offsets are requested by name: those of a topic that was made anew are not the old one's."""
    kafka = three_brokers()
    wanted = all_of(kafka)

    def recreate(_: int, request: Request[Any]) -> None:
        if isinstance(request, ListOffsetsRequest):
            kafka.topics["b"].topic_id = random_uuid()

    if moment == "gone":
        del kafka.topics["b"]
    elif moment == "recreated before":
        kafka.topics["b"].topic_id = random_uuid()
    else:
        kafka.on_request = recreate
    async with asking(kafka) as topics:
        assert {one.topic for one in await topics.of_leaders(wanted, ends)} == {"a"}


@pytest.mark.parametrize("is_of_leader", [True, False], ids=["of the leader", "of the cluster"])
async def test_leaders_when_a_right_is_missing_then_raises(is_of_leader: bool) -> None:
    """Half of an answer would look like a whole one; waiting brings no rights."""
    kafka = three_brokers()
    if is_of_leader:
        kafka.codes["ListOffsets", 0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    else:
        kafka.topics["a"].code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with asking(kafka) as topics:
        with pytest.raises(LogNotPermitted, match="DESCRIBE the topic"):
            await topics.of_leaders(all_of(kafka), ends)


OLD = {"by its versions": (8, ErrorCode.NONE), "by its answer": (9, ErrorCode.UNSUPPORTED_VERSION)}


@pytest.mark.parametrize(("version", "code"), OLD.values(), ids=OLD)
async def test_leaders_when_one_is_too_old_then_says_so(version: int, code: int) -> None:
    """A question that a broker does not know is not asked again and again."""
    kafka = three_brokers()
    kafka.offsets_version_max = version
    kafka.codes["ListOffsets", 0] = code
    async with asking(kafka) as topics:
        with pytest.raises(UnsupportedVersion):
            await topics.of_leaders(
                all_of(kafka), lambda wanted: ListOffsetsRequest(wanted, LATEST_TIERED)
            )


async def test_brokers_when_one_is_too_old_then_it_is_named() -> None:
    """The check asks every broker, as any may lead later, and names one too old."""
    kafka = three_brokers()
    request = ListOffsetsRequest({}, LATEST_TIERED)
    async with asking(kafka) as topics:
        assert await topics.why_too_old(request) == ""
        asked = {broker for broker, one in kafka.asked if isinstance(one, ListOffsetsRequest)}
        assert asked == {0, 1, 2}
        kafka.offsets_version_max = 8
        assert (await topics.why_too_old(request)).startswith("broker 0: ")
        assert await topics.why_too_old(ListOffsetsRequest({}, EARLIEST)) == ""


async def test_cluster_when_nobody_answers_then_says_so_in_time() -> None:
    """The error names the request, the time limit and the last fault."""
    kafka = three_brokers()
    kafka.down.update(kafka.brokers)
    async with asking(kafka) as topics:
        begin = asyncio.get_running_loop().time()
        with pytest.raises(LogUnavailable, match=r"Metadata .* in 30 s: .*no broker listens there"):
            await topics.of_leaders(all_of(kafka), ends)
        assert asyncio.get_running_loop().time() - begin == TIMEOUT_S


async def test_cluster_when_one_broker_hangs_then_another_is_asked() -> None:
    """The client asks another broker when one hangs."""
    kafka = three_brokers()
    async with asking(kafka) as topics:
        await topics.metadata([])
        first = kafka.requests(MetadataRequest)
        assert first
        for broker in (0, 1):
            kafka.hangs.add((broker, "DescribeConfigs"))
        found = await topics.settings(["a"], ["retention.ms"])
    assert found == {"a": {"retention.ms": TopicSetting("604800000", is_default=True)}}


async def test_settings_when_topics_are_many_then_are_asked_in_parts() -> None:
    """An answer stays small; topics that are gone are left out, unreadable ones are an error."""
    kafka = FakeTopics()
    kafka.topics = {f"t{number}": FakeTopic([]) for number in range(1001)}
    async with asking(kafka) as topics:
        found = await topics.settings([*kafka.topics, "gone"], ["retention.ms"])
        assert set(found) == set(kafka.topics)
        sizes = [len(one.topics) for one in kafka.requests(DescribeTopicsRequest)]
        assert sizes == [500, 500, 2]
        kafka.topics["t1"].code_of_settings = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(LogNotPermitted, match=r"settings of topic t1.*DESCRIBE_CONFIGS"):
            await topics.settings(["t1"], None)


async def test_change_when_its_answer_is_lost_then_is_not_sent_again() -> None:
    """A change whose answer is lost is not resent: its outcome is unknown."""
    kafka = FakeTopics(a=FakeTopic([]))
    kafka.lost_answers.add(-1)
    async with asking(kafka) as topics:
        with pytest.raises(LogUnavailable, match="cut the connection"):
            await topics.alter(AlterTopicRequest("a", {"retention.ms": "-1"}))
    assert len(kafka.requests(AlterTopicRequest)) == 1
    assert kafka.topics["a"].settings == {"retention.ms": "-1"}


async def test_change_when_brokers_are_away_at_first_then_is_sent_once_one_is_there() -> None:
    """The client tries brokers until its deadline, because an unsent change is not lost."""
    kafka = three_brokers()
    async with asking(kafka) as topics:
        await topics.metadata([])
        for broker in (0, 1, 2):
            kafka.stop(broker)
        changing = asyncio.create_task(topics.alter(AlterTopicRequest("a", {"x": "y"})))
        await asyncio.sleep(5)
        assert not kafka.requests(AlterTopicRequest)
        kafka.down.clear()
        assert (await changing).code == ErrorCode.NONE
    assert len(kafka.requests(AlterTopicRequest)) == 1


@asynccontextmanager
async def serving(kafka: FakeTopics) -> AsyncIterator[LastStableOffsets]:
    async def prepare(_: KafkaSettings) -> Dialer:
        return cast("Dialer", FakeDialer(kafka))

    offsets = LastStableOffsets(kafka.log_settings(), 10.0, prepare=prepare)
    running = asyncio.create_task(offsets.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    yield offsets
    running.cancel()
    await asyncio.wait([running])
    with pytest.raises(LogUnavailable, match="before the service runs"):
        await offsets.last_stable_offset(kafka.partition("orders"))


async def test_offset_when_the_leader_tells_it_then_is_below_what_is_only_replicated() -> None:
    """The request is read committed, so an open transaction holds the offset back."""
    kafka = FakeTopics(orders=FakeTopic([FakeLog(last_stable_offset=90)]))
    async with serving(kafka) as offsets:
        assert await offsets.last_stable_offset(kafka.partition("orders")) == 90


NO_OFFSET: dict[str, tuple[dict[str, Any], type[LogError], str]] = {
    "another topic": ({"topic_id": random_uuid()}, LogUnavailable, "no leader answers"),
    "a new leader": (
        {"partitions": [FakeLog(last_stable_offset=-1)]}, LogUnavailable, "no leader answers",
    ),
    "no right": (
        {"code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}, LogNotPermitted, "DESCRIBE the topic",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "message"), NO_OFFSET.values(), ids=NO_OFFSET)
async def test_offset_when_the_leader_does_not_tell_it_then_raises(
    changes: dict[str, Any], error: type[LogError], message: str
) -> None:
    """An offset of another topic or of a new leader is unknown, and a missing right is named."""
    kafka = FakeTopics(orders=FakeTopic([FakeLog(last_stable_offset=90)]))
    partition = kafka.partition("orders")
    vars(kafka.topics["orders"]).update(changes)
    async with serving(kafka) as offsets:
        with pytest.raises(error, match=message):
            await offsets.last_stable_offset(partition)
