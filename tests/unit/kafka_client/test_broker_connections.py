"""Lent connections: how many are made, and that a stuck one delays no other caller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest

from rlmm.base.log_context import bound, bound_fields
from rlmm.errors import LogNotPermitted, LogUnavailable
from rlmm.kafka_client.connections.broker_connections import Node, Pool
from rlmm.kafka_client.connections.task_set import TaskSet, report_death
from rlmm.kafka_messages.cluster import BrokerAddress
from tests.support.kafka.fake_connections import FakeConnection, FakeDialer
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rlmm.kafka_client.connections.connection import BrokerConnection, Dialer
    from tests.unit.kafka_client.conftest import OpenLog


DIAL_S = 0.01
ACK_S = 0.002
EVENTS = 64


@pytest.fixture
async def kafka() -> FakeKafka:
    kafka = FakeKafka(partitions=50)
    kafka.delays = {"dial": DIAL_S, "Produce": ACK_S}
    return kafka


@pytest.fixture
async def pool(kafka: FakeKafka) -> AsyncIterator[Pool]:
    tasks, dialer = TaskSet(), FakeDialer(kafka)

    async def dial() -> BrokerConnection:
        return cast("BrokerConnection", await dialer.dial("broker-0", 9092, "producer"))

    pool = Pool("broker 0", dial, tasks, asyncio.get_running_loop().time)
    yield pool
    for connection in pool.close():
        await connection.close()
    await tasks.close()


def dialed(kafka: FakeKafka) -> int:
    count = sum(role == "producer" for _, _, role in kafka.dials)
    kafka.dials.clear()
    return count


@pytest.mark.parametrize(("brokers", "most"), [(1, 6), (3, 12)], ids=["one", "three"])
async def test_append_when_bursts_come_with_pauses_then_few_connections_are_made_and_kept(
    open_log: OpenLog, kafka: FakeKafka, brokers: int, most: int
) -> None:
    """Bursts reuse few connections to each broker and pay for at most one login more."""
    loop = asyncio.get_running_loop()
    spread = FakeKafka(partitions=50, brokers=brokers)
    spread.delays = kafka.delays
    log = open_log(spread)
    await log.identity(timeout_s=30)

    async def burst() -> tuple[int, float]:
        begin_s = loop.time()
        await asyncio.gather(*(log.append(at % 50, b"x", timeout_s=30) for at in range(EVENTS)))
        took_s = loop.time() - begin_s
        await asyncio.sleep(60)
        return dialed(spread), took_s

    made, _ = await burst()
    assert made <= most
    for _ in range(4):
        made, took_s = await burst()
        assert made <= 1
        assert took_s <= 2 * DIAL_S + ACK_S


async def test_borrow_when_one_is_back_then_none_is_made(kafka: FakeKafka, pool: Pool) -> None:
    """A caller that waits for less than a login takes causes no new connection."""
    lent = await pool.borrow()
    assert dialed(kafka) == 1
    waiting = [asyncio.create_task(pool.borrow()) for _ in range(2)]
    await asyncio.sleep(DIAL_S / 2)
    await pool.put_back(lent)
    assert await waiting[0] is lent
    await asyncio.sleep(DIAL_S / 4)
    await pool.put_back(lent)
    assert await waiting[1] is lent
    await asyncio.sleep(1)
    await pool.put_back(lent)
    assert dialed(kafka) == 0


async def test_f42_borrow_when_one_is_stuck_then_is_another(kafka: FakeKafka, pool: Pool) -> None:
    """Failure scenario F42: an append without an answer holds up the others for a moment only."""
    loop = asyncio.get_running_loop()
    kafka.delays = {"dial": 5.0}
    stuck = await pool.borrow()
    kafka.delays = {"dial": DIAL_S}
    begin_s = loop.time()
    other = await pool.borrow()
    assert other is not stuck
    assert loop.time() - begin_s < 0.2
    await pool.put_back(other)
    await pool.put_back(stuck)


async def test_borrow_when_none_can_be_made_then_all_fail(kafka: FakeKafka, pool: Pool) -> None:
    """All waiting callers share one attempt, and each gets its error."""
    kafka.refuses = {0: LogNotPermitted("no such user")}
    errors = await asyncio.gather(*(pool.borrow() for _ in range(3)), return_exceptions=True)
    assert [str(error) for error in errors] == ["no such user"] * 3
    assert {type(error) for error in errors} == {LogNotPermitted}
    assert len(set(map(id, errors))) == 3
    assert dialed(kafka) == 1


async def test_borrow_when_one_is_cancelled_or_broke_then_the_next_goes_on(
    kafka: FakeKafka, pool: Pool
) -> None:
    """A cancelled caller's connection goes to the next one, and one that broke is made anew."""
    lent = await pool.borrow()
    gone, next_ = (asyncio.create_task(pool.borrow()) for _ in range(2))
    await asyncio.sleep(0)
    await pool.put_back(lent)
    gone.cancel()
    assert await next_ is lent
    assert gone.cancelled()
    assert dialed(kafka) == 1
    waiting = asyncio.create_task(pool.borrow())
    await asyncio.sleep(0)
    lent.abort()
    await pool.put_back(lent)
    made = await waiting
    assert made.is_open
    assert made is not lent
    await pool.put_back(made)
    assert dialed(kafka) == 1


async def test_put_back_when_idle_ones_were_closed_then_they_are_let_go(pool: Pool) -> None:
    """The pool drops connections that were closed for being idle."""
    unused, used = [await pool.borrow() for _ in range(2)]
    await pool.put_back(unused)
    await pool.put_back(used)
    unused.abort()
    await pool.put_back(await pool.borrow())
    assert pool.close() == [used]
    await used.close()


async def test_close_when_one_is_being_made_then_closes_it(kafka: FakeKafka, pool: Pool) -> None:
    """A connection made during the close is closed, and its caller gets an error."""
    waiting = asyncio.create_task(pool.borrow())
    await asyncio.sleep(DIAL_S / 2)
    assert pool.close() == []
    with pytest.raises(LogUnavailable, match="broker 0 is gone"):
        await waiting
    await asyncio.sleep(DIAL_S)
    assert [connection.is_open for connection in kafka.connections[0]] == [False]


class HungUp(FakeConnection):
    """A connection that the broker has closed and the client has not."""

    is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True
        super().abort()


@pytest.mark.parametrize("is_borrowed", [True, False], ids=["borrowed", "control"])
async def test_connection_when_the_broker_hung_up_then_another_is_made(is_borrowed: bool) -> None:
    """A connection that is of no use any more is not dropped: its socket would stay open."""
    kafka, tasks = FakeKafka(), TaskSet()
    dialer = cast("Dialer", FakeDialer(kafka))
    node = Node(BrokerAddress(0, "broker-0", 9092), dialer, tasks, asyncio.get_running_loop().time)
    gone = HungUp(kafka, 0)
    gone.is_open = False
    if is_borrowed:
        await (await node.borrow("fetch")).close()
        node._pools["fetch"]._idle.append(cast("BrokerConnection", gone))
        found = await node.borrow("fetch")
    else:
        node._control = cast("BrokerConnection", gone)
        found = await node.control()
    assert found.is_open
    assert gone.is_aborted
    await node.close()
    await tasks.close()


async def fails() -> None:
    raise ZeroDivisionError("broken")


async def test_task_when_it_ends_then_its_owner_learns_it_unless_closed() -> None:
    """The owner learns of every end, and of none that the close of the set made."""
    tasks = TaskSet()
    ended: list[str] = []

    def note(done: asyncio.Task[object]) -> None:
        ended.append(done.get_name())

    well, badly = tasks.start(asyncio.sleep(0), "well", note), tasks.start(fails(), "badly", note)
    cancelled = tasks.start(asyncio.sleep(9), "cancelled", note)
    cancelled.cancel()
    await asyncio.wait([well, badly, cancelled])
    await asyncio.sleep(0)
    assert sorted(ended) == ["badly", "cancelled", "well"]
    started = [tasks.start(asyncio.sleep(99), f"task {number}", note) for number in range(3)]
    await asyncio.sleep(0)
    await tasks.close()
    assert all(task.cancelled() for task in started)
    assert len(ended) == 3
    await tasks.close()


async def test_task_when_it_died_then_its_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A task that should have gone on is never silently missing."""
    tasks = TaskSet()
    dead = tasks.start(fails(), "dead")
    await asyncio.wait([dead])
    assert report_death(dead, "the fetch") == "the fetch died: ZeroDivisionError: broken"
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    cancelled = tasks.start(asyncio.sleep(9), "cancelled")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert report_death(cancelled, "the fetch") == "the fetch died: it was cancelled"


async def test_task_when_a_reader_begins_it_then_its_lines_are_not_the_readers() -> None:
    """A shared task's log lines have the log's fields, not its first reader's."""

    async def work() -> dict[str, object]:
        return dict(bound_fields())

    with bound(cluster="east"):
        tasks = TaskSet()
    with bound(cluster="east", metadata_partition=3):
        assert await tasks.start(work(), "work") == {"cluster": "east"}
    await tasks.close()
