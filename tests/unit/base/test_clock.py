"""The time of the event loop that the service runs on."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import suspend_aware_loop

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="a clock of Linux")
def test_timer_when_the_machine_was_suspended_then_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that a machine was suspended counts for the timers of the service."""
    suspended_s = 0.0
    real: Callable[[int], float] = time.clock_gettime

    def clock(which: int) -> float:
        return real(which) + (suspended_s if which == time.CLOCK_BOOTTIME else 0.0)

    monkeypatch.setattr(time, "clock_gettime", clock)

    async def has_rung() -> bool:
        nonlocal suspended_s
        timer = asyncio.create_task(asyncio.sleep(3_600))
        await asyncio.sleep(0)
        suspended_s = 7_200.0
        for _ in range(3):
            await asyncio.sleep(0)
        return timer.done()

    with asyncio.Runner(loop_factory=suspend_aware_loop) as runner:
        assert runner.run(has_rung())
