"""Access to a running service from the options of a command: address, TLS, token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_adapter.address import TcpAddress, UnixAddress, tls_context, token_in
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from broker_adapter.address import Address
    from rlmm.state_sources.settings import SourceSettings

_UNIX: Final = "unix:"
_PORT_MAX: Final = 2**16 - 1


def address_of(settings: SourceSettings) -> Address:
    """Return the address of the service. Raises `ConfigError`, naming the file or the flag."""
    text = settings.sidecar
    wants_tls = settings.is_tls or bool(settings.ca_file or settings.certificate_file)
    if text.startswith(_UNIX) or "/" in text:
        if wants_tls:
            msg = f"TLS is for HOST:PORT, and --sidecar is a socket of this machine: {text}"
            raise ConfigError(msg)
        return UnixAddress(text.removeprefix(_UNIX))
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not (host and colon and is_number and 0 < int(port) <= _PORT_MAX):
        msg = f"--sidecar is HOST:PORT, or the path of a socket with a slash in it, got {text!r}"
        raise ConfigError(msg)
    files = settings.ca_file, settings.certificate_file, settings.key_file
    return TcpAddress(host, int(port), tls_context(*files) if wants_tls else None)


def token_of(settings: SourceSettings) -> str | None:
    """Read the token from the named file; messages never show its content."""
    return token_in(settings.token_file)
