"""The log as a whole on a made-up cluster: whom it belongs to, and how it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import (
    AppendUncertain,
    ConfigError,
    InvalidArgument,
    LogError,
    LogNotPermitted,
    LogRecreated,
    LogUnavailable,
    TopicAbsent,
)
from rlmm.kafka_client.settings import TopicSettings
from rlmm.kafka_messages.configs import TopicRequestOutcome as Outcome
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import read_until
from tests.support.kafka.fake_kafka import TOPIC, FakeKafka

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.unit.kafka_client.conftest import Connect, OpenLog, Start

ANSWER_S = 30.0
CREATED = TopicSettings(name=TOPIC, is_created=True, num_partitions=3)


def without_topic() -> FakeKafka:
    kafka = FakeKafka()
    kafka.exists = False
    return kafka


async def test_log_when_opened_then_nothing_connects(open_log: OpenLog) -> None:
    """Opening the log sends no request."""
    kafka = FakeKafka()
    open_log(kafka)
    await asyncio.sleep(60)
    assert kafka.dials == []


CALLS: dict[str, Callable[[KafkaLog], Coroutine[Any, Any, object]]] = {
    "identity": lambda log: log.identity(timeout_s=ANSWER_S),
    "bounds": lambda log: log.bounds([0], timeout_s=ANSWER_S),
    "read": lambda log: log.read(0, 0, timeout_s=1),
    "append": lambda log: log.append(0, b"a", timeout_s=ANSWER_S),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_f96_topic_when_surely_absent_then_the_first_call_creates_it(
    open_log: OpenLog, call: Callable[[KafkaLog], Coroutine[Any, Any, object]]
) -> None:
    """Failure scenario F96: the first call of any kind creates the topic once, as configured."""
    kafka = without_topic()
    await call(open_log(kafka, topic=CREATED))
    (request,) = kafka.created
    assert request.partition_count == 3


async def test_topic_when_the_cluster_is_another_then_is_not_created(open_log: OpenLog) -> None:
    """The log creates no topic in an unexpected cluster, and creates it in the expected one."""
    kafka = without_topic()
    with pytest.raises(ConfigError, match=f"there is cluster {kafka.cluster_id}, not other"):
        await open_log(kafka, topic=CREATED, cluster_id="other").identity(timeout_s=ANSWER_S)
    assert kafka.created == []
    log = open_log(kafka, topic=CREATED, cluster_id=kafka.cluster_id)
    assert (await log.identity(timeout_s=ANSWER_S)).cluster_id == kafka.cluster_id


async def test_topic_when_lost_then_no_empty_one_takes_its_place(open_log: OpenLog) -> None:
    """Brokers would take an empty topic for an empty tier; one that another made is followed."""
    kafka = without_topic()
    known = open_log(kafka, known={kafka.cluster_id: {"old"}}, topic=CREATED)
    kafka.exists = True
    seen = open_log(kafka, topic=CREATED)
    await seen.identity(timeout_s=ANSWER_S)
    kafka.exists = False
    for log in (known, seen):
        with pytest.raises(TopicAbsent, match="was there before and is gone: brokers would take"):
            await log.identity(timeout_s=ANSWER_S)
    assert kafka.created == []
    kafka.recreate()
    kafka.exists = True
    assert (await seen.identity(timeout_s=ANSWER_S)).topic_id == kafka.topic_id


async def test_f6_topic_when_recreated_and_empty_then_is_not_followed(open_log: OpenLog) -> None:
    """A log with snapshots of the lost topic refuses an empty one; any other log follows it."""
    kafka = FakeKafka()
    remembered = {kafka.cluster_id: {"lost"}}
    log = open_log(kafka, known=remembered)
    for lost in ("lost", str(kafka.topic_id)):
        remembered[kafka.cluster_id] = {lost}
        with pytest.raises(TopicAbsent, match=f"and empty, while snapshots of {lost} are here"):
            await log.identity(timeout_s=ANSWER_S)
    other = open_log(kafka, known={"other": {"lost"}})
    assert (await other.identity(timeout_s=ANSWER_S)).topic_id == kafka.topic_id
    kafka.partitions[1].store(b"rebuilt")
    assert (await log.identity(timeout_s=ANSWER_S)).topic_id == kafka.topic_id


async def test_f96_topic_when_another_created_it_then_is_there(open_log: OpenLog) -> None:
    """Failure scenario F96: the log takes "already exists" as success."""
    kafka = without_topic()
    kafka.creation = Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "exists")
    log = open_log(kafka, topic=CREATED)
    waiting = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.sleep(1)
    kafka.exists = True
    assert (await waiting).partition_count == 3


UNSURE = (
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
)
IS_CREATED = {"creation": Outcome(ErrorCode.NONE, None)}
FOR_NOW: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    code.name: ({"topic_code": code}, {"exists": True}, f"the topic is not there: {code.name}")
    for code in UNSURE
} | {
    "no broker": ({"unregistered": {0}}, {"unregistered": set()}, "the cluster names no broker"),
    "controller moves": (
        {"creation": Outcome(ErrorCode.NOT_CONTROLLER, None)},
        IS_CREATED,
        r"creating topic metadata: NOT_CONTROLLER \(41\)",
    ),
    "brokers start": (
        {"creation": Outcome(ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 is registered.")},
        IS_CREATED,
        r"metadata: only 1 is registered.: start that many brokers, or lower .*factor \(3\)",
    ),
}


@pytest.mark.parametrize(("broken", "healed", "message"), FOR_NOW.values(), ids=FOR_NOW)
async def test_f96_topic_when_not_there_for_now_then_is_tried_again(
    open_log: OpenLog, broken: dict[str, Any], healed: dict[str, Any], message: str
) -> None:
    """F96: the log asks again until the topic is there, and creates only what is surely absent."""
    kafka = without_topic()
    vars(kafka).update(broken)
    log = open_log(kafka, topic=CREATED)
    with pytest.raises(LogUnavailable, match=message):
        await log.identity(timeout_s=3)
    waiting = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.sleep(5)
    assert not waiting.done()
    vars(kafka).update(healed)
    identity = await waiting
    assert (identity.topic_id, identity.partition_count) == (kafka.topic_id, 3)
    assert bool(kafka.created) == ("topic_code" not in broken)


async def test_f96_topic_when_many_wait_for_it_then_attempts_are_bounded(open_log: OpenLog) -> None:
    """Failure scenario F96: waiting calls together make one attempt a second."""
    kafka = without_topic()
    kafka.creation = Outcome(ErrorCode.NOT_CONTROLLER, None)
    log = open_log(kafka, topic=CREATED)
    calls = [log.read(at % 3, 0, timeout_s=10) for at in range(20)]
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, LogUnavailable)
        assert "creating topic metadata: NOT_CONTROLLER" in str(outcome)
    assert 8 <= len(kafka.created) <= 15


FINAL: dict[str, tuple[Outcome, type[Exception], str]] = {
    "impossible": (
        Outcome(ErrorCode.POLICY_VIOLATION, "names begin with a letter"),
        ConfigError,
        "topic metadata cannot be created: names begin with a letter",
    ),
    "not permitted": (
        Outcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        LogNotPermitted,
        "lacks the right to CREATE topics",
    ),
}


@pytest.mark.parametrize(("outcome", "error", "said"), FINAL.values(), ids=FINAL)
async def test_topic_when_it_can_never_be_created_then_says_why(
    open_log: OpenLog, outcome: Outcome, error: type[Exception], said: str
) -> None:
    """A permanent error is raised at once."""
    kafka = without_topic()
    kafka.creation = outcome
    with pytest.raises(error, match=said):
        await open_log(kafka, topic=CREATED).identity(timeout_s=ANSWER_S)
    assert len(kafka.created) == 1


async def test_f7_identity_when_the_count_is_another_then_nothing_is_bound(start: Start) -> None:
    """Failure scenario F7: every call is refused on a topic that contradicts the configuration."""
    _, log = start(partitions=16, topic=TopicSettings(name=TOPIC, num_partitions=50))
    for call in CALLS.values():
        with pytest.raises(ConfigError, match="has 16 partitions, the configuration says 50"):
            await call(log)


@pytest.mark.parametrize("partition", [-1, 3, 999])
async def test_f61_partition_when_absent_is_refused(open_log: OpenLog, partition: int) -> None:
    """Failure scenario F61: the first call, which learns the count, also refuses the partition."""
    log = open_log(FakeKafka())
    with pytest.raises(InvalidArgument, match=f"0 to 2, got {partition}"):
        await log.read(partition, 0, timeout_s=ANSWER_S)


@pytest.mark.parametrize("hangs", [False, True], ids=["by its answer", "by identity"])
async def test_f6_read_when_the_topic_is_created_anew_then_ends(start: Start, hangs: bool) -> None:
    """F6: waiting reads end and never read the new topic; `identity` binds to it."""
    kafka, log = start(fetch_max_wait_ms=20_000 if hangs else 500)
    waiting = [asyncio.create_task(log.read(at, 0, timeout_s=ANSWER_S)) for at in range(3)]
    await asyncio.sleep(1)
    if hangs:
        kafka.hangs = {(0, "Fetch")}
    kafka.recreate(partitions=5)
    kafka.partitions[4].store(b"new")
    if hangs:
        await log.identity(timeout_s=ANSWER_S)
    for read in waiting:
        with pytest.raises(LogRecreated):
            await read
    kafka.release(0, "Fetch")
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 5
    assert await read_until(log, 4, 0, 1) == [(0, b"new")]


async def test_f7_topic_when_it_gets_partitions_then_is_another(connect: Connect) -> None:
    """F7: calls end with both counts once a broker tells of more partitions than before."""
    kafka, log = await connect()
    kafka.add_partitions(5)
    reading = asyncio.create_task(log.read(0, 0, timeout_s=600))
    bounds = await log.bounds([0], timeout_s=ANSWER_S)
    assert not isinstance(bounds[0], LogError)
    await asyncio.sleep(61)
    await log.bounds([0], timeout_s=ANSWER_S)
    with pytest.raises(LogRecreated, match="had 3 partitions and has 5 now"):
        await reading
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 5


async def test_f6_cluster_when_it_is_another_then_nothing_is_answered(connect: Connect) -> None:
    """Failure scenario F6: addresses that lead to another cluster by now are noticed."""
    kafka, log = await connect()
    kafka.cluster_id = "another"
    kafka.lead(0, -1)
    with pytest.raises(LogRecreated, match="another cluster: its id was made-up-cluster"):
        await log.read(0, 0, timeout_s=ANSWER_S)


async def test_topic_when_hidden_later_then_reads_that_wait_are_told(connect: Connect) -> None:
    """Waiting reads end with an error when their rights are removed."""
    kafka, log = await connect()
    kafka.exists, kafka.topic_code = False, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    kafka.codes = {("Fetch", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
    with pytest.raises(LogNotPermitted, match="DESCRIBE the topic"):
        await log.read(0, 0, timeout_s=ANSWER_S)


async def test_close_when_calls_are_in_flight_then_each_ends_at_once(connect: Connect) -> None:
    """Reads and questions end closed; an append that was sent is uncertain."""
    kafka, log = await connect(partitions=3, brokers=3)
    kafka.hangs = {(1, "Produce"), (0, "ListOffsets")}
    kafka.lead(2, -1)
    calls = {
        "read": asyncio.create_task(log.read(0, 0, timeout_s=ANSWER_S)),
        "bounds": asyncio.create_task(log.bounds([0], timeout_s=ANSWER_S)),
        "sent": asyncio.create_task(log.append(1, b"a", timeout_s=ANSWER_S)),
        "not sent": asyncio.create_task(log.append(2, b"a", timeout_s=ANSWER_S)),
    }
    await asyncio.sleep(1)
    begin = asyncio.get_running_loop().time()
    await log.close()
    assert asyncio.get_running_loop().time() - begin < 0.1
    ends = {name: call.exception() for name, call in calls.items()}
    assert isinstance(ends.pop("sent"), AppendUncertain)
    assert all(isinstance(end, LogUnavailable) for end in ends.values())
    assert all("closed" in str(end) for end in ends.values())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for connections in kafka.connections.values():
        assert not any(connection.is_open for connection in connections)


async def test_close_when_a_deadline_passes_at_that_moment_then_ends(connect: Connect) -> None:
    """A call whose time is up in the instant of the close does not keep the log from closing."""
    _, log = await connect()

    async def close_later() -> None:
        await asyncio.sleep(1 - 5e-10)  # the same instant to the loop's clock, but first in line
        await log.close()

    closing = asyncio.create_task(close_later())
    await asyncio.sleep(0)
    reads = [asyncio.create_task(log.read(at, 0, timeout_s=1)) for at in range(3)]
    await closing
    for read in reads:
        with pytest.raises(LogUnavailable, match="closed"):
            await read
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("policy", "code", "is_gapless"),
    [
        ("delete", ErrorCode.NONE, True),
        ("compact,delete", ErrorCode.NONE, False),
        ("delete", ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    ],
    ids=["delete", "compact", "not told"],
)
async def test_f63_log_then_is_gapless_where_nothing_compacts_it(
    open_log: OpenLog, policy: str, code: ErrorCode, is_gapless: bool
) -> None:
    """An offset without a batch is damage where the cleanup policy is known and is not compact."""
    kafka = FakeKafka()
    kafka.settings["cleanup.policy"] = policy
    kafka.code_of_settings = code
    log = open_log(kafka)
    await log.identity(timeout_s=ANSWER_S)
    await log.learn_compaction()
    assert log.is_gapless is is_gapless


async def test_dangers_when_unreadable_then_is_an_error_or_a_finding(open_log: OpenLog) -> None:
    """Without a broker `dangers` raises; without DESCRIBE_CONFIGS that itself is a finding."""
    kafka = FakeKafka()
    kafka.code_of_settings = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    found = await open_log(kafka).dangers(timeout_s=ANSWER_S)
    assert [danger.key for danger in found] == ["replication.factor", "settings"]
    kafka.unregistered = {0}
    with pytest.raises(LogUnavailable, match="the cluster names no broker"):
        await open_log(kafka).dangers(timeout_s=ANSWER_S)


async def test_statistics_when_things_happened_then_count_them(start: Start) -> None:
    """One frozen record counts past operations and waiting ones."""
    kafka, log = start()
    kafka.partitions[0].store(b"event")
    await log.read(0, 0, timeout_s=ANSWER_S)
    waiting = asyncio.create_task(log.read(0, 1, timeout_s=ANSWER_S))
    await asyncio.sleep(1)
    found = log.statistics()
    assert found.is_connected
    assert (found.connect_attempts, found.connect_failures, found.fetch_deaths) == (1, 0, 0)
    assert (found.pending_reads, found.pending_appends) == (1, 0)
    assert found.fetch_requests >= 3
    assert found.fetched_bytes == len(kafka.partitions[0].batches[0][2])
    waiting.cancel()
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}
