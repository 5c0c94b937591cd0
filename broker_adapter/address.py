"""Addresses of a service: how they are dialled, and the files of TLS and tokens."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rlmm.base.loopback import is_loopback
from rlmm.base.private_files import require_private
from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError
from rlmm.wire.hello import TOKEN_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket of this machine; whatever user may open its file may call."""

    path: Path | str
    plaintext_token: ClassVar[bool] = True

    async def dial(self, make: Callable[[], P]) -> P:
        _, protocol = await asyncio.get_running_loop().create_unix_connection(make, str(self.path))
        return protocol

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and port; *tls* encrypts, and holds trusted authorities and own certificate."""

    host: str
    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    server_hostname: str | None = None
    """The name in the service's certificate, where that is not *host*."""
    plaintext_token: bool = False
    """Whether a token is sent without *tls* to another machine, where all between can read it."""

    async def dial(self, make: Callable[[], P]) -> P:
        name = None if self.tls is None else self.server_hostname or self.host
        *others, last = await _addresses_of(self.host, self.port)
        for address in others:
            with suppress(OSError):
                return await self._dial(make, address, name)
        return await self._dial(make, last, name)

    async def _dial(self, make: Callable[[], P], address: str, name: str | None) -> P:
        _, protocol = await asyncio.get_running_loop().create_connection(
            make, address, self.port, ssl=self.tls, server_hostname=name
        )
        return protocol

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Address = UnixAddress | TcpAddress


def require_unread(address: Address, transport: asyncio.BaseTransport) -> None:
    """Refuse, by a `ConfigError`, to show a token where others could read it on its way."""
    peer = transport.get_extra_info("peername")
    is_encrypted = transport.get_extra_info("ssl_object") is not None
    if address.plaintext_token or is_encrypted or is_loopback(peer):
        return
    msg = (
        f"the token is not sent to {address}, which is another machine, without TLS: all between "
        "could read it. Turn TLS on, or allow a plaintext token where the network is encrypted"
    )
    raise ConfigError(msg)


def tls_context(
    ca_file: Path | str | None, certificate_file: Path | str | None, key_file: Path | str | None
) -> ssl.SSLContext:
    """
    Return TLS with these files; without *ca_file* it trusts the system.

    Raises `ConfigError`, also where every user of the machine may read the key.
    """
    if certificate_file:
        require_private(Path(key_file or certificate_file), "the key in", gives_rights=False)
    try:
        context = ssl.create_default_context(cafile=ca_file or None)
        if certificate_file:
            context.load_cert_chain(certificate_file, key_file or None, _no_password)
    except (OSError, ValueError) as error:
        files = map(str, filter(None, (ca_file, certificate_file, key_file)))
        msg = f"TLS cannot be set up with {', '.join(files) or 'what the system has'}: {error}"
        raise ConfigError(msg) from error
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted, and its password cannot be asked for here")


def token_in(path: Path | str | None) -> str | None:
    """Read the token in a private file; no message repeats it. Raises `ConfigError`."""
    if not path:
        return None
    require_private(Path(path), "the token in", gives_rights=False)
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


async def _addresses_of(host: str, port: int) -> list[str]:
    """Return at least one address of *host*; a hanging resolver never holds up a closing client."""
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await in_own_thread(f"broker_adapter: looking for {host}", ask, grace_s=0)
    return list(dict.fromkeys(str(at[0]) for *_, at in found))
