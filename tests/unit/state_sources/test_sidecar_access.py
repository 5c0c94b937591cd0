"""From the flags of a service to its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker_adapter.address import TcpAddress, UnixAddress
from rlmm.errors import ConfigError
from rlmm.state_sources.settings import SourceSettings
from rlmm.state_sources.sidecar_source import address_of, token_of

if TYPE_CHECKING:
    from pathlib import Path


def settings(sidecar: str, **said: Any) -> SourceSettings:
    return SourceSettings(sidecar=sidecar, **said)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rlmm-data/rlmm.sock", UnixAddress("rlmm-data/rlmm.sock")),
        ("/run/rlmm.sock", UnixAddress("/run/rlmm.sock")),
        ("unix:rlmm.sock", UnixAddress("rlmm.sock")),
        ("unix:/a:1", UnixAddress("/a:1")),
        ("localhost:9", TcpAddress("localhost", 9)),
        ("10.0.0.1:65535", TcpAddress("10.0.0.1", 65_535)),
        ("[::1]:9", TcpAddress("::1", 9)),
    ],
)
def test_address_when_named_then_is_that_of_a_socket_or_a_port(text: str, expected: object) -> None:
    """A text with a slash or behind `unix:` is a socket, and any other is a host and port."""
    assert address_of(settings(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "rlmm.sock",
        "host",
        "host:",
        ":9",
        "host:0",
        "host:65536",
        "::1:9",
        "h:\u0661",
        "h:" + 5_000 * "9",
    ],
)
def test_address_when_it_is_none_then_refused_by_what_it_may_be(text: str) -> None:
    """The error for a wrong address names the possible forms, and no service is asked."""
    with pytest.raises(ConfigError, match="--sidecar is HOST:PORT, or the path of a socket"):
        address_of(settings(text))


def test_tls_when_asked_for_then_is_of_a_port_alone(tmp_path: Path) -> None:
    """A file of it asks for it, too; one that cannot be used is named."""
    found = address_of(settings("localhost:9", is_tls=True))
    assert isinstance(found, TcpAddress)
    assert found.tls is not None
    with pytest.raises(ConfigError, match="TLS is for HOST:PORT"):
        address_of(settings("/run/rlmm.sock", is_tls=True))
    absent = tmp_path / "absent.pem"
    with pytest.raises(ConfigError, match=f"TLS cannot be set up with {absent}: "):
        address_of(settings("localhost:9", ca_file=absent))


def test_token_when_no_file_is_named_then_is_none(tmp_path: Path) -> None:
    """White space around it is none of it."""
    assert token_of(settings("localhost:9")) is None
    path = tmp_path / "token"
    path.write_text("\n secret-0123456789 \n")
    assert token_of(settings("localhost:9", token_file=path)) == "secret-0123456789"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot be read: it is not ASCII"):
        token_of(settings("localhost:9", token_file=path))
