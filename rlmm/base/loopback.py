"""Loopback addresses: whether the other end of a connection is this machine."""

from __future__ import annotations

import ipaddress


def is_loopback(address: object) -> bool:
    """Return whether a socket's *address* is one of IP within this machine; false for others."""
    if not isinstance(address, tuple):
        return False
    try:
        found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
