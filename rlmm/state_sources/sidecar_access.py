"""Access to a running service from the options of a command: address, TLS, token."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_adapter.address import TcpAddress, UnixAddress
from rlmm.errors import ConfigError
from rlmm.wire.hello import TOKEN_CHARS_MAX

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
    return TcpAddress(host, int(port), _trust(settings) if wants_tls else None)


def _trust(settings: SourceSettings) -> ssl.SSLContext:
    files = settings.ca_file, settings.certificate_file, settings.key_file
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate_file is not None:
            context.load_cert_chain(settings.certificate_file, settings.key_file, _no_password)
    except (OSError, ValueError) as error:
        named = ", ".join(str(file) for file in files if file is not None) or "what the system has"
        msg = f"TLS cannot be set up with {named}: {error}"
        raise ConfigError(msg) from error
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted, and nobody is there to be asked for its password")


def token_of(settings: SourceSettings) -> str | None:
    """Read the token from the named file; messages never show its content."""
    path = settings.token_file
    if path is None:
        return None
    try:
        with Path(path).open(encoding="ascii") as file:
            token = file.read(TOKEN_CHARS_MAX + 2).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        msg = f"the token in {path} cannot be read: {why}"
        raise ConfigError(msg) from error
    if not token or len(token) > TOKEN_CHARS_MAX or any(letter.isspace() for letter in token):
        msg = f"{path} does not hold one token of at most {TOKEN_CHARS_MAX} characters"
        raise ConfigError(msg)
    return token
