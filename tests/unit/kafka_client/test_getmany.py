"""The fallback through the library's consumer: when it is used, and why silence is not believed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pytest
from aiokafka.errors import (
    CorruptRecordException,
    KafkaConnectionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
)

from rlmm.errors import LogDamaged, LogNotPermitted, LogTruncated, LogUnavailable
from rlmm.kafka_client.fetch.getmany import encode, uses_getmany
from rlmm.kafka_client.settings import FetchPath
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record
from tests.conformance.log.under_test import values_of
from tests.support.kafka.fake_kafka import FakeKafka

if TYPE_CHECKING:
    from aiokafka import TopicPartition

    from rlmm.log.kafka.kafka_log import KafkaLog
    from tests.unit.kafka_client.conftest import OpenLog

ANSWER_S = 60.0
PATHS = {
    (FetchPath.AUTO, "0.14.0"): False,
    (FetchPath.AUTO, "0.14.7"): False,
    (FetchPath.AUTO, "0.15.0"): True,
    (FetchPath.AUTO, "0.140.0"): True,
    (FetchPath.RAW, "0.15.0"): False,
    (FetchPath.GETMANY, "0.14.0"): True,
}


@pytest.mark.parametrize(("given", "expected"), PATHS.items(), ids=str)
def test_path_when_the_version_is_another_then_falls_back_unless_told_otherwise(
    given: tuple[FetchPath, str],
    *,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The raw fetch is for the pinned minor version; what is set is set."""
    path, version = given
    monkeypatch.setattr("aiokafka.__version__", version)
    assert uses_getmany(path) == expected
    assert bool(caplog.records) == (expected and path is FetchPath.AUTO)


class Fetched(NamedTuple):
    """A record as the library hands it out."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp: int = 1_700_000_000_000
    headers: tuple[tuple[str, bytes], ...] = ()


def test_records_when_encoded_then_keep_offsets_keys_times_and_headers() -> None:
    """Holes stay holes; what a record says of itself comes through."""
    records: Any = [
        Fetched(5, b"a"),
        Fetched(9, None, b"key", -1, (("header", b"value"),)),
    ]
    (batch,) = walk(encode(records))
    assert isinstance(batch, Batch)
    assert list(batch.records()) == [
        Record(5, 1_700_000_000_000, None, b"a", ()),
        Record(9, -1, b"key", None, (("header", b"value"),)),
    ]
    assert encode([]) == b""


class FakeConsumer:
    """The library's consumer on a `FakeKafka`, as far as the fallback uses it."""

    kafka: ClassVar[FakeKafka]
    made: ClassVar[list[FakeConsumer]]
    is_dead = False
    """Whether its background task has died: then it delivers nothing, and says nothing."""
    raises: Exception | None = None
    start_raises: Exception | None = None

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.is_stopped = False
        self._position = 0
        type(self).made.append(self)
        self.is_dead = type(self).is_dead

    async def start(self) -> None:
        if self.start_raises is not None:
            raise self.start_raises

    async def stop(self) -> None:
        self.is_stopped = True

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert len(partitions) == 1

    def seek(self, partition: TopicPartition, offset: int) -> None:
        del partition
        self._position = offset

    async def position(self, partition: TopicPartition) -> int:
        del partition
        return self._position

    async def getmany(
        self, partition: TopicPartition, *, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[Fetched]]:
        if self.raises is not None:
            raise self.raises
        held = self.kafka.partitions[partition.partition]
        if self.is_dead or held.next_offset <= self._position:
            await asyncio.sleep(timeout_ms / 1000)
        if self.is_dead or held.next_offset <= self._position:
            return {}
        found = [
            Fetched(offset, value)
            for _, _, data in held.batches
            for batch in walk(data)
            if isinstance(batch, Batch)
            for offset, value in batch.values()
            if offset >= self._position
        ][:max_records]
        self._position = found[-1].offset + 1
        return {partition: found}


class World:
    """A made-up cluster, its consumers, and a log that falls back to them."""

    def __init__(self, kafka: FakeKafka, consumer: type[FakeConsumer], log: KafkaLog) -> None:
        self.kafka = kafka
        self.consumer = consumer
        self.log = log


@pytest.fixture
async def world(open_log: OpenLog, monkeypatch: pytest.MonkeyPatch) -> World:
    class Consumer(FakeConsumer):
        kafka = FakeKafka()

    Consumer.made = []
    monkeypatch.setattr("rlmm.kafka_client.fetch.getmany_consumer.AIOKafkaConsumer", Consumer)
    log = open_log(Consumer.kafka, fetch_path=FetchPath.GETMANY)
    return World(Consumer.kafka, Consumer, log)


async def test_read_when_records_come_then_they_are_a_record_set_again(world: World) -> None:
    """The consumer never jumps, belongs to no group and commits nothing."""
    world.kafka.partitions[0].store(b"a", b"b")
    record_set = await world.log.read(0, 0, timeout_s=ANSWER_S)
    assert record_set is not None
    assert values_of(record_set) == [(0, b"a"), (1, b"b")]
    (consumer,) = world.consumer.made
    options = consumer.options
    assert (options["auto_offset_reset"], options["group_id"]) == ("none", None)
    assert options["enable_auto_commit"] is False


async def test_f69_read_when_the_consumer_is_silently_dead_then_is_noticed_and_replaced(
    world: World,
) -> None:
    """Failure scenario F69: nothing comes, the bounds say that there is something: start anew."""
    assert await world.log.read(0, 0, timeout_s=2) is None
    (first,) = world.consumer.made
    first.is_dead = True
    world.kafka.partitions[0].store(b"there")
    begin = asyncio.get_running_loop().time()
    record_set = await world.log.read(0, 0, timeout_s=ANSWER_S)
    assert record_set is not None
    assert asyncio.get_running_loop().time() - begin < 5
    assert first.is_stopped
    assert world.log.statistics().fetch_deaths == 1


async def test_f69_read_when_every_consumer_is_dead_then_says_so(world: World) -> None:
    """Failure scenario F69: reads that end meanwhile tell what is wrong, and not that all is."""
    world.kafka.partitions[0].store(b"there")
    world.consumer.is_dead = True
    with pytest.raises(LogUnavailable, match="the consumer brings nothing, though there is"):
        await world.log.read(0, 0, timeout_s=3)


async def test_f69_read_when_its_leader_is_away_then_says_so_and_its_consumer_rests(
    world: World,
) -> None:
    """
    Failure scenario F69: however short the reads, the silence of a broker that is away is not
    "nothing there"; and the library, which would dial without a pause, is stopped until it answers.
    """
    assert await world.log.read(0, 0, timeout_s=2) is None
    world.kafka.stop(0)
    for _ in range(3):
        with contextlib.suppress(LogUnavailable):
            await world.log.read(0, 0, timeout_s=0.7)
    (first,) = world.consumer.made
    for _ in range(20):
        with pytest.raises(LogUnavailable, match="its leader does not answer"):
            await world.log.read(0, 0, timeout_s=0.7)
    assert first.is_stopped
    assert world.consumer.made == [first]
    world.kafka.down.clear()
    world.kafka.partitions[0].store(b"back")
    record_set = await world.log.read(0, 0, timeout_s=ANSWER_S)
    assert record_set is not None
    assert values_of(record_set) == [(0, b"back")]


async def test_close_when_the_librarys_stop_ends_as_cancelled_then_all_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping beside a fetch that has just failed, the library leaves its connections to us."""
    assert await world.log.read(0, 0, timeout_s=2) is None
    closed: list[str] = []

    class Client:
        async def close(self) -> None:
            closed.append("client")

    async def stop(self: FakeConsumer) -> None:
        del self
        raise asyncio.CancelledError

    monkeypatch.setattr(world.consumer, "stop", stop)
    monkeypatch.setattr(world.consumer, "_client", Client(), raising=False)
    await world.log.close()
    assert closed == ["client"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_read_when_nothing_is_there_then_none_once_that_is_known(world: World) -> None:
    """Before the consumer has worked once, silence is an error; afterwards it is none."""
    world.consumer.start_raises = KafkaConnectionError("no")
    with pytest.raises(LogUnavailable, match="KafkaConnectionError"):
        await world.log.read(0, 0, timeout_s=1)
    world.consumer.start_raises = None
    assert await world.log.read(0, 0, timeout_s=2) is None


ERRORS: dict[str, tuple[Exception, type[Exception]]] = {
    "not permitted": (TopicAuthorizationFailedError("t"), LogNotPermitted),
    "damaged": (CorruptRecordException("crc"), LogDamaged),
}


@pytest.mark.parametrize(("raised", "error"), ERRORS.values(), ids=ERRORS)
async def test_read_when_the_library_raises_then_is_told_in_our_words(
    world: World, raised: Exception, error: type[Exception]
) -> None:
    """Each error that is not for now has its own of ours."""
    world.consumer.raises = raised
    with pytest.raises(error, match="partition 0"):
        await world.log.read(0, 0, timeout_s=ANSWER_S)


async def test_f66_read_when_out_of_range_then_tells_the_bounds(world: World) -> None:
    """Failure scenario F66: the library's error becomes ours, with both bounds."""
    held = world.kafka.partitions[0]
    for _ in range(5):
        held.store(b"x")
    held.log_start = 3
    world.consumer.raises = OffsetOutOfRangeError()
    with pytest.raises(LogTruncated) as caught:
        await world.log.read(0, 1, timeout_s=ANSWER_S)
    assert (caught.value.log_start, caught.value.next_offset) == (3, 5)


async def test_read_when_a_record_is_too_large_then_more_is_asked_for(world: World) -> None:
    """The library would pass over it: another consumer takes larger answers, to a limit."""
    world.consumer.raises = RecordTooLargeError()
    with pytest.raises(LogDamaged):
        await world.log.read(0, 0, timeout_s=ANSWER_S)
    sizes = [consumer.options["max_partition_fetch_bytes"] for consumer in world.consumer.made]
    assert sizes == [2**20 * 4**step for step in range(5)]


async def test_read_when_cancelled_behind_the_records_then_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that ends while the consumer is asked for its position is repeated from its own."""
    world.kafka.partitions[0].store(b"a")
    assert await world.log.read(0, 0, timeout_s=ANSWER_S) is not None
    world.kafka.partitions[0].store(b"b")

    async def slow(self: FakeConsumer, partition: TopicPartition) -> int:
        await asyncio.sleep(5)
        return await FakeConsumer.position(self, partition)

    with monkeypatch.context() as patch:
        patch.setattr(world.consumer, "position", slow)
        assert await world.log.read(0, 1, timeout_s=1) is None
    record_set = await world.log.read(0, 1, timeout_s=5)
    assert record_set is not None
    assert values_of(record_set) == [(1, b"b")]


async def test_read_when_two_read_the_same_then_each_gets_everything(world: World) -> None:
    """Readers of one partition take turns: who waits at the end holds up nobody."""
    at_end = asyncio.create_task(world.log.read(0, 1, timeout_s=ANSWER_S))
    world.kafka.partitions[0].store(b"a")
    record_set = await world.log.read(0, 0, timeout_s=2)
    assert record_set is not None
    world.kafka.partitions[0].store(b"b")
    record_set = await at_end
    assert record_set is not None
    assert values_of(record_set) == [(1, b"b")]
