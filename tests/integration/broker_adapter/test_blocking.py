"""Blocking clients, and the end of a client."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme

from broker_adapter.address import TcpAddress, UnixAddress
from broker_adapter.blocking import BlockingRemoteLogMetadataClient, BlockingVerbs
from broker_adapter.client import RemoteLogMetadataClient
from broker_adapter.settings import ClientSettings
from broker_adapter.stand_in import StandInService
from rlmm.base.backoff import Pauses
from rlmm.errors import AppendUncertain, InvalidArgument, SidecarUnavailable, Stopped
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import until
from tests.support.server.fake_service import FakeService

if TYPE_CHECKING:
    from collections.abc import Iterator


TP = tp()
DEADLINE_S = 30.0


class ServiceThread:
    """A fake service on a loop and thread of its own, like one in another process."""

    def __init__(self, folder: str) -> None:
        self.service = FakeService(Path(folder) / "s")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.service.begin(), self._loop).result(DEADLINE_S)

    def close(self) -> None:
        async def end() -> None:
            await self.service.end()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def serving() -> Iterator[FakeService]:
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        thread = ServiceThread(folder)
        try:
            yield thread.service
        finally:
            thread.close()


def test_client_when_used_from_many_threads_at_once_then_all_over_one_connection() -> None:
    """Sixteen threads write and read over one connection, and each gets its own answers."""
    with (
        serving() as service,
        BlockingRemoteLogMetadataClient(service.address) as client,
        ThreadPoolExecutor(16) as pool,
    ):

        def work(number: int) -> bool:
            label = f"s{number}"
            client.add_segment(started(label, number * 10, number * 10 + 9))
            client.update_segment(finished(label))
            found = client.segment_for(TP, 0, number * 10 + 5)
            return found is not None and found.id == segment_id(label)

        assert all(pool.map(work, range(100)))
        assert len(list(client.list_segments(TP))) == 100
        assert len(service.connections) == 1


def test_close_then_no_thread_is_left_and_calls_are_refused() -> None:
    """The thread of the client is over when `close` returns, whatever its state."""
    before = set(threading.enumerate())
    with tempfile.TemporaryDirectory(prefix="rlmm-") as folder:
        nobody = BlockingRemoteLogMetadataClient(UnixAddress(Path(folder) / "nobody"))
        assert set(threading.enumerate()) - before
        nobody.close()
        nobody.close()
        assert set(threading.enumerate()) <= before
        with pytest.raises(Stopped):
            nobody.ping()


def test_threads_that_wait_when_the_client_is_closed_then_are_told_what_is_true() -> None:
    """A question gets `Stopped`, and an event that was sent gets `AppendUncertain`."""
    settings = ClientSettings(timeout_s=60.0)
    with serving() as service, ThreadPoolExecutor(2) as pool:
        service.silent = {"segment", "add_segment"}
        client = BlockingRemoteLogMetadataClient(service.address, settings=settings)
        asking = pool.submit(client.segment, segment_id("a"))
        writing = pool.submit(client.add_segment, started("a"))
        wanted = threading.Event()
        while len(service.held) < 2 and not wanted.wait(0.01):
            pass
        client.close()
        assert isinstance(asking.exception(DEADLINE_S), Stopped)
        assert isinstance(writing.exception(DEADLINE_S), AppendUncertain)


async def test_f55_call_when_made_on_an_event_loop_then_refused_at_once() -> None:
    """A blocking call on an event loop raises instead of blocking it."""
    service = StandInService()
    client = await asyncio.to_thread(BlockingVerbs, service.client)
    for call in (client.ping, client.statistics, lambda: client.segment_for(TP, 0, 0)):
        with pytest.raises(InvalidArgument):
            call()
    await asyncio.to_thread(client.close)


def test_client_when_it_cannot_be_made_then_raises_and_leaves_no_thread() -> None:
    """A wrong option raises where the client is made, and leaves no thread."""
    before = set(threading.enumerate())
    with pytest.raises(InvalidArgument):
        BlockingRemoteLogMetadataClient(UnixAddress("s"), broker_id=-1)
    assert set(threading.enumerate()) <= before


async def test_client_over_tls_then_trusts_only_its_own_authority(tmp_path: Path) -> None:
    """A client with the right authority is answered, and one with another authority never is."""
    ours, theirs = trustme.CA(), trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue_cert("localhost").configure_cert(served)
    service = FakeService(tmp_path / "unused", served)
    await service.begin(over_tcp=True)
    port = service.tcp.port
    settings = ClientSettings(timeout_s=10.0, reconnect=Pauses(0.01, 0.05))
    for authority, is_trusted in ((ours, True), (theirs, False)):
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        address = TcpAddress("127.0.0.1", port, trust, "localhost")
        async with RemoteLogMetadataClient(address, token="t", settings=settings) as client:
            if is_trusted:
                await client.ping()
                assert client.server is not None
                assert client.server.server == "fake"
            else:
                said = ""
                async with asyncio.timeout(DEADLINE_S):
                    while "certificate" not in said:
                        with pytest.raises(SidecarUnavailable) as caught:
                            await client.ping(timeout_s=0.3)
                        said = str(caught.value)
    await service.end()


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
