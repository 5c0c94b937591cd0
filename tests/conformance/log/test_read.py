"""Reads, the contract of every log: from an offset on, and waiting for new records."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import LogTruncated
from rlmm.log.history_reader import read_aside
from rlmm.log.protocol import LogBounds
from tests.conformance.log.under_test import (
    ANSWER_S,
    SHORT_S,
    read_on,
    read_until,
    settled,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from rlmm.log.protocol import MetadataLog
    from rlmm.records.record_set import RecordSet
    from tests.conformance.log.under_test import LogUnderTest


async def write(log: MetadataLog, partition: int, *values: bytes) -> None:
    for value in values:
        await log.append(partition, value, timeout_s=ANSWER_S)


def reading(
    log: MetadataLog, partition: int, position: int, timeout_s: float = ANSWER_S
) -> asyncio.Task[RecordSet | None]:
    return asyncio.create_task(log.read(partition, position, timeout_s=timeout_s))


async def test_read_when_inside_the_log_then_goes_on_from_there(under_test: LogUnderTest) -> None:
    """A read from any offset returns every later record and misses none."""
    values = [b"%d" % number for number in range(6)]
    await write(under_test.log, 0, *values)
    for position in range(6):
        found = await read_until(under_test.log, 0, position, 6)
        assert found == list(enumerate(values))[position:]


async def test_read_when_within_a_limit_then_gives_whole_batches(under_test: LogUnderTest) -> None:
    """A read returns whole batches within its limit, at least one, and later reads the rest."""
    values = [b"%03d" % number * 30 for number in range(10)]
    await write(under_test.log, 0, *values)
    found: list[tuple[int, bytes]] = []
    position = 0
    while position < 10:
        record_set = await under_test.log.read(0, position, timeout_s=ANSWER_S, bytes_max=400)
        assert record_set is not None
        assert record_set.next_offset is not None
        assert len(record_set.data) <= 400
        found += [each for each in values_of(record_set) if each[0] >= position]
        position = record_set.next_offset
    assert found == list(enumerate(values))


async def test_read_when_a_batch_passes_the_limit_then_is_whole(under_test: LogUnderTest) -> None:
    """A read that finds a batch returns it whole, however small the limit."""
    await write(under_test.log, 0, b"large" * 500, b"next")
    record_set = await under_test.log.read(0, 0, timeout_s=ANSWER_S, bytes_max=1)
    assert record_set is not None
    assert values_of(record_set) == [(0, b"large" * 500)]
    assert record_set.next_offset == 1


async def test_read_when_beside_a_waiting_one_then_both_go_on(under_test: LogUnderTest) -> None:
    """A reader of history neither waits for a waiting read of its partition nor ends it."""
    log, values = under_test.log, [b"%d" % number for number in range(6)]
    await write(log, 0, *values)
    following = reading(log, 0, 6)
    await settled()
    found: list[tuple[int, bytes]] = []
    position = 0
    while position < 6:
        record_set = await read_aside(log, 0, position, timeout_s=ANSWER_S, bytes_max=1)
        assert record_set is not None
        assert record_set.next_offset is not None
        found += [each for each in values_of(record_set) if each[0] >= position]
        position = record_set.next_offset
    assert found == list(enumerate(values))
    assert not following.done()
    await write(log, 0, b"more")
    assert values_of(await following)[-1] == (6, b"more")


async def test_read_when_nothing_comes_then_ends_at_its_deadline(under_test: LogUnderTest) -> None:
    """A read at the end of the log waits and returns None at its deadline."""
    await write(under_test.log, 0, b"a")
    waiting = reading(under_test.log, 0, 1, SHORT_S)
    await settled()
    assert not waiting.done()
    await under_test.pass_time(SHORT_S)
    assert await waiting is None


async def test_read_when_an_append_comes_then_it_is_woken(under_test: LogUnderTest) -> None:
    """A read that waits at the end of the log returns the next append."""
    waiting = reading(under_test.log, 1, 0)
    await settled()
    assert not waiting.done()
    await write(under_test.log, 1, b"news")
    record_set = await waiting
    assert record_set is not None
    assert (values_of(record_set), record_set.next_offset) == ([(0, b"news")], 1)


async def test_read_when_it_waits_then_no_timer_fires(
    under_test: LogUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting read starts no timer, as it does not poll."""
    if under_test.has_own_timers:
        pytest.skip("reads of Kafka have timers: pauses before connections are made, ends of waits")
    fired: list[str] = []
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def counted(
        when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        def fire() -> None:
            fired.append(repr(callback))
            callback(*args)

        return call_at(when, fire, context=context)

    monkeypatch.setattr(loop, "call_at", counted)
    waiting = [reading(under_test.log, partition, 0) for partition in (0, 0, 1)]
    await settled()
    await write(under_test.log, 0, b"a")
    await write(under_test.log, 1, b"b")
    assert all(await asyncio.gather(*waiting))
    assert fired == []


async def test_read_when_there_is_much_then_others_get_their_turn(under_test: LogUnderTest) -> None:
    """A loop that reads existing records lets other tasks of the event loop run."""
    await write(under_test.log, 0, b"a")
    await read_on(under_test.log, 0, 0)
    turns: list[int] = []
    for number in range(5):
        asyncio.get_running_loop().call_soon(turns.append, number)
        await read_on(under_test.log, 0, 0)
        assert turns == list(range(number + 1))


async def test_read_when_cancelled_then_leaves_nothing_behind(under_test: LogUnderTest) -> None:
    """A cancelled read disturbs no other read of the same position, now or later."""
    cancelled, kept = reading(under_test.log, 0, 0), reading(under_test.log, 0, 0)
    await settled()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await write(under_test.log, 0, b"a")
    assert values_of(await kept) == [(0, b"a")]
    assert values_of(await read_on(under_test.log, 0, 0)) == [(0, b"a")]
    assert not under_test.reads_waiting()


async def test_read_when_cancelled_at_the_end_then_loses_nothing(under_test: LogUnderTest) -> None:
    """A read cancelled at the moment of an append takes no record away."""
    waiting = reading(under_test.log, 0, 0)
    await settled()
    await write(under_test.log, 0, b"a")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert values_of(await read_on(under_test.log, 0, 0)) == [(0, b"a")]


async def test_read_when_another_partition_is_silent_then_goes_on(under_test: LogUnderTest) -> None:
    """A read that waits on one partition does not delay reads of others."""
    silent = reading(under_test.log, 0, 0)
    await settled()
    await write(under_test.log, 1, b"a", b"b")
    await write(under_test.log, 2, b"c")
    assert await read_until(under_test.log, 1, 0, 2) == [(0, b"a"), (1, b"b")]
    assert await read_until(under_test.log, 2, 0, 1) == [(0, b"c")]
    assert not silent.done()
    await write(under_test.log, 0, b"d")
    assert await silent is not None


async def test_read_when_several_read_the_same_then_all_get_it(under_test: LogUnderTest) -> None:
    """Several readers of a partition each get every record."""
    waiting = [reading(under_test.log, 0, 0) for _ in range(5)]
    await settled()
    await write(under_test.log, 0, b"a")
    found = await asyncio.gather(*waiting)
    assert [values_of(each) for each in found if each is not None] == [[(0, b"a")]] * 5


async def test_read_when_beyond_the_end_then_tells_the_bounds(under_test: LogUnderTest) -> None:
    """A read beyond the end of the log fails with its bounds and does not wait."""
    await write(under_test.log, 0, b"a", b"b")
    with pytest.raises(LogTruncated) as caught:
        await under_test.log.read(0, 5, timeout_s=ANSWER_S)
    assert (caught.value.log_start, caught.value.next_offset) == (0, 2)


async def test_f66_read_when_the_head_is_gone_then_has_bounds(under_test: LogUnderTest) -> None:
    """A read below the log start offset is an error and never jumps silently."""
    values = [b"%d" % number for number in range(6)]
    await write(under_test.log, 0, *values)
    await under_test.delete_records(0, 4)
    with pytest.raises(LogTruncated) as caught:
        await under_test.log.read(0, 3, timeout_s=ANSWER_S)
    assert (caught.value.log_start, caught.value.next_offset) == (4, 6)
    assert await read_until(under_test.log, 0, 4, 6) == [(4, b"4"), (5, b"5")]


async def test_f28_read_when_the_log_begins_at_40_then_does_too(under_test: LogUnderTest) -> None:
    """A log that is empty at offset 40 is read from 40 on, and the read waits."""
    await write(under_test.log, 0, *(b"%d" % number for number in range(40)))
    await under_test.delete_records(0, 40)
    bounds = await under_test.log.bounds([0], timeout_s=ANSWER_S)
    assert bounds == {0: LogBounds(40, 40)}
    waiting = reading(under_test.log, 0, 40)
    await settled()
    assert not waiting.done()
    await write(under_test.log, 0, b"next")
    assert values_of(await waiting) == [(40, b"next")]
