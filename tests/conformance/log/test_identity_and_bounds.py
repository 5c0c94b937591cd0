"""Identity and bounds, the contract of every log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlmm.errors import InvalidArgument
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import ANSWER_S, PARTITION_COUNT

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from rlmm.log.protocol import MetadataLog
    from tests.conformance.log.under_test import LogUnderTest

NO_PARTITION = [-1, PARTITION_COUNT, 999]


async def test_identity_then_names_cluster_topic_and_count(under_test: LogUnderTest) -> None:
    """A log knows its cluster, its topic's id and how many partitions the topic has."""
    identity = await under_test.log.identity(timeout_s=ANSWER_S)
    assert identity.cluster_id
    assert any(identity.topic_id)
    assert identity.partition_count == PARTITION_COUNT


async def test_identity_when_asked_again_then_is_the_same(under_test: LogUnderTest) -> None:
    """The identity of a log stays the same across appends and time."""
    identity = await under_test.log.identity(timeout_s=ANSWER_S)
    await under_test.log.append(0, b"a", timeout_s=ANSWER_S)
    assert await under_test.log.identity(timeout_s=ANSWER_S) == identity


async def test_identity_when_opened_again_then_is_the_same(under_test: LogUnderTest) -> None:
    """A log opened again has the same identity, so that state read from it stays valid."""
    identity = await under_test.log.identity(timeout_s=ANSWER_S)
    log = await under_test.reopen()
    assert await log.identity(timeout_s=ANSWER_S) == identity


async def test_bounds_when_nothing_was_written_then_are_zero(under_test: LogUnderTest) -> None:
    """An empty partition has bounds that begin and end at zero."""
    partitions = range(PARTITION_COUNT)
    bounds = await under_test.log.bounds(partitions, timeout_s=ANSWER_S)
    assert bounds == dict.fromkeys(partitions, LogBounds(0, 0))


async def test_bounds_when_written_then_differ_by_partition(under_test: LogUnderTest) -> None:
    """Bounds count the appends of each partition; the answer holds the requested ones alone."""
    for partition, count in ((0, 3), (2, 1)):
        for number in range(count):
            await under_test.log.append(partition, b"%d" % number, timeout_s=ANSWER_S)
    bounds = await under_test.log.bounds([0, 1, 2], timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(0, 3), 1: LogBounds(0, 0), 2: LogBounds(0, 1)}


async def test_bounds_when_an_append_is_acknowledged_then_have_it(under_test: LogUnderTest) -> None:
    """Bounds include an acknowledged append at once."""
    for _ in range(3):
        offset = await under_test.log.append(1, b"a", timeout_s=ANSWER_S)
        bounds = await under_test.log.bounds({1}, timeout_s=ANSWER_S)
        assert bounds == {1: LogBounds(0, offset + 1)}


async def test_bounds_when_of_no_partition_then_are_empty(under_test: LogUnderTest) -> None:
    """The bounds of no partitions are an empty answer."""
    assert await under_test.log.bounds((), timeout_s=ANSWER_S) == {}


async def test_bounds_when_records_were_deleted_then_begin_later(under_test: LogUnderTest) -> None:
    """The log start offset is the first offset that still exists."""
    for number in range(5):
        await under_test.log.append(3, b"%d" % number, timeout_s=ANSWER_S)
    await under_test.delete_records(3, 2)
    bounds = await under_test.log.bounds([3], timeout_s=ANSWER_S)
    assert bounds == {3: LogBounds(2, 5)}


def calls_of(log: MetadataLog, partition: int) -> list[Coroutine[Any, Any, object]]:
    return [
        log.bounds([0, partition], timeout_s=ANSWER_S),
        log.read(partition, 0, timeout_s=ANSWER_S),
        log.append(partition, b"a", timeout_s=ANSWER_S),
    ]


@pytest.mark.parametrize("partition", NO_PARTITION)
async def test_f61_partition_when_there_is_none_then_is_refused(
    under_test: LogUnderTest, partition: int
) -> None:
    """Failure scenario F61: a partition number that does not exist never reaches the log."""
    await under_test.log.identity(timeout_s=ANSWER_S)
    for call in calls_of(under_test.log, partition):
        with pytest.raises(InvalidArgument, match=f"0 to {PARTITION_COUNT - 1}, got {partition}"):
            call.send(None)  # the first step of the call: it has waited for nothing


@pytest.mark.parametrize("position", [-1, -(2**63), 2**63])
async def test_read_when_at_no_offset_refuses(under_test: LogUnderTest, position: int) -> None:
    """A negative position is refused as a caller's mistake before any I/O."""
    await under_test.log.identity(timeout_s=ANSWER_S)
    with pytest.raises(InvalidArgument, match=f"got {position}"):
        under_test.log.read(0, position, timeout_s=ANSWER_S).__await__().send(None)
