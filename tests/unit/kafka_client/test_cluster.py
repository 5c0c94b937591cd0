"""Finding the cluster and finding it again: attempts, addresses, and log lines meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from rlmm.base.backoff import BOOTSTRAP
from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.kafka_messages.cluster import MetadataRequest
from rlmm.kafka_messages.offsets import ListOffsetsRequest
from rlmm.log.protocol import LogBounds
from tests.support.engines import until
from tests.support.kafka.fake_kafka import CLUSTER_ID, TOPIC, FakeKafka

if TYPE_CHECKING:
    from rlmm.log.kafka.kafka_log import KafkaLog
    from rlmm.log.protocol import LogIdentity
    from tests.unit.kafka_client.conftest import Connect, OpenLog, Start


ANSWER_S = 60.0
REFUSED = LogNotPermitted("broker-0:9092: the broker refused user 'me'")


def dial_times(kafka: FakeKafka) -> list[float]:
    return [round(at, 3) for at, _, _ in kafka.dials]


def pauses(kafka: FakeKafka) -> list[float]:
    return [round(later - at, 3) for at, later in pairwise(dial_times(kafka))]


def refuse_all(kafka: FakeKafka) -> None:
    kafka.refuses[0] = REFUSED
    for connection in kafka.connections[0]:
        connection.abort()


async def test_f95_log_when_kafka_is_not_up_then_attempts_become_rare(start: Start) -> None:
    """Failure scenario F95: 250 ms doubling to 10 s, however many callers wait."""
    kafka, log = start()
    kafka.stop(0)
    identities = [log.identity(timeout_s=ANSWER_S) for _ in range(5)]
    reads = [log.read(0, 0, timeout_s=ANSWER_S) for _ in range(5)]
    for outcome in await asyncio.gather(*identities, *reads, return_exceptions=True):
        assert isinstance(outcome, LogUnavailable)
        assert "broker-0:9092: no broker listens there" in str(outcome)
    assert pauses(kafka) == [0.25, 0.5, 1, 2, 4, 8, 10, 10, 10, 10]
    statistics = log.statistics()
    assert (statistics.connect_attempts, statistics.connect_failures) == (11, 11)
    assert not statistics.is_connected


async def test_f95_log_when_kafka_comes_up_then_the_waiting_call_is_answered(start: Start) -> None:
    """Failure scenario F95: the waiting call is answered, and the next outage begins at 250 ms."""
    kafka, log = start()
    kafka.stop(0)
    waiting = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.sleep(5)
    kafka.down.clear()
    assert (await waiting).cluster_id == CLUSTER_ID
    assert log.statistics().is_connected
    kafka.stop(0)
    kafka.dials.clear()
    with pytest.raises(LogUnavailable):
        await log.identity(timeout_s=1.5)
    assert len(kafka.dials) <= 8  # known broker and bootstrap server, at 0, 0.25 and 0.75 s


async def test_f95_call_when_cancelled_in_the_middle_then_ends_at_once(start: Start) -> None:
    """Failure scenario F95: a start that is cancelled while it connects leaves no task behind."""
    kafka, log = start()
    kafka.hangs.add((0, "dial"))
    waiting = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await log.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_f68_log_when_it_is_not_let_in_then_says_so_at_once(connect: Connect) -> None:
    """An authorization error reaches every caller and waiting read at once."""
    kafka, log = await connect()
    waiting = asyncio.create_task(log.read(0, 0, timeout_s=ANSWER_S))
    await asyncio.sleep(1)
    refuse_all(kafka)
    async with asyncio.timeout(2):
        for call in (waiting, log.identity(timeout_s=ANSWER_S)):
            with pytest.raises(LogNotPermitted, match="refused user 'me'"):
                await call
    kafka.refuses.clear()
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 3


async def test_f68_call_when_refused_and_short_of_time_then_is_permanent(start: Start) -> None:
    """Failure scenario F68: a call between two rare attempts also gets the permanent error."""
    kafka, log = start()
    kafka.refuses[0] = REFUSED
    for _ in range(4):
        with pytest.raises(LogNotPermitted):
            await log.identity(timeout_s=ANSWER_S)
    dialed = len(kafka.dials)
    for call in (
        log.identity(timeout_s=0.1),
        log.read(0, 0, timeout_s=0.1),
        log.append(0, b"a", timeout_s=0.1),
    ):
        with pytest.raises(LogNotPermitted, match="refused user 'me'"):
            await call
    bounds = await log.bounds([0], timeout_s=0.1)
    assert isinstance(bounds[0], LogNotPermitted)
    assert len(kafka.dials) == dialed


async def test_log_when_nothing_was_heard_yet_then_names_whom_it_asks(start: Start) -> None:
    """An address that swallows everything is named before its first attempt has ended."""
    kafka, log = start(bootstrap_servers=("broker-0:9092",))
    kafka.hangs = {(0, "dial")}
    said = r"is broker-0:9092 \(bootstrap\.servers\) right and reachable\?"
    with pytest.raises(LogUnavailable, match=said):
        await log.identity(timeout_s=1)


async def test_log_when_a_broker_refuses_then_no_other_is_tried(open_log: OpenLog) -> None:
    """A wrong password is not tried on every broker: users get locked for less."""
    kafka = FakeKafka(brokers=3)
    kafka.refuses = dict.fromkeys(range(3), REFUSED)
    with pytest.raises(LogNotPermitted):
        await open_log(kafka).identity(timeout_s=ANSWER_S)
    assert len(kafka.dials) == 1


@pytest.mark.parametrize(("down", "hangs"), [({0, 1}, set()), ({1}, {(0, "dial")})])
async def test_f41_f42_log_when_bootstrap_servers_are_away_then_asks_others(
    start: Start, down: set[int], hangs: set[tuple[int, str]]
) -> None:
    """Any server that answers is enough; one that hangs costs three seconds, not the call."""
    kafka, log = start(brokers=3)
    kafka.down, kafka.hangs = down, hangs
    assert (await log.identity(timeout_s=4 if hangs else 1)).partition_count == 3


async def test_f42_log_when_a_known_broker_hangs_then_others_are_asked(connect: Connect) -> None:
    """The client drops a hanging connection and asks that broker again later."""
    kafka, log = await connect(brokers=2)
    kafka.hangs = {(0, "Metadata")}
    for _ in range(8):
        await log.identity(timeout_s=4)
    kafka.hangs.clear()  # but what was asked before still hangs, on its connection
    kafka.stop(1)
    kafka.dials.clear()
    await log.identity(timeout_s=4)
    assert (0, "admin") in {(broker, role) for _, broker, role in kafka.dials}


async def test_f41_log_when_all_brokers_moved_then_asks_bootstrap_servers(start: Start) -> None:
    """Failure scenario F41: the log finds moved brokers by the bootstrap servers."""
    kafka, log = start(brokers=2, bootstrap_servers=("broker-1:9092",))
    del kafka.brokers[1]
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 3
    moved = kafka.brokers.pop(0)
    kafka.brokers[7] = moved.__class__(7, "broker-1", 9092)
    kafka.stop(0)
    for partition in kafka.partitions:
        kafka.lead(partition, 1)
    assert (await log.identity(timeout_s=ANSWER_S)).partition_count == 3


async def test_identity_when_asked_then_is_never_from_before_the_question(connect: Connect) -> None:
    """The identity comes from a request made after the call; later calls share it."""
    kafka, log = await connect()
    kafka.hangs = {(0, "Metadata")}
    early = asyncio.create_task(log.identity(timeout_s=ANSWER_S))
    await asyncio.sleep(0.2)
    late = [asyncio.create_task(log.identity(timeout_s=ANSWER_S)) for _ in range(20)]
    await asyncio.sleep(0.2)
    kafka.release(0, "Metadata")
    await asyncio.gather(early, *late)
    assert len(kafka.requests(MetadataRequest)) == 3


async def test_view_when_wanted_by_many_then_one_question_is_asked(start: Start) -> None:
    """Any number of waiting calls cause one request."""
    _, log = start()
    await asyncio.gather(*(log.bounds([0], timeout_s=ANSWER_S) for _ in range(20)))
    assert log.statistics().connect_attempts == 1


async def test_node_when_it_is_away_then_is_dialed_again_after_a_pause(connect: Connect) -> None:
    """An unreachable broker is dialled once, and then not before a pause ends."""
    kafka, log = await connect(partitions=8, brokers=2, bootstrap_servers=("broker-1:9092",))
    kafka.refuses[0] = LogUnavailable("broker-0:9092: no broker listens there")
    kafka.dials.clear()
    led = [partition for partition, held in kafka.partitions.items() if held.leader == 0]
    reads = [log.read(partition, 0, timeout_s=10) for partition in led]
    appends = [log.append(partition, b"a", timeout_s=10) for partition in led]
    await asyncio.gather(*reads, *appends, return_exceptions=True)
    times = [at for at, broker, _ in kafka.dials if broker == 0]
    assert 5 < len(times) < 20
    assert all(later - at > 0.09 for at, later in pairwise(times))


async def test_node_when_a_dial_hangs_then_nobody_dials_beside_it(connect: Connect) -> None:
    """A broker that accepts and stays silent gets one connection attempt at a time."""
    kafka, log = await connect(partitions=8, brokers=2, bootstrap_servers=("broker-1:9092",))
    kafka.dials.clear()
    kafka.hangs = {(0, "dial")}
    appends = [log.append(partition, b"a", timeout_s=2) for partition in range(8)]
    await asyncio.gather(*appends, return_exceptions=True)
    assert [broker for _, broker, _ in kafka.dials].count(0) == 1


async def test_f68_read_when_leaderless_and_refused_then_is_permanent(start: Start) -> None:
    """Failure scenario F68: each read of a leaderless partition gets the permanent cause."""
    kafka, log = start()
    kafka.lead(0, -1)
    waiting = asyncio.create_task(log.read(0, 0, timeout_s=ANSWER_S))
    await asyncio.sleep(1)
    refuse_all(kafka)
    calls = [log.identity(timeout_s=ANSWER_S) for _ in range(4)]
    calls_too = [log.read(0, 0, timeout_s=0.2) for _ in range(3)]
    for call in (waiting, *calls, *calls_too):
        with pytest.raises(LogNotPermitted, match="refused user 'me'"):
            await call


async def test_log_when_kafka_goes_away_then_sees_it_and_its_return(connect: Connect) -> None:
    """Callers of log ends or reads notice when Kafka goes away and returns."""
    kafka, log = await connect()
    assert log.statistics().is_connected
    kafka.stop(0)
    for _ in range(10):
        (bounds,) = (await log.bounds([0], timeout_s=1.0)).values()
        assert isinstance(bounds, LogUnavailable)
        await asyncio.sleep(1)
    assert not log.statistics().is_connected
    kafka.down.clear()
    for _ in range(15):
        await log.bounds([0], timeout_s=1.0)
        await asyncio.sleep(1)
    assert log.statistics().is_connected


LONG_S = 600.0
ATTEMPTS_OF_10_S = 6
"""At 0, 0.25, 0.75, 1.75, 3.75 and 7.75 s; the next one would be at 15.75 s."""
DIALS_OF_A_START = ATTEMPTS_OF_10_S + 1


async def in_a_long_pause(log: KafkaLog) -> asyncio.Task[LogIdentity]:
    asked = asyncio.create_task(log.identity(timeout_s=LONG_S))
    await asyncio.sleep(10)
    return asked


async def test_f95_attempt_when_there_is_a_sign_of_life_then_is_made_at_once(start: Start) -> None:
    """Failure scenario F95: the log tries again at once when a broker gives a sign of life."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.down.clear()
    log.wake()
    assert (await asked).cluster_id == CLUSTER_ID
    assert dial_times(kafka)[5:] == [7.75, 10.0]
    log.wake()  # nothing waits any more
    await asyncio.sleep(LONG_S)
    assert len(kafka.dials) == DIALS_OF_A_START


async def test_f95_sign_of_life_when_in_an_attempt_then_the_next_is_soon(start: Start) -> None:
    """The next attempt is soon, because a broker sends hello before it is reachable."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.down.clear()
    kafka.hangs = {(0, "dial")}
    await asyncio.sleep(6)
    log.wake()
    kafka.stop(0)
    kafka.hangs.clear()
    kafka.bell.ring()
    await until(lambda: log.statistics().connect_failures > ATTEMPTS_OF_10_S)
    kafka.down.clear()
    failed_s = asyncio.get_running_loop().time()
    await asked
    assert asyncio.get_running_loop().time() - failed_s <= BOOTSTRAP.first_s


async def test_f95_signs_of_life_when_many_then_attempts_keep_the_pause(start: Start) -> None:
    """Failure scenario F95: a thousand hellos in five seconds are four attempts in each."""
    kafka, log = start()
    kafka.stop(0)
    asked = await in_a_long_pause(log)
    kafka.dials.clear()
    for _ in range(1_000):
        log.wake()
        await asyncio.sleep(0.005)
    assert len(kafka.dials) > 10
    assert min(pauses(kafka)) >= BOOTSTRAP.first_s
    asked.cancel()


async def test_f68_sign_of_life_when_refused_or_closed_then_changes_nothing(start: Start) -> None:
    """F68: users get locked for passwords that are tried too often; a closed log tries none."""
    kafka, log = start()
    kafka.refuses[0] = REFUSED
    for _ in range(6):
        with pytest.raises(LogNotPermitted):
            await log.identity(timeout_s=LONG_S)
        log.wake()
    assert pauses(kafka) == [0.25, 0.5, 1, 2, 4]
    await log.close()
    dials = len(kafka.dials)
    log.wake()
    await asyncio.sleep(LONG_S)
    assert len(kafka.dials) == dials


async def test_view_when_a_broker_names_a_former_leader_then_keeps_the_later_one(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was not told of a partition's new leader moves no client back to the former."""
    kafka, log = await connect(partitions=1, brokers=2)
    old = kafka._metadata(0, MetadataRequest([TOPIC]))
    kafka.lead(0, 1)
    kafka.partitions[0].store(b"x")
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}
    kafka.asked.clear()
    monkeypatch.setattr(kafka, "_metadata", lambda _broker, _request: old)
    await log.identity(timeout_s=ANSWER_S)
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 1)}
    assert kafka.requests(ListOffsetsRequest, 0) == []


async def test_view_when_the_topic_is_another_then_its_epochs_begin_anew(start: Start) -> None:
    """The leader epochs of a topic say nothing of a later topic of the same name."""
    kafka, log = start(partitions=1, brokers=2)
    kafka.lead(0, 1)
    await log.identity(timeout_s=ANSWER_S)
    kafka.recreate()
    await log.identity(timeout_s=ANSWER_S)
    assert await log.bounds([0], timeout_s=ANSWER_S) == {0: LogBounds(0, 0)}
