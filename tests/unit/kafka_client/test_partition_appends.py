"""The appends to one partition: stored, not stored, or uncertain."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    LogNotPermitted,
    LogRecreated,
    LogUnavailable,
)
from rlmm.kafka_client.produce.partition_appends import PartitionAppends, ProducerAppend
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.produce import ProduceResult, ProducerId
from rlmm.records.batch import Batch, walk
from rlmm.records.records import Record

if TYPE_CHECKING:
    from rlmm.errors import LogError

NOW_MS = 1_700_000_000_000


def lane(batch_bytes_max: int = 10_000) -> PartitionAppends:
    made = PartitionAppends(3, batch_bytes_max)
    made.producer = ProducerId(0, 77, 1)
    return made


def put(into: PartitionAppends, *values: bytes) -> list[ProducerAppend]:
    appends = [ProducerAppend(each, asyncio.get_running_loop().create_future()) for each in values]
    for append in appends:
        into.put(append)
    return appends


def told(
    code: int = ErrorCode.NONE, base_offset: int = -1, reason: str | None = None
) -> ProduceResult:
    return ProduceResult(code, base_offset, reason, is_by_topic_id=True)


def packed(into: PartitionAppends) -> Batch:
    data = into.pack(NOW_MS)
    assert data is not None
    (batch,) = walk(data)
    assert isinstance(batch, Batch)
    return batch


def sent(into: PartitionAppends) -> Batch:
    batch = packed(into)
    into.sent()
    return batch


def lane_after(*values: bytes) -> tuple[PartitionAppends, list[ProducerAppend]]:
    into = lane()
    appends = put(into, *values)
    sent(into)
    return into, appends


def error_of(append: ProducerAppend) -> LogError:
    error = append.offset.exception()
    assert error is not None
    return error  # type: ignore[return-value]


async def test_batch_when_packed_then_is_numbered_for_its_producer() -> None:
    """The batch has null keys, the time of sending, and the next sequence number."""
    into = lane()
    appends = put(into, b"a", b"b")
    batch = sent(into)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 1, 0)
    assert [value for _, value in batch.values()] == [b"a", b"b"]
    assert batch.max_timestamp_ms == NOW_MS
    assert into.answered(told(base_offset=40)) is None
    assert [append.offset.result() for append in appends] == [40, 41]
    put(into, b"c")
    assert sent(into).base_sequence == 2


async def test_batch_when_an_attempt_had_no_answer_then_the_same_bytes_are_sent_again() -> None:
    """The batch is sent again with the same bytes and number, by which the broker recognises it."""
    into = lane()
    put(into, b"a")
    first = into.pack(NOW_MS)
    into.sent()
    into.lost(LogUnavailable("cut off"))
    put(into, b"b")
    assert into.pack(NOW_MS + 5) == first
    into.sent()
    into.answered(told(base_offset=9))
    assert packed(into).base_sequence == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
    ],
    ids=lambda code: code.name.lower(),
)
async def test_append_when_surely_not_stored_then_waits_again_in_its_place(code: ErrorCode) -> None:
    """A broker that did not take it leaves it as if it had never been sent."""
    into, appends = lane_after(b"a", b"b")
    put(into, b"c")
    assert isinstance(into.answered(told(code)), LogUnavailable)
    assert not any(append.is_sent for append in appends)
    batch = packed(into)
    assert [value for _, value in batch.values()] == [b"a", b"b", b"c"]
    assert batch.base_sequence == 0
    assert isinstance(into.late(appends[0], 5), AppendRefused)


UNCLEAR = [
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.KAFKA_STORAGE_ERROR,
    None,
]


@pytest.mark.parametrize("code", UNCLEAR, ids=lambda code: code.name.lower() if code else "unnamed")
async def test_append_when_maybe_stored_then_is_uncertain_when_late(code: ErrorCode | None) -> None:
    """After such an answer, or one without it, only a repetition could tell; no later refusal."""
    into, (append,) = lane_after(b"a")
    assert into.answered(None if code is None else told(code)) is not None
    error = into.late(append, 5)
    assert isinstance(error, AppendUncertain)
    assert "partition 3: no answer to an append in 5 s" in str(error)
    assert into.answered(told(ErrorCode.NOT_LEADER_OR_FOLLOWER)) is not None
    assert isinstance(into.late(append, 5), AppendUncertain)


FINAL = {
    "refused": (
        told(ErrorCode.INVALID_RECORD, reason="no key"),
        AppendRefused,
        "INVALID_RECORD (87): no key",
    ),
    "not permitted": (
        told(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        LogNotPermitted,
        "WRITE to the topic",
    ),
    "stored at a forgotten offset": (
        told(ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
        AppendUncertain,
        "stored before",
    ),
}


@pytest.mark.parametrize(("answer", "kind", "says"), FINAL.values(), ids=FINAL)
async def test_append_when_its_answer_is_final_then_ends_with_the_reason(
    answer: ProduceResult, kind: type[LogError], says: str
) -> None:
    """The writer gets the broker's own reason; a refused append uses no sequence number."""
    into, (append,) = lane_after(b"a")
    assert into.answered(answer) is None
    assert isinstance(error_of(append), kind)
    assert says in str(error_of(append))
    if kind is not AppendUncertain:
        put(into, b"b")
        assert packed(into).base_sequence == 0


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_PRODUCER_ID]
)
async def test_append_when_refused_in_doubt_then_is_uncertain(code: ErrorCode) -> None:
    """A refusal speaks of the repetition; under another number it could be stored twice."""
    into, (append,) = lane_after(b"a")
    into.lost(LogUnavailable("cut off"))
    assert into.answered(told(code)) is None
    assert isinstance(error_of(append), AppendUncertain)
    assert into.producer is None
    assert not into.is_wanted()


async def test_batch_when_too_large_then_each_event_is_judged_alone() -> None:
    """An event that is too large is refused alone."""
    into, (small, large, other) = lane_after(b"a", b"L", b"b")
    assert into.answered(told(ErrorCode.MESSAGE_TOO_LARGE)) is None
    for offset, append in enumerate((small, large, other)):
        assert [value for _, value in sent(into).values()] == [append.value]
        code = ErrorCode.MESSAGE_TOO_LARGE if append is large else ErrorCode.NONE
        into.answered(told(code, base_offset=offset))
    assert isinstance(error_of(large), AppendRefused)
    assert (small.offset.result(), other.offset.result()) == (0, 2)
    put(into, b"c", b"d")
    assert packed(into).record_count == 2


async def test_append_when_the_broker_forgot_the_producer_then_is_numbered_anew() -> None:
    """Batches that were never stored get another producer id and start at sequence number 0."""
    into, _ = lane_after(b"a")
    into.answered(told(base_offset=0))
    (append,) = put(into, b"b")
    sent(into)
    assert into.answered(told(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)) is not None
    assert into.producer is None
    into.producer = ProducerId(0, 78, 0)
    batch = sent(into)
    assert (batch.producer_id, batch.base_sequence) == (78, 0)
    into.answered(told(base_offset=1))
    assert append.offset.result() == 1


@pytest.mark.parametrize("is_by_topic_id", [False, True], ids=["by name", "by topic id"])
async def test_f6_append_when_offsets_go_back_then_is_stored_by_id(is_by_topic_id: bool) -> None:
    """Offsets that go back give away another topic, or after a topic id an unclean election."""
    into, _ = lane_after(b"a")
    into.answered(told(base_offset=500))
    (append,) = put(into, b"b")
    sent(into)
    assert into.answered(ProduceResult(ErrorCode.NONE, 7, None, is_by_topic_id)) is None
    if is_by_topic_id:
        assert append.offset.result() == 7
    else:
        assert isinstance(error_of(append), LogRecreated)


async def test_append_when_cancelled_then_is_not_sent_or_given_up_with_its_producer() -> None:
    """A cancelled append is not sent; a sent batch without callers takes its producer id along."""
    into = lane()
    first, second = put(into, b"a", b"b")
    first.offset.cancel()
    assert [value for _, value in sent(into).values()] == [b"b"]
    assert not second.offset.done()
    into.lost(LogUnavailable("cut off"))
    second.offset.cancel()
    assert not into.is_wanted()
    assert (into.batch, into.producer) == (None, None)


async def test_lane_when_it_fails_then_only_what_was_sent_is_uncertain() -> None:
    """At the close, sent appends are uncertain and all others are surely not stored."""
    into, (first,) = lane_after(b"a")
    (second,) = put(into, b"b")
    into.fail(LogUnavailable("the log is closed"))
    assert isinstance(error_of(first), AppendUncertain)
    assert isinstance(error_of(second), LogUnavailable)


async def test_numbers_when_they_pass_the_largest_then_begin_at_zero() -> None:
    """Kafka's numbers are 31 bits wide."""
    into = lane()
    into._sequence = 2**31 - 2
    put(into, b"a", b"b", b"c")
    assert sent(into).base_sequence == 2**31 - 2
    into.answered(told(base_offset=0))
    put(into, b"d")
    assert packed(into).base_sequence == 1


async def test_pack_when_whole_records_wait_then_they_are_sent_as_they_once_were() -> None:
    """Key, time and headers, a value or none, beside an event that gets its time now."""
    into = lane()
    once = Record(44, 5, b"key", None, (("h", b"v"), ("n", None)))
    loop = asyncio.get_running_loop()
    appends = [
        ProducerAppend(b"", loop.create_future(), record=once),
        ProducerAppend(b"event", loop.create_future()),
        ProducerAppend(b"x", loop.create_future(), record=Record(0, -1, None, b"x")),
    ]
    for append in appends:
        into.put(append)
    records = list(packed(into).records())
    assert records == [
        once._replace(offset=0),
        Record(1, NOW_MS, None, b"event"),
        Record(2, -1, None, b"x"),
    ]
    assert appends[0].size >= len("keyhvn") + appends[1].size - len("event")


async def test_pack_when_values_keys_and_headers_are_large_then_holds_what_fits() -> None:
    """A batch is never larger than a broker takes, and what does not fit waits for the next one."""
    into = lane(batch_bytes_max=1000)
    put(into, *(b"x" * 300 for _ in range(5)))
    assert packed(into).record_count == 2
    into = lane(10_000)
    loop = asyncio.get_running_loop()
    for number in range(4):
        record = Record(0, number, bytes(2_000), b"v", (("n" * 2_000, bytes(2_000)),))
        into.put(ProducerAppend(b"v", loop.create_future(), record=record))
    data = into.pack(NOW_MS)
    assert data is not None
    assert len(data) <= 10_000
    assert len(list(next(iter(walk(data))).records())) == 1  # type: ignore[union-attr]
