"""The contract of every log: its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import AppendUncertain, LogError, LogUnavailable
from rlmm.log.protocol import LogBounds, LogStatistics
from tests.conformance.log.under_test import ANSWER_S, read_until, settled

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from rlmm.log.protocol import MetadataLog
    from tests.conformance.log.under_test import LogUnderTest

CALLS: dict[str, Callable[[MetadataLog], Coroutine[Any, Any, object]]] = {
    "identity": lambda log: log.identity(timeout_s=ANSWER_S),
    "bounds": lambda log: log.bounds([0], timeout_s=ANSWER_S),
    "read": lambda log: log.read(0, 0, timeout_s=ANSWER_S),
    "append": lambda log: log.append(0, b"late", timeout_s=ANSWER_S),
}


async def test_close_when_reads_wait_then_they_end(under_test: LogUnderTest) -> None:
    """A close ends all waiting reads at once with an error."""
    waiting = [
        asyncio.create_task(under_test.log.read(partition, 0, timeout_s=ANSWER_S))
        for partition in (0, 0, 1)
    ]
    await settled()
    await under_test.log.close()
    for read in waiting:
        with pytest.raises(LogUnavailable, match="closed"):
            await read
    assert not under_test.reads_waiting()


async def test_close_when_appends_are_in_flight_then_each_ends(under_test: LogUnderTest) -> None:
    """An append acknowledged during a close is in the log afterwards, and a refused one is not."""
    values = [b"%d" % number for number in range(20)]
    appends = [
        asyncio.create_task(under_test.log.append(0, value, timeout_s=ANSWER_S)) for value in values
    ]
    await asyncio.sleep(0)
    await under_test.log.close()
    outcomes = await asyncio.gather(*appends, return_exceptions=True)
    log = await under_test.reopen()
    bounds = (await log.bounds([0], timeout_s=ANSWER_S))[0]
    assert isinstance(bounds, LogBounds)
    found = dict(await read_until(log, 0, 0, bounds.high_watermark))
    for value, outcome in zip(values, outcomes, strict=True):
        match outcome:
            case int():
                assert found[outcome] == value
            case AppendUncertain():
                assert list(found.values()).count(value) <= 1
            case LogError():
                assert value not in found.values()
            case _:
                raise AssertionError(outcome)


async def test_close_when_repeated_then_does_nothing(under_test: LogUnderTest) -> None:
    """A second close, also a concurrent one, does nothing."""
    await asyncio.gather(under_test.log.close(), under_test.log.close())
    await under_test.log.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_call_when_closed_then_is_refused(
    under_test: LogUnderTest, call: Callable[[MetadataLog], Coroutine[Any, Any, object]]
) -> None:
    """A closed log refuses every call and stores no append."""
    await under_test.log.close()
    with pytest.raises(LogUnavailable, match="closed"):
        await call(under_test.log)
    log = await under_test.reopen()
    assert await log.append(0, b"first", timeout_s=ANSWER_S) == 0


async def test_statistics_then_are_there_and_do_not_change(under_test: LogUnderTest) -> None:
    """Statistics never wait, and a value already returned does not change."""
    log = under_test.log
    first = log.statistics()
    said = repr(first)
    await log.append(0, b"event", timeout_s=ANSWER_S)
    await log.read(0, 0, timeout_s=ANSWER_S)
    now = log.statistics()
    assert type(now) is type(first)
    assert repr(first) == said
    await log.close()
    assert isinstance(log.statistics(), LogStatistics)
