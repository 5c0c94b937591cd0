"""The waiting requests of one connection: their bytes and their deadlines."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ProtocolError, TooBusy
from rlmm.sidecar.dispatch import read_event
from rlmm.sidecar.settings import SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters
from rlmm.sidecar.waiting_requests import (
    KEPT_BYTES,
    KEPT_FACTOR,
    WaitingRequests,
    read,
)
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import read_request, request_frame
from rlmm.wire.options import read_read_options
from tests.support.builders import tp

if TYPE_CHECKING:
    from collections.abc import Generator

KEY = [bytes(tp("orders").topic_id), "o", 1]


class Ends:
    def __init__(self, figures: FrameServerCounters | None = None, **settings: Any) -> None:
        self.figures = figures or FrameServerCounters()
        self.told: list[int] = []
        self.waits = WaitingRequests(
            SidecarSettings(**settings), self.figures, lambda number, *_: self.told.append(number)
        )

    def begin(self, request_id: int, outcome: asyncio.Future[object], frame_bytes: int = 0) -> None:
        async def wait() -> object:
            return await outcome

        self.waits.begin(request_id, "segment_for", wait(), frame_bytes)


def future(value: object = None) -> asyncio.Future[object]:
    made: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    if value is not None:
        made.set_result(value)
    return made


def steps() -> Generator[None, None, object]:
    """Return a read that has waited, to be answered in its turn."""
    yield
    return "answer"


async def turns() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_read_when_its_wait_is_over_then_keeps_id_and_bytes_until_it_is_answered() -> None:
    """An ended read keeps its id and bytes in the count until it is answered."""
    ends = Ends(waiting_bytes_max=2 * KEPT_BYTES)
    ends.begin(7, future(steps()))
    await turns()
    assert (ends.told, ends.figures.waiting, ends.figures.waiting_bytes) == ([7], 0, KEPT_BYTES)
    with pytest.raises(ProtocolError, match="7 is under way"):
        ends.begin(7, future())
    ends.begin(8, future())
    with pytest.raises(TooBusy):
        ends.begin(9, future())
    for _ in ends.waits.released(7, steps()):
        pass
    ends.begin(7, future())
    assert ends.figures.waiting_bytes == 2 * KEPT_BYTES
    ends.waits.drop()
    await turns()
    assert (ends.figures.waiting, ends.figures.waiting_bytes) == (0, 0)


async def test_client_when_it_waits_with_half_of_all_memory_then_too_busy_and_others_may() -> None:
    """A client by name leaves half of the memory for waiting requests to others."""
    greedy = Ends(waiting_bytes_total_max=4 * KEPT_BYTES)
    modest = Ends(greedy.figures, waiting_bytes_total_max=4 * KEPT_BYTES)
    greedy.waits.client_name, modest.waits.client_name = "greedy", "modest"
    for request_id in (1, 2):
        greedy.begin(request_id, future())
    with pytest.raises(TooBusy, match="requests of greedy wait"):
        greedy.begin(3, future())
    modest.begin(1, future())
    greedy.waits.drop()
    modest.waits.drop()
    await turns()
    assert not greedy.figures.waiting_by_client


async def test_write_when_it_has_ended_then_keeps_nothing() -> None:
    """A write that was answered, refused or cancelled keeps no bytes."""
    ends = Ends()
    refused = future()
    ends.begin(1, future([0, 1, "applied"]), 10)
    ends.begin(2, refused, 10)
    ends.begin(3, future(), 10)
    assert ends.figures.waiting_bytes == 3 * (KEPT_BYTES + 10 * KEPT_FACTOR)
    refused.set_exception(TooBusy("no"))
    await turns()
    assert ends.figures.waiting_bytes == KEPT_BYTES + 10 * KEPT_FACTOR
    ends.waits.cancel()
    await turns()
    assert (sorted(ends.told), ends.figures.waiting_bytes) == ([1, 2, 3], 0)


def lookups(count: int) -> list[Any]:
    return [[[[bytes([number % 256]) * 16, "o", 1], 0, 5] for number in range(count)], {}]


def offsets(count: int) -> list[Any]:
    return [KEY, 0, 5, {"at_least": dict(zip(range(count), repeat(70_000), strict=False))}]


def epochs(count: int) -> list[Any]:
    lists = [[number, number + 1_000] for number in range(count)]
    last = count + 5_000
    lists[0][1] = 0
    return [KEY, [bytes(16), 0, last, 1, 0, 0, lists, 1, None, 0, False]]


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("segments_for", lookups(1_000)),
        ("segment_for", offsets(5_000)),
        ("add_segment", epochs(5_000)),
        ("segment_for", offsets(1)),
    ],
    ids=["look-ups", "offsets", "epochs", "smallest"],
)
async def test_request_while_it_waits_keeps_counted_memory(method: str, args: list[Any]) -> None:
    """A waiting request uses at most the counted memory, even for the smallest values."""
    payload = request_frame(1, method, args)[HEAD_BYTES:]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [kept_of(payload) for _ in range(5)]
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
    assert each <= KEPT_BYTES + KEPT_FACTOR * len(payload)
    for coroutine, _ in kept:
        coroutine.close()


def kept_of(payload: bytes) -> tuple[Any, Any]:
    _, method, args = read_request(payload)
    if method == "add_segment":
        return asyncio.sleep(0), read_event(method, args)
    options = read_read_options(args[-1])
    session: Any = None
    return read(session, method, args[:-1], options), options
