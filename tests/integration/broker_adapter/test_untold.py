"""The errors of a client whose answer does not come."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from rlmm.errors import LogUnavailable, NotReady, PartFailed, SidecarUnavailable
from tests.support.builders import segment_id, started

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService

SOON = 0.2


def client_of(service: FakeService) -> Any:
    return RemoteLogMetadataClient(service.address, settings=ClientSettings(timeout_s=20.0))


async def test_question_when_the_last_attempt_is_not_answered_then_told_what_was_said_before(
    service: FakeService,
) -> None:
    """A service that said not ready before it fell silent is not ready, not unavailable."""
    async with client_of(service) as client:
        await client.ping()
        service.refusals["segment"] = deque([NotReady("x", retry_after_ms=1)])
        service.silent = {"segment"}
        with pytest.raises(NotReady):
            await client.segment(segment_id("a"), timeout_s=3.0)
        with pytest.raises(SidecarUnavailable):
            await client.segment(segment_id("a"), timeout_s=SOON)


async def test_question_when_the_log_was_away_then_error_names_it(service: FakeService) -> None:
    """The error names the last refusal, a log that was away, and not only the silence."""
    async with client_of(service) as client:
        await client.ping()
        service.refusals["segment"] = deque([LogUnavailable("no leader")])
        service.silent = {"segment"}
        with pytest.raises(LogUnavailable, match="no leader"):
            await client.segment(segment_id("a"), timeout_s=1.0)


@pytest.mark.parametrize("is_stored", [True, False])
async def test_event_when_the_service_meets_a_fault_of_its_own_then_looked_for(
    service: FakeService, is_stored: bool
) -> None:
    """An event is stored once, whether the service failed before or after it stored it."""
    async with client_of(service) as client:
        if is_stored:
            await client.add_segment(started("a"))
        service.refusals["add_segment"] = deque([PartFailed("a fault")])
        answer = await client.add_segment(started("a"))
        assert (answer.offset, answer.verdict) == (0, "duplicate" if is_stored else "applied")
        assert await client.segment(segment_id("a")) == started("a")
