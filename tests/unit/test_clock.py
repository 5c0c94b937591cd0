"""The machine's clock as the logs see it."""

from __future__ import annotations

import asyncio
import time

import pytest

from rlmm.base.clock import SYSTEM_CLOCK


def test_now_when_asked_then_is_the_time_of_day_in_milliseconds() -> None:
    """The clock gives milliseconds since 1970, as Kafka stamps records."""
    before = time.time()
    now_ms = SYSTEM_CLOCK.now_ms()
    assert before * 1_000 - 1 <= now_ms <= time.time() * 1_000 + 1


async def test_timeout_when_it_has_passed_then_the_wait_ends() -> None:
    """A deadline ends every wait."""
    with pytest.raises(TimeoutError):
        async with SYSTEM_CLOCK.timeout(0):
            await asyncio.get_running_loop().create_future()
