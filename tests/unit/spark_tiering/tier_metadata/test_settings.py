"""Settings of an access to the metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlmm.errors import ConfigError
from spark_tiering.tier_metadata.settings import EmbeddedAccess, SidecarAccess


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/run/rlmm/rlmm.sock", "/run/rlmm/rlmm.sock"),
        ("./rlmm.sock", "./rlmm.sock"),
        ("unix:rlmm.sock", "rlmm.sock"),
        ("unix:///run/rlmm.sock", "/run/rlmm.sock"),
    ],
)
def test_address_when_it_is_a_path_then_a_socket(address: str, path: str) -> None:
    """An address with a slash, or with the socket's prefix, is a Unix socket."""
    assert SidecarAccess(address).socket_path == path


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("host:7420", "host", 7420), ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:65535", "::1", 65535)],
)
def test_address_when_it_is_no_path_then_host_and_port(address: str, host: str, port: int) -> None:
    """An address without a slash is host and port, encrypted only where settings say so."""
    access = SidecarAccess(address)
    assert access.socket_path is None
    assert access.host_port == (host, port)
    assert not access.wants_tls
    assert SidecarAccess(address, is_tls=True).wants_tls
    assert SidecarAccess(address, ca_file="ca.pem").wants_tls
    assert SidecarAccess(address, certificate_file="own.pem", key_file="own.key").wants_tls


@pytest.mark.parametrize(
    "said",
    [
        {"address": ""},
        {"address": "host"},
        {"address": "host:"},
        {"address": ":7420"},
        {"address": "host:0"},
        {"address": "host:65536"},
        {"address": "host:٣"},
        {"address": "https://host:7420"},
        {"address": "/run/s", "ca_file": "ca.pem"},
        {"address": "host:1", "key_file": "own.key"},
        {"address": "host:1", "timeout_ms": 0},
    ],
)
def test_sidecar_when_it_cannot_be_meant_then_refused(said: dict[str, object]) -> None:
    """Impossible settings of a sidecar are refused in one line before any connection."""
    with pytest.raises(ConfigError) as caught:
        SidecarAccess(**said)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"folder": Path("f"), "bootstrap_servers": "b:1"},
        {"folder": Path("f"), "command_config": Path("c")},
        {"folder": Path("f"), "timeout_ms": -1},
    ],
)
def test_embedded_when_it_cannot_be_meant_then_refused(said: dict[str, object]) -> None:
    """Settings of an embedded log that name both or neither of folder and cluster are refused."""
    with pytest.raises(ConfigError):
        EmbeddedAccess(**said)  # type: ignore[arg-type]
