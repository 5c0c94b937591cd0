"""Reaching a service: a fast answer when it is absent, and patience while it starts."""

from __future__ import annotations

import asyncio
import errno
import socket
import socketserver
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import ConfigError, ProtocolError, SidecarUnavailable
from spark_tiering.tier_metadata import reachability
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.reachability import require_reached
from spark_tiering.tier_metadata.settings import SidecarAccess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")


class Address:
    def __init__(self, *errors: Exception | None) -> None:
        self._errors = list(errors)
        self.attempts = 0
        self.transport = ClosableTransport()

    async def dial(self, make: Callable[[], Any]) -> Any:
        self.attempts += 1
        error = self._errors.pop(0) if len(self._errors) > 1 else self._errors[0]
        if error is not None:
            raise error
        made = make()
        made.connection_made(self.transport)
        return made

    def __str__(self) -> str:
        return "somewhere:7404"


class Silent(Address):
    async def dial(self, make: Callable[[], Any]) -> Any:
        self.attempts += 1
        if self.attempts == 1 and self._errors[0] is not None:
            raise self._errors[0]
        await asyncio.Event().wait()


class ClosableTransport(asyncio.BaseTransport):
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_service_when_it_is_there_then_its_connection_is_closed_again() -> None:
    """A service that answers takes one attempt, and its connection is closed."""
    address = Address(None)
    require_reached(address)
    assert address.attempts == 1
    assert address.transport.is_closed


def test_service_when_just_starting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is starting, which refuses for some seconds, is waited for."""
    monkeypatch.setattr(reachability, "_PAUSE_S", 0.0)
    address = Address(REFUSED, REFUSED, None)
    require_reached(address)
    assert address.attempts == 3


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (REFUSED, "Connection refused"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not kn"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate verify failed"),
        (OSError("AF_UNIX path too long"), "AF_UNIX path too long"),
    ],
    ids=["refused", "no-socket", "no-host", "not-trusted", "too-long"],
)
def test_service_when_it_takes_no_connection_is_one_line(error: OSError, says: str) -> None:
    """A service that accepts no connection gives one line with error and address."""
    with pytest.raises(SidecarUnavailable) as raised:
        require_reached(Address(error), patience_s=0.0)
    text = str(raised.value)
    assert text.startswith("the service at somewhere:7404 was not reached: ")
    assert says in text
    assert "\n" not in text


def test_service_when_nothing_is_heard_then_is_given_up() -> None:
    """An address that drops packets fails after the connection timeout."""
    with pytest.raises(SidecarUnavailable, match=r"no answer in 0\.01 s"):
        require_reached(Silent(None), connect_s=0.01)


def test_service_when_silent_tells_its_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the service falls silent, the error is its last refusal rather than the timeout."""
    monkeypatch.setattr(reachability, "_PAUSE_S", 0.0)
    with pytest.raises(SidecarUnavailable, match="Connection refused"):
        require_reached(Silent(REFUSED), patience_s=0.05, connect_s=0.05)


def test_service_that_is_not_trusted_when_asked_then_is_asked_once() -> None:
    """An untrusted service is tried once."""
    address = Address(ssl.SSLCertVerificationError(1, "certificate verify failed"))
    with pytest.raises(SidecarUnavailable):
        require_reached(address)
    assert address.attempts == 1


def test_address_when_there_can_be_none_then_is_a_mistake_in_the_configuration() -> None:
    """An impossible address is a configuration mistake, found without waiting."""
    with pytest.raises(ConfigError, match="somewhere:7404 is no address"):
        require_reached(Address(OverflowError("port must be 0-65535")))


def test_mistyped_address_when_opened_then_is_told_long_before_the_time_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistyped address fails with one error long before the timeout."""
    monkeypatch.setattr("spark_tiering.tier_metadata.sidecar.PATIENCE_S", 0.0)
    access = SidecarAccess(str(tmp_path / "no-socket"), timeout_ms=10**9)
    with pytest.raises(SidecarUnavailable, match="No such file or directory"):
        open_metadata_access(access)
    assert not caplog.records


class SpeaksHttp(socketserver.BaseRequestHandler):
    """Answer any bytes as an HTTP server does."""

    def handle(self) -> None:
        if self.request.recv(4096):
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def test_address_of_http_when_opened_then_says_what_is_likely_wrong() -> None:
    """An HTTP port gives an error that names the service's other port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), SpeaksHttp) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            port = server.server_address[1]
            with pytest.raises(ProtocolError, match="is it the port for HTTP"):
                open_metadata_access(SidecarAccess(f"127.0.0.1:{port}", timeout_ms=5_000))
        finally:
            server.shutdown()
            serving.join()
