"""The end of a client on an event loop: its remains, and the outcome of events under way."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from broker_adapter.address import TcpAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient
from broker_adapter.client import RemoteLogMetadataClient
from rlmm.errors import AppendUncertain, SidecarUnavailable
from tests.support.builders import started
from tests.support.engines import until

if TYPE_CHECKING:
    from tests.support.server.fake_service import FakeService


async def test_close_when_an_event_was_sent_then_it_is_uncertain(service: FakeService) -> None:
    """The caller of an event under way gets an uncertain outcome."""
    client = RemoteLogMetadataClient(service.address)
    service.silent = {"add_segment"}
    writing = asyncio.ensure_future(client.add_segment(started("a")))
    await until(lambda: service.held != [], 10)
    await client.close()
    with pytest.raises(AppendUncertain):
        await writing


async def test_close_then_no_task_is_left(service: FakeService) -> None:
    """The close ends every task of the client, whatever its state."""
    before = asyncio.all_tasks()
    for is_there in (True, False):
        client = RemoteLogMetadataClient(service.address, broker_id=1)
        if is_there:
            await client.ping()
        await client.close()
        serving = {task for task in asyncio.all_tasks() if "_serve" in repr(task.get_coro())}
        assert asyncio.all_tasks() - serving <= before


async def test_close_when_a_name_is_unknown_then_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging resolver delays neither a call nor the close."""
    answers = threading.Event()

    def found(*_: object, **__: object) -> None:
        answers.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "not found")

    monkeypatch.setattr(socket, "getaddrinfo", found)
    client = BlockingRemoteLogMetadataClient(TcpAddress("nowhere", 1))
    try:
        with pytest.raises(SidecarUnavailable):
            await asyncio.to_thread(client.ping, timeout_s=0.05)
        closing = asyncio.ensure_future(asyncio.to_thread(client.close))
        done, _ = await asyncio.wait([closing], timeout=10)
        assert done
    finally:
        answers.set()
    await until(lambda: not any("nowhere" in one.name for one in threading.enumerate()), 10)


async def test_dial_when_a_name_has_several_addresses_then_the_first_that_answers(
    monkeypatch: pytest.MonkeyPatch, service: FakeService
) -> None:
    """The client finds the address at which the service listens, whatever its position."""
    await service.end()
    await service.begin(over_tcp=True)
    port = service.tcp.port
    known = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (9, 1)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: known)
    async with RemoteLogMetadataClient(TcpAddress("somewhere", port)) as client:
        await client.ping()
