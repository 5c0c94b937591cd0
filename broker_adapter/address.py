"""Addresses of a service, and how they are dialled: a Unix socket, or TCP with or without TLS."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.own_thread import OwnThread

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket of this machine; whatever user may open its file may call."""

    path: Path | str

    async def dial(self, make: Callable[[], P]) -> P:
        """Return a connection; raises `OSError`."""
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

    async def dial(self, make: Callable[[], P]) -> P:
        """Return a connection; raises `OSError`."""
        name = None if self.tls is None else self.server_hostname or self.host
        *others, last = await _found(self.host, self.port)
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


async def _found(host: str, port: int) -> list[str]:
    """
    Return the addresses of *host*, one at least. The thread of the look-up ends with it: in the
    event loop's own thread, a closing client would wait for a resolver that hangs.
    """
    own = OwnThread(f"broker_adapter: looking for {host}")
    ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = asyncio.get_running_loop().run_in_executor(own.pool, ask)
    try:
        await asyncio.wait((found,))
    finally:
        if found.done():
            await own.over()
        else:
            found.cancel()
            own.let_go()
    return list(dict.fromkeys(str(at[0]) for *_, at in found.result()))
