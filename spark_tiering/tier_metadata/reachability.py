"""The reachability of a service, tried before a client keeps connecting to a mistyped address."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from rlmm.base.loop_thread import LoopThread
from rlmm.errors import ConfigError, SidecarUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S: Final = 3.0
"""A service that is just being started anew is back by then."""
CONNECT_S: Final = 5.0
"""All attempts together: a service that has not answered by then is not there."""
_PAUSE_S: Final = 0.1

P = TypeVar("P", bound=asyncio.Protocol)


class DialableAddress(Protocol):
    async def dial(self, make: Callable[[], P]) -> P: ...


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def end(self) -> None:
        if self._transport is not None:
            self._transport.close()


def require_reached(
    address: DialableAddress, *, patience_s: float = PATIENCE_S, connect_s: float = CONNECT_S
) -> None:
    """Return on a connection; else `SidecarUnavailable` after *patience_s* or *connect_s*."""
    thread = LoopThread("tier-metadata")
    try:
        thread.wait(_reached(address, patience_s, connect_s))
    finally:
        thread.close()


async def _reached(address: DialableAddress, patience_s: float, connect_s: float) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    heard: OSError | None = None
    while True:
        try:
            async with asyncio.timeout_at(began_s + connect_s):
                connection = await address.dial(_Connection)
        except OSError as error:  # time-outs among them
            is_late = loop.time() >= began_s + min(patience_s, connect_s)
            if is_late or isinstance(error, ssl.SSLError):
                # What was said before is better than that there was no more time.
                why = heard if heard is not None and _is_own_time_out(error) else error
                msg = f"the service at {address} was not reached: {_why(why, connect_s)}"
                raise SidecarUnavailable(msg) from error
            heard = error
            await asyncio.sleep(_PAUSE_S)
            continue
        except (OverflowError, ValueError) as error:  # a host or port that there cannot be
            msg = f"{address} is no address: {error}"
            raise ConfigError(msg) from error
        connection.end()
        return


def _is_own_time_out(error: OSError) -> bool:
    return isinstance(error, TimeoutError) and error.errno is None


def _why(error: OSError, connect_s: float) -> str:
    """Return the system's words: those of asyncio repeat the address, or are several."""
    if isinstance(error, ssl.SSLError):
        return str(error)
    if _is_own_time_out(error):
        return f"no answer in {connect_s:g} s"
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
