"""An event loop in a thread of its own, and its end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_adapter.own_loop import OwnLoop
from rlmm.errors import InvalidArgument, Stopped

DEADLINE_S = 30.0


class Living:
    """Something on the loop, whose calls need a while to hear that it is over."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self.waiting = threading.Semaphore(0)

    async def call(self, turns: int) -> str:
        """Return so many turns of the loop after the end."""
        self.waiting.release()
        await self._over.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        return "its own outcome"

    async def close(self) -> None:
        """It is over."""
        self._over.set()


def test_calls_when_closed_meanwhile_then_end_with_their_own_outcome() -> None:
    """The loop goes on until every call has ended: nobody's outcome is lost on the way."""
    own = OwnLoop("living", Living)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(lambda: own.wait(own.living.call(50))) for _ in range(4)]
        for _ in calls:
            assert own.living.waiting.acquire(timeout=DEADLINE_S)
        own.close()
        assert [call.result(DEADLINE_S) for call in calls] == ["its own outcome"] * 4


def test_calls_when_made_while_it_is_being_closed_then_answered_or_refused() -> None:
    """No call is accepted that nobody would carry out: each ends, one way or the other."""
    for _ in range(20):
        own = OwnLoop("living", Living)
        with ThreadPoolExecutor(4) as pool:

            def ask(own: OwnLoop[Living] = own) -> None:
                for _ in range(1_000):
                    own.call(lambda: None)

            asking = [pool.submit(ask) for _ in range(4)]
            own.close()
            for call in asking:
                assert isinstance(call.exception(DEADLINE_S), Stopped | None)


def test_close_when_called_from_within_then_refused() -> None:
    """A thread cannot wait for its own end."""
    own = OwnLoop("living", Living)
    with pytest.raises(InvalidArgument):
        own.call(own.close)
    own.close()
    assert "living" not in {thread.name for thread in threading.enumerate()}
