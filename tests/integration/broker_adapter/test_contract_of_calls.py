"""The contract of every client: refusals, many calls at once, statistics, the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import InvalidArgument, NotAssigned, Stopped
from rlmm.metadata.ids import Uuid
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import until
from tests.support.server.metadata_clients import copied, done, figures_of, led

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService
    from tests.support.server.metadata_clients import Cluster


TP, OTHER = tp(), tp("others", 1, Uuid.of(7, 7))

WRONG: dict[str, Any] = {
    "epoch below 0": lambda client: client.segment_for(TP, -1, 0),
    "offset below 0": lambda client: client.segment_for(TP, 0, -1),
    "offset of a txn index below 0": lambda client: client.next_segment_with_txn_index(TP, 0, -1),
    "epoch too large": lambda client: client.highest_offset(TP, 2**31),
    "epoch of another kind": lambda client: client.remote_log_size(TP, "0"),
    "page of none": lambda client: client.page(TP, limit=0),
    "page behind nothing": lambda client: client.page(TP, after=b"somewhere"),
    "no time": lambda client: client.segment_for(TP, 0, 0, timeout_s=0),
    "less than no time": lambda client: client.segment_for(TP, 0, 0, timeout_s=-1.0),
    "time without end": lambda client: client.ping(timeout_s=float("inf")),
}


@pytest.mark.parametrize("ask", WRONG.values(), ids=WRONG)
async def test_question_when_malformed_then_invalid_argument(cluster: Cluster, ask: Any) -> None:
    """A question with a wrong argument is refused, whichever client asks it."""
    client = await led(cluster)
    with pytest.raises(InvalidArgument):
        await ask(client)


async def test_questions_when_many_are_asked_then_all_are_answered(cluster: Cluster) -> None:
    """Many calls of tasks or threads are under way, and each gets its own answer."""
    client = await led(cluster)
    for number in range(20):
        await copied(client, f"s{number}", number * 10, number * 10 + 9)
    found = await asyncio.gather(*(client.segment_for(TP, 0, offset) for offset in range(200)))
    assert [one.start_offset for one in found] == [offset // 10 * 10 for offset in range(200)]


async def test_client_when_closed_then_refuses_and_can_be_closed_again(cluster: Cluster) -> None:
    """A closed client refuses every later call at once, and a second close is harmless."""
    client = await led(cluster)
    await client.wait_ready(TP)
    await client.close()
    await client.close()
    for question in (client.segment_for(TP, 0, 0), client.add_segment(started("a"))):
        with pytest.raises(Stopped):
            await question


async def test_call_when_the_client_is_closed_then_ends_with_stopped(cluster: Cluster) -> None:
    """The end of a client ends its waiting calls."""
    client = await cluster.client(1, ClientSettings(timeout_s=60.0))
    waiting = asyncio.ensure_future(client.segment_for(TP, 0, 0))
    await until(lambda: figures_of(client).waiting > 0)
    await client.close()
    with pytest.raises(Stopped):
        async with asyncio.timeout(10):
            await waiting


async def test_statistics_then_count_calls_by_method_and_outcome(cluster: Cluster) -> None:
    """The statistics count each call by its method and outcome."""
    client = await led(cluster)
    await client.add_segment(started("a"))
    for _ in range(3):
        await client.segment(segment_id("a"))
    await client.wait_ready(TP)
    with pytest.raises(NotAssigned):
        await client.segment_for(OTHER, 0, 0)
    statistics = await done(client.statistics())
    assert (statistics.calls["segment"], statistics.calls["add_segment"]) == ({"ok": 3}, {"ok": 1})
    assert statistics.calls["segment_for"] == {"not-assigned": 1}
    assert (statistics.calls["wait_ready"], statistics.waiting) == ({"ok": 1}, 0)
    assert statistics.is_connected
    assert statistics.is_assignment_told
    assert await client.ping() is None
    assert isinstance(await client.status(), dict)


LONG = tp("t" * 200)
"""Some three hundred look-ups of it fill a frame of the service."""


async def test_look_ups_when_a_frame_has_no_room_then_asked_in_pieces(service: FakeService) -> None:
    """The client splits questions that are too large, or whose answers are, in order."""
    async with RemoteLogMetadataClient(service.address) as client:
        await client.add_segment(started(segment_id("a", LONG), 0, 999))
        await client.update_segment(finished(segment_id("a", LONG)))
        asked = [(LONG, 0, offset) for offset in range(1_001)]
        too_large = InvalidArgument("the look-ups have no room in one answer, ask for fewer")
        service.refusals["segments_for"] = type(service.greetings)([too_large])
        found = await client.segments_for(asked)
    assert [answer is None for answer in found] == [False] * 1_000 + [True]
    (served,) = service.connections
    sizes = [len(args[0]) for method, args in served.asked if method == "segments_for"]
    assert sum(sizes[1:]) == len(asked)
    assert sizes[1] == sizes[0] // 2


@pytest.mark.parametrize("epoch", [True, "0", None], ids=repr)
async def test_look_up_when_malformed_then_refused_too(service: FakeService, epoch: Any) -> None:
    """A wrong look-up in a large batch is refused as it is on its own."""
    async with RemoteLogMetadataClient(service.address) as client:
        with pytest.raises(InvalidArgument):
            await client.segments_for([*[(LONG, 0, 5)] * 9, (LONG, epoch, 5)])
