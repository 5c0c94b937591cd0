"""The end of a client on an event loop: what it leaves, and what it says of what was sent."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import AppendUncertain
from tests.support.builders import started
from tests.support.engines import until
from tests.support.fake_service import FakeService, faking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def service() -> AsyncIterator[FakeService]:
    """A service that listens at a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        async with faking(Path(folder) / "s") as made:
            yield made


async def test_close_when_an_event_was_sent_then_it_is_uncertain(service: FakeService) -> None:
    """Who hangs up does not know what became of what he sent, and says so."""
    client = RemoteLogMetadataClient(service.address)
    service.silent = {"add_segment"}
    writing = asyncio.ensure_future(client.add_segment(started("a")))
    await until(lambda: service.held != [], 10)
    await client.close()
    with pytest.raises(AppendUncertain):
        await writing


async def test_close_then_no_task_is_left(service: FakeService) -> None:
    """What was begun for a client ends with it, in whatever state it is."""
    before = asyncio.all_tasks()
    for is_there in (True, False):
        client = RemoteLogMetadataClient(service.address, broker_id=1)
        if is_there:
            await client.ping()
        await client.close()
        serving = {task for task in asyncio.all_tasks() if "_serve" in repr(task.get_coro())}
        assert asyncio.all_tasks() - serving <= before
