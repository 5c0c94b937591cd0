"""A call of one task that other tasks may end."""

from __future__ import annotations

import asyncio

import pytest

from rlmm.base.endable_call import EndableCall


async def test_call_when_ended_then_is_cancelled_and_has_no_result() -> None:
    """The caller goes on at once, and the call itself ends."""
    calls, was_cancelled = EndableCall(), asyncio.Event()

    async def endless() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.set()
            raise
        return 1

    waiting = asyncio.create_task(calls.result(endless()))
    await asyncio.sleep(0)
    calls.end()
    calls.end()
    assert await waiting is None
    assert was_cancelled.is_set()


async def test_call_when_none_is_under_way_then_nothing_ends() -> None:
    """An end between two calls does not end the next one."""
    calls = EndableCall()
    calls.end()
    assert await calls.result(asyncio.sleep(0, 7)) == 7
    calls.end()
    assert await calls.result(asyncio.sleep(0, 8)) == 8


async def test_call_when_it_fails_then_its_error_is_raised() -> None:
    """A deadline of the call itself is no end from outside."""

    async def late() -> None:
        raise TimeoutError("the broker")

    with pytest.raises(TimeoutError, match="the broker"):
        await EndableCall().result(late())


async def test_caller_when_cancelled_then_is_cancelled() -> None:
    """A task that waits for the call can be cancelled."""
    waiting = asyncio.create_task(EndableCall().result(asyncio.Event().wait()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
