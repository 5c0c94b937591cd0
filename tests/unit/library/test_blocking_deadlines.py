"""Deadlines of calls for threads where the event loop does not turn."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

from rlmm.base import loop_call, loop_thread
from rlmm.engine.engine import EngineSettings
from rlmm.errors import AppendUncertain, InvalidArgument, Stopped
from rlmm.metadata.partitioner import metadata_partition_for
from tests.support.builders import started, tp
from tests.support.engines import ROOM, LibraryTopic, until
from tests.support.forks import in_a_child

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from rlmm.library.blocking import BlockingMetadata
    from rlmm.library.remote_log_metadata import RemoteLogMetadata

T = TypeVar("T")
TP = tp()
PLACE = metadata_partition_for(TP.topic_id, TP.partition, 3)
SHORT_S = 0.05
TEST_S = 60.0
"""Longest time that a test waits for what surely comes."""


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_call, "GRACE_S", SHORT_S)
    monkeypatch.setattr(loop_call, "_LOOK_S", SHORT_S)
    monkeypatch.setattr(loop_thread, "LIMIT_S", SHORT_S)


class StoppingLoop:
    """A library on a loop that turns only while the test lets it."""

    def __init__(self) -> None:
        self.topic = LibraryTopic(EngineSettings(memory=ROOM))
        self.loop = asyncio.new_event_loop()
        self._opened = AsyncExitStack()
        self.metadata: RemoteLogMetadata = self.turn(self._open())

    async def _open(self) -> RemoteLogMetadata:
        metadata = await self._opened.enter_async_context(self.topic.opened())
        await metadata.wait_ready(TP, timeout_s=TEST_S)
        return metadata

    def turn(self, work: Coroutine[object, object, T]) -> T:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        self.turn(self._opened.aclose())
        self.loop.close()


@pytest.fixture
def stopping() -> Iterator[StoppingLoop]:
    made = StoppingLoop()
    yield made
    made.close()


@contextmanager
def in_a_thread(call: Callable[[], object]) -> Iterator[Callable[[], object]]:
    """Begin *call* in a thread; give a function that returns or raises its outcome."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(call)
        yield lambda: asked.result(TEST_S)


def test_call_when_the_loop_was_stopped_then_ends_and_is_never_begun(
    stopping: StoppingLoop,
) -> None:
    """A read and a write end with `Stopped`, and the write is not stored when the loop goes on."""
    blocking = stopping.metadata.blocking
    calls: list[Callable[[], object]] = [
        lambda: blocking.wait_ready(TP, timeout_s=SHORT_S),
        lambda: blocking.add_segment(started("a"), timeout_s=SHORT_S),
        lambda: blocking.segments(TP, timeout_s=SHORT_S),
        blocking.assigned,
    ]
    for call in calls:
        with (
            in_a_thread(call) as outcome,
            pytest.raises(Stopped, match=r"is stopped while a thread .* was not begun"),
        ):
            outcome()
    stopping.turn(asyncio.sleep(0))
    assert stopping.topic.memory.partitions[PLACE].next_offset == 0


class LeapingClock:
    """A clock that is ahead by *leap_s* more at each look."""

    leap_s = ahead_s = 0.0

    def monotonic(self) -> float:
        self.ahead_s += self.leap_s
        return time.monotonic() + self.ahead_s


def test_call_when_the_loop_stops_behind_its_begin_then_ends_by_what_may_be(
    stopping: StoppingLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that was begun is uncertain, and a read is `Stopped`."""
    blocking, metadata = stopping.metadata.blocking, stopping.metadata
    clock = LeapingClock()
    monkeypatch.setattr(loop_call, "time", clock)
    stopping.topic.script.hold_appends(PLACE)
    write = in_a_thread(lambda: blocking.add_segment(started("a"), timeout_s=TEST_S))
    read = in_a_thread(lambda: blocking.segments(TP, at_least={PLACE: 5}, timeout_s=TEST_S))

    async def begun() -> None:
        await until(lambda: metadata.statistics().writes.pending == 1)
        await until(lambda: metadata.statistics().barrier.waiting == 1)

    with write as written, read as answered:
        stopping.turn(begun())
        clock.leap_s = 2 * TEST_S
        with pytest.raises(AppendUncertain, match=r"is stopped while a thread .* was begun"):
            written()
        with pytest.raises(Stopped, match=r"is stopped while a thread .* was begun"):
            answered()
    stopping.topic.script.release_appends(PLACE)


def test_call_when_the_loop_runs_and_does_not_turn_then_ends(stopping: StoppingLoop) -> None:
    """A loop that a callback of its program blocks keeps no thread beyond its deadline."""
    blocking = stopping.metadata.blocking
    hangs, may_go_on = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        may_go_on.wait(TEST_S)

    def ask() -> None:
        assert hangs.wait(TEST_S)
        try:
            blocking.wait_ready(TP, timeout_s=SHORT_S)
        finally:
            may_go_on.set()

    with in_a_thread(ask) as outcome:
        stopping.loop.call_soon(hang)
        stopping.turn(asyncio.sleep(0))
        with pytest.raises(Stopped, match=r"has not turned for .* was not begun"):
            outcome()


def test_call_when_made_by_a_fork_then_is_refused(stopping: StoppingLoop) -> None:
    """A process that was forked off has no such loop, and each of its calls is refused by name."""
    calls: list[Callable[[BlockingMetadata], object]] = [
        lambda it: it.wait_ready(TP, timeout_s=SHORT_S),
        lambda it: it.add_segment(started("a")),
        lambda it: it.assigned(),
    ]

    def ask() -> str:
        refusals = []
        for call in calls:
            try:
                call(stopping.metadata.blocking)
            except InvalidArgument as error:
                refusals.append(str(error))
        return "\n".join(refusals)

    lines = in_a_child(ask).splitlines()
    assert len(lines) == len(calls)
    assert all(line.startswith(f"made by the process {os.getpid()}") for line in lines)
