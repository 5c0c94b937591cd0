"""Peer credentials of a TCP connection: the address, and the names of the client's certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.access.roles import Peer
from rlmm.access.tls import names_of
from rlmm.base.loopback import is_loopback

if TYPE_CHECKING:
    import asyncio


def tcp_peer(transport: asyncio.BaseTransport) -> Peer:
    """Return the peer: the names of its certificate, and whether others can read the connection."""
    certificate = transport.get_extra_info("peercert")
    encrypted = transport.get_extra_info("ssl_object") is not None
    is_private = encrypted or is_loopback(transport.get_extra_info("peername"))
    return Peer(
        "tcp",
        client_names=names_of(certificate or {}),
        is_private=is_private,
        address=address_of(transport),
    )


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of a TCP connection, without its port; empty for the Unix socket."""
    address = transport.get_extra_info("peername")
    return str(address[0]) if isinstance(address, tuple) else ""
