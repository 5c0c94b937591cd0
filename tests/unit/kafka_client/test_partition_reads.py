"""The meaning of an answer for the read that waits for it."""

from __future__ import annotations

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.errors import LogDamaged, LogNotPermitted, LogUnavailable
from rlmm.kafka_client.fetch.partition_reads import (
    FetchAgain,
    FetchOutOfRange,
    FetchPosition,
    PendingRead,
    WholeBatches,
    answer,
    truncated,
    whole_batches,
)
from rlmm.kafka_messages.error_codes import ErrorCode
from rlmm.kafka_messages.fetch import FetchedPartition, FetchPartition
from rlmm.pump.damage_skipping import offset_behind
from rlmm.records.batch import Batch, walk
from rlmm.records.damage import DamageReason
from rlmm.records.record_set import RecordSet
from rlmm.records.writer import build_batch, records_of
from tests.support.engine.chosen import ChosenShard

BATCH = build_batch(records_of([b"a", b"b"], 5), 5, leader_epoch=2)
SECOND = build_batch(records_of([b"c"], 7), 7, leader_epoch=3)
THIRD = build_batch(records_of([b"d"], 8), 8, leader_epoch=3)
BROKEN = b"\xff" * 70


def read_at(position: int, bytes_max: int = 100) -> PendingRead:
    return PendingRead(3, position, bytes_max, asyncio.get_running_loop().create_future())


def fetched(data: bytes = b"", *, code: int = 0, next_offset: int = 7) -> FetchedPartition:
    return FetchedPartition(3, code, next_offset, 0, memoryview(data))


def fetch_position() -> FetchPosition:
    return FetchPosition(asyncio.get_running_loop().time)


RETRIED = {
    "another leads": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "an older epoch": ErrorCode.UNKNOWN_LEADER_EPOCH,
    "a newer epoch": ErrorCode.FENCED_LEADER_EPOCH,
    "an unknown topic": ErrorCode.UNKNOWN_TOPIC_ID,
    "its disk": ErrorCode.KAFKA_STORAGE_ERROR,
    "an unknown code": 999,
}


@pytest.mark.parametrize("code", RETRIED.values(), ids=RETRIED)
async def test_f68_answer_when_not_a_permanent_code_then_is_retried(code: int) -> None:
    """F68: missing rights and damage end a read; after other codes the leader is asked again."""
    for final, error in (
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, LogNotPermitted),
        (ErrorCode.CORRUPT_MESSAGE, LogDamaged),
    ):
        assert isinstance(
            fetch_position().judge(read_at(5), fetched(code=final), is_first=True), error
        )
    judged = fetch_position().judge(read_at(5), fetched(code=code), is_first=True)
    assert isinstance(judged, FetchAgain)
    assert isinstance(judged.trouble, LogUnavailable)
    assert judged.is_stale
    assert f"{code}" in str(judged.trouble)


async def test_answer_when_a_batch_does_not_fit_then_is_asked_for_as_large_as_it_is() -> None:
    """A batch that was cut is requested at its whole size, up to the limit of a request."""
    known, read = fetch_position(), read_at(5)
    assert known.judge(read, fetched(BATCH[:30]), is_first=False) == FetchAgain(None)
    assert (known.tail, read.is_answered) == (None, False)
    assert known.wanted(read, 0).bytes_max == max(100, len(BATCH))
    known.judge(read, fetched(BATCH[:8]), is_first=False)
    assert known.wanted(read, 0).bytes_max == 200
    assert known.wanted(read_at(5, 2**40), 0).bytes_max == 2**31 - 1


async def test_answer_when_there_was_no_room_then_the_read_is_not_at_the_tail() -> None:
    """A read whose records found no room in the answer is not at the end of the log."""
    known, read = fetch_position(), read_at(5)
    assert known.judge(read, fetched(next_offset=9), is_first=False) == FetchAgain(None)
    assert (known.tail, read.is_answered) == (None, False)
    assert known.judge(read, fetched(next_offset=9), is_first=True) == FetchAgain(None)
    assert (known.tail, read.is_answered) == (5, True)


@pytest.mark.parametrize(
    ("data", "said"),
    [(BROKEN, "claims a length"), (build_batch(records_of([b"a"], 2), 2), "up to 3 only")],
    ids=["no batch", "batches below the position"],
)
async def test_answer_when_it_makes_no_progress_then_is_damage(data: bytes, said: str) -> None:
    """The error names partition and offset of bytes that are no batch or lead backwards."""
    judged = fetch_position().judge(read_at(5), fetched(data), is_first=True)
    assert isinstance(judged, LogDamaged)
    assert str(judged).startswith("partition 3 at offset 5: ")
    assert said in str(judged)


async def test_epoch_when_a_batch_was_read_then_is_sent_with_the_position_behind_it() -> None:
    """The leader can tell by it whether it has the same history; elsewhere it is not sent."""
    known = fetch_position()
    known.judge(read_at(5), fetched(BATCH), is_first=True)
    assert known.wanted(read_at(7), 4) == FetchPartition(3, 7, 100, 4, 2)
    assert known.wanted(read_at(8), 4) == FetchPartition(3, 8, 100, 4, -1)
    assert known.wanted(read_at(5), 4) == FetchPartition(3, 5, 100, 4, -1)
    known.forget_epoch()
    assert known.wanted(read_at(7), 4) == FetchPartition(3, 7, 100, 4, -1)


async def test_epoch_when_a_part_of_an_answer_is_wanted_again_then_is_sent_as_well() -> None:
    """A reader that could use no more than a part of an answer, or nothing, sends its epoch."""
    known = fetch_position()
    known.judge(read_at(5), fetched(BATCH), is_first=True)
    known.judge(read_at(7), fetched(SECOND + THIRD, next_offset=9), is_first=True)
    assert known.wanted(read_at(8), 4).last_epoch == 3
    assert known.wanted(read_at(7), 4).last_epoch == 2


JUDGED = {
    "whole batches": (fetched(BATCH + BATCH[:20]), RecordSet(3, BATCH, 7)),
    "damage behind good batches": (fetched(BATCH + BROKEN), RecordSet(3, BATCH, 7)),
    "out of range": (fetched(code=ErrorCode.OFFSET_OUT_OF_RANGE), FetchOutOfRange(False)),
    "diverging": (
        FetchedPartition(3, 0, 7, 0, memoryview(b""), is_diverging=True), FetchOutOfRange(True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer_", "expected"), JUDGED.values(), ids=JUDGED)
async def test_answer_when_judged_then_gives_whole_batches_or_asks_for_bounds(
    answer_: FetchedPartition, expected: object
) -> None:
    """Good batches come before damage; out of range and diverging keep their kind."""
    assert fetch_position().judge(read_at(6), answer_, is_first=True) == expected


TRUNCATIONS = {
    "below": (3, False, True),
    "at the start": (4, False, False),
    "at the end": (9, False, False),
    "beyond": (10, False, True),
    "within, but another history": (6, True, True),
}


@pytest.mark.parametrize(
    ("position", "is_diverging", "is_truncated"), TRUNCATIONS.values(), ids=TRUNCATIONS
)
async def test_f66_position_when_compared_with_the_bounds_then_is_truncated_outside(
    position: int, *, is_diverging: bool, is_truncated: bool
) -> None:
    """Failure scenario F66: the error carries the bounds; within them there is none."""
    error = truncated(read_at(position), 4, 9, is_diverging=is_diverging)
    assert (error is not None) == is_truncated
    if error is not None:
        assert (error.log_start, error.next_offset) == (4, 9)
        assert f"partition 3: offset {position}" in str(error)


async def test_answer_when_something_else_has_ended_the_read_then_nothing_happens() -> None:
    """The first answer counts, and a cancelled read takes none."""
    read = read_at(5)
    answer(read, RecordSet(3, BATCH, 7))
    answer(read, LogUnavailable("late"))
    assert await read.answer == RecordSet(3, BATCH, 7)
    cancelled = read_at(5)
    cancelled.answer.cancel()
    answer(cancelled, LogUnavailable("late"))
    assert cancelled.answer.cancelled()


async def test_position_when_an_attempt_failed_then_is_unknown_until_an_answer() -> None:
    """An empty answer at the end is an answer; trouble ends with one, and has no tail meanwhile."""
    known, read = fetch_position(), read_at(7)
    assert known.judge(read, fetched(), is_first=True) == FetchAgain(None)
    assert (known.tail, read.is_answered) == (7, True)
    assert known.failed(LogUnavailable("away")) == 0.1
    assert (known.tail, str(known.trouble)) == (None, "away")
    known.judge(read, fetched(), is_first=True)
    assert (known.tail, known.trouble, known.backoff.remaining_s) == (7, None, 0)


HOLE = build_batch(records_of([b"d"], 8), 8, last_offset=19, leader_epoch=3)
OLD = struct.pack(">qi", 4, 14) + bytes(4) + b"\x01" + bytes(9)
SMALL = struct.pack(">qi", 4, 14) + bytes(4) + b"\x02" + bytes(9)
ABSURD = struct.pack(">qi", 9, -1) + bytes(60)
HUGE = struct.pack(">qi", 9, 2**30) + bytes(60)

CASES = {
    "nothing": (b"", WholeBatches(0, None, -1, 0, None)),
    "one": (BATCH, WholeBatches(len(BATCH), 7, 2, 0, None)),
    "two": (BATCH + SECOND, WholeBatches(len(BATCH + SECOND), 8, 3, 0, None, len(BATCH))),
    "a hole at the end": (HOLE, WholeBatches(len(HOLE), 20, 3, 0, None)),
    "the second cut off": (BATCH + SECOND[:-1], WholeBatches(len(BATCH), 7, 2, len(SECOND), None)),
    "the second's length cut off": (BATCH + SECOND[:11], WholeBatches(len(BATCH), 7, 2, 0, None)),
    "only the begin of one": (BATCH[:30], WholeBatches(0, None, -1, len(BATCH), None)),
    "a message of an old format": (OLD, WholeBatches(len(OLD), 5, -1, 0, None)),
    "a batch smaller than its own header": (SMALL, WholeBatches(len(SMALL), 5, -1, 0, None)),
    "a length that none can have": (
        BATCH + ABSURD,
        WholeBatches(len(BATCH), 7, 2, 0, "a batch at offset 9 claims a length of -1"),
    ),
    "a length beyond all limits": (
        HUGE,
        WholeBatches(0, None, -1, 0, "a batch at offset 9 claims a length of 1073741824"),
    ),
}


@pytest.mark.parametrize(("data", "found"), CASES.values(), ids=CASES)
def test_batches_when_whole_then_are_told_from_the_rest(data: bytes, found: WholeBatches) -> None:
    """The parser returns the whole batches, the next position, and the bytes behind them."""
    assert whole_batches(data) == found
    assert whole_batches(memoryview(data)) == found


@given(st.binary(max_size=300))
def test_batches_when_the_bytes_are_any_then_nothing_is_raised(data: bytes) -> None:
    """Arbitrary bytes make no error, and nothing beyond them is whole."""
    assert 0 <= whole_batches(data).size <= len(data)


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 400))
def test_batches_when_cut_anywhere_then_agree_with_the_walk(counts: list[int], cut: int) -> None:
    """Wherever the answer ends, the same batches are whole that the walk of records finds."""
    data, offset = b"", 0
    for count in counts:
        data += build_batch(records_of([b"x"] * count, offset), offset)
        offset += count
    data = data[: max(len(data) - cut, 0)]
    batches = [batch for batch in walk(data) if isinstance(batch, Batch)]
    found = whole_batches(data)
    assert found.size == (batches[-1].stop if batches else 0)
    assert found.next_offset == (batches[-1].next_offset if batches else None)


def beyond(batch: bytes, offset: int = 2**40) -> bytes:
    """Return *batch* with a base offset that no CRC covers, far beyond any high watermark."""
    return struct.pack(">q", offset) + batch[8:]


async def test_f63_last_batch_when_it_claims_to_be_beyond_the_high_watermark_then_stays_out() -> (
    None
):
    """The sound batches before it are given alone, and the next read begins behind them."""
    data = BATCH + beyond(build_batch(records_of([b"c"], 7), 7, leader_epoch=2))
    judged = fetch_position().judge(read_at(5), fetched(data, next_offset=8), is_first=True)
    assert judged == RecordSet(3, BATCH, 7)


async def test_f63_first_batch_when_it_claims_to_be_beyond_the_high_watermark_then_is_damaged() -> (
    None
):
    """The shard finds the batch damaged, and no offset behind its two records is passed."""
    judged = fetch_position().judge(
        read_at(5), fetched(beyond(BATCH), next_offset=100), is_first=True
    )
    assert isinstance(judged, RecordSet)
    assert judged.next_offset == 7
    report = ChosenShard(3, 5).apply(judged)
    assert report.damage is not None
    assert (report.damage.reason, report.next_offset) == (DamageReason.BAD_OFFSETS, 5)
    assert offset_behind(judged, report.damage, 5) == 7
