"""The clock of tests that wait for timers alone."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tests.support.virtual_time import VirtualTimeLoop


def test_deadline_while_a_thread_is_at_work_then_leaps_when_it_is_done() -> None:
    """A deadline does not pass before work that takes milliseconds, however short it is."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:

        async def story() -> str:
            working = asyncio.to_thread(sum, range(3_000_000))
            return f"{await asyncio.wait_for(working, timeout=0.001)}"

        assert runner.run(story()) == "4499998500000"


def test_deadline_while_a_thread_waits_for_something_then_leaps() -> None:
    """A thread that hangs holds no deadline up."""
    gate = threading.Event()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:

        async def story() -> float:
            waiting = asyncio.to_thread(gate.wait)
            try:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(waiting, timeout=3600)
                return asyncio.get_running_loop().time()
            finally:
                gate.set()

        began_s = time.monotonic()
        assert runner.run(story()) == pytest.approx(3600)
        assert time.monotonic() - began_s < 60
