"""Look-ups too large for one frame: the client splits them for its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import InvalidArgument
from tests.support.builders import finished, segment_id, started, tp

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService

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
