"""
What comes in by plain sockets, taken for all connections by one look at the system.

The event loop's own way makes several objects and calls for each socket that has something, which
costs more than the answer. Here one descriptor stands for all of them in the loop, and each turn
takes what is there. What is encrypted, and every system without epoll, keeps the loop's own way.
Invariant: who is paused, or has left, is not read from, not even in the turn in which that happens.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

NO_FILE: Final = -1
"""The descriptor of who is not read from here."""
RECEIVED_BYTES: Final = 64 * 1024
"""Most bytes that are taken from a socket at a time."""
_SOCKETS_MAX: Final = 256
"""Sockets in one turn: everything else in the loop has its turn behind them."""


class Readers:
    """The sockets that are read from, and who takes what comes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._takers: dict[int, tuple[Callable[[bytes], None], asyncio.Transport]] = {}
        self._loop.add_reader(self._epoll.fileno(), self._turn)

    def resume(self, fd: int, take: Callable[[bytes], None], transport: asyncio.Transport) -> None:
        """From now on *take* is given what comes by *fd*, the socket of *transport*."""
        if fd not in self._takers and not self._epoll.closed:
            self._takers[fd] = take, transport
            self._epoll.register(fd, select.EPOLLIN)

    def pause(self, fd: int) -> None:
        """Take nothing more from *fd*; to be called before it is closed, too."""
        if self._takers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        """Read from nobody any more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._takers.clear()
        self._epoll.close()

    def _turn(self) -> None:
        takers, read = self._takers, os.read
        for fd, _ in self._epoll.poll(0, _SOCKETS_MAX):
            found = takers.get(fd)
            if found is None:
                continue  # paused by what came before it in this turn
            take, transport = found
            try:
                data = read(fd, RECEIVED_BYTES)
                if data:
                    take(data)
                    continue
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                self._lose(fd, transport)
                continue
            except Exception as error:  # noqa: BLE001 - one connection must not end all others
                self._loop.call_exception_handler(
                    {"message": "a connection failed", "exception": error, "transport": transport}
                )
                self._lose(fd, transport)
                continue
            self.pause(fd)
            transport.close()

    def _lose(self, fd: int, transport: asyncio.Transport) -> None:
        self.pause(fd)
        transport.abort()


def send(fd: int, data: bytes, transport: asyncio.Transport) -> None:
    """
    Write *data*, past *transport* where *fd* is its socket's and nothing waits in it, which is half
    the cost.
    """
    if fd != NO_FILE and not transport.get_write_buffer_size():
        try:  # noqa: SIM105 - a context costs as much as the rest of this
            data = data[os.write(fd, data) :]
        except OSError:
            pass  # whatever it is, the transport meets it again and knows what to do
        if not data:
            return
    transport.write(data)


def readers() -> Readers | None:
    """Readers in the running loop, where the system has what they need."""
    return Readers() if sys.platform == "linux" else None
