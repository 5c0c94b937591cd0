"""Appends, the contract of every log: each record is there once, in order, byte for byte."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendRefused
from rlmm.log.protocol import LogBounds
from rlmm.records.batch import Batch, TimestampType, walk
from rlmm.records.records import Record
from tests.conformance.log.under_test import ANSWER_S, PARTITION_COUNT, read_on, read_until

if TYPE_CHECKING:
    from tests.conformance.log.under_test import LogUnderTest

VALUES = [b"first", b"", b"\x00\xff" * 40, "überall".encode(), b"fifth" * 1_000]
WRITERS = 16
EVENTS_EACH = 8


async def test_append_when_repeated_then_offsets_are_dense(under_test: LogUnderTest) -> None:
    """Appends get consecutive offsets, and a read returns exactly their bytes."""
    offsets = [await under_test.log.append(0, value, timeout_s=ANSWER_S) for value in VALUES]
    assert offsets == list(range(len(VALUES)))
    assert await read_until(under_test.log, 0, 0, len(VALUES)) == list(enumerate(VALUES))


async def test_append_when_partitions_differ_then_offsets_do(under_test: LogUnderTest) -> None:
    """Each partition counts its own offsets."""
    for partition in (1, 2, 1, 3, 1):
        await under_test.log.append(partition, b"%d" % partition, timeout_s=ANSWER_S)
    assert await read_until(under_test.log, 1, 0, 3) == [(0, b"1"), (1, b"1"), (2, b"1")]
    assert await read_until(under_test.log, 2, 0, 1) == [(0, b"2")]


async def test_append_when_stored_then_is_a_record_without_key(under_test: LogUnderTest) -> None:
    """An event is stored as by Kafka's manager: null key, no headers and its own time."""
    await under_test.log.append(0, b"event", timeout_s=ANSWER_S)
    record_set = await read_on(under_test.log, 0, 0)
    (batch,) = walk(record_set.data)
    assert isinstance(batch, Batch)
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    (record,) = batch.records()
    assert isinstance(record, Record)
    assert (record.offset, record.key, record.value, record.headers) == (0, None, b"event", ())
    assert record.timestamp_ms > 0


async def test_append_when_writers_are_many_then_offsets_differ(under_test: LogUnderTest) -> None:
    """Concurrent appends get each offset exactly once, each with its own event."""
    stored: list[dict[int, bytes]] = [{} for _ in range(PARTITION_COUNT)]
    order: list[list[int]] = []

    async def write(writer: int) -> None:
        partition = writer % PARTITION_COUNT
        offsets: list[int] = []
        for number in range(EVENTS_EACH):
            value = b"%d-%d" % (writer, number)
            offset = await under_test.log.append(partition, value, timeout_s=ANSWER_S)
            stored[partition][offset] = value
            offsets.append(offset)
        order.append(offsets)

    async with asyncio.TaskGroup() as writers:
        for writer in range(WRITERS):
            writers.create_task(write(writer))
    count = WRITERS // PARTITION_COUNT * EVENTS_EACH
    for partition in range(PARTITION_COUNT):
        found = await read_until(under_test.log, partition, 0, count)
        assert found == sorted(stored[partition].items())
        assert [offset for offset, _ in found] == list(range(count))
    assert all(offsets == sorted(offsets) for offsets in order)


async def test_append_when_as_large_as_may_be_then_is_stored(under_test: LogUnderTest) -> None:
    """A value of the largest size is stored, and read at once under any limit."""
    value = bytes(under_test.value_bytes_max)
    assert await under_test.log.append(0, value, timeout_s=ANSWER_S) == 0
    assert await read_until(under_test.log, 0, 0, 1, bytes_max=100) == [(0, value)]


async def test_append_when_too_large_then_takes_no_offset(under_test: LogUnderTest) -> None:
    """A value one byte too large is refused without an offset, and the log goes on."""
    with pytest.raises(AppendRefused):
        await under_test.log.append(0, bytes(under_test.value_bytes_max + 1), timeout_s=ANSWER_S)
    assert await under_test.log.append(0, b"next", timeout_s=ANSWER_S) == 0
    bounds = await under_test.log.bounds([0], timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(0, 1)}


async def test_append_when_opened_again_then_is_still_there(under_test: LogUnderTest) -> None:
    """An acknowledged append is there when the log is opened again, and offsets continue."""
    for value in VALUES:
        await under_test.log.append(2, value, timeout_s=ANSWER_S)
    log = await under_test.reopen()
    assert await read_until(log, 2, 0, len(VALUES)) == list(enumerate(VALUES))
    assert await log.append(2, b"next", timeout_s=ANSWER_S) == len(VALUES)


async def test_observer_when_it_appends_then_is_refused_and_reads(under_test: LogUnderTest) -> None:
    """A log without a producer reads every record and refuses appends."""
    await under_test.log.append(0, b"event", timeout_s=ANSWER_S)
    observer = await under_test.reopen(is_observer=True)
    with pytest.raises(AppendRefused, match="an observer"):
        await observer.append(0, b"more", timeout_s=ANSWER_S)
    assert await read_until(observer, 0, 0, 1) == [(0, b"event")]
    bounds = await observer.bounds([0], timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(0, 1)}
