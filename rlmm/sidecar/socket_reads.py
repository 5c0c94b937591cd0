"""
What comes in by plain sockets, taken for all connections by one look at the system, and what is
answered at once.

The event loop's own way makes several objects and calls for each socket that has something, which
costs more than the answer. Here one descriptor stands for all of them in the loop, and each turn
takes what is there. Answers go out a few at a time: a client that is woken by each of them sends
the next request and sleeps again, and waking it costs as much as a third of an answer. What is
encrypted, and every system without epoll, keeps the loop's own way. Invariants: who is paused, or
has left, is not read from, not even in the turn in which that happens; no answer outlives its turn.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Take = Callable[[bytes], None]

NO_FILE: Final = -1
"""The descriptor of who is not read from here."""
RECEIVED_BYTES: Final = 16 * 1024
"""
Most bytes that are taken from a socket at a time; room for as many is made for each request, which
is mostly a hundred.
"""
_SOCKETS_MAX: Final = 256
"""Sockets in one turn: everything else in the loop has its turn behind them."""
_ANSWERS_MAX: Final = 16
"""Answers that are written one behind the other; as many requests does the first of them wait."""


class SocketReaders:
    """The sockets that are read from, and who takes what comes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._takers: dict[int, tuple[Take, asyncio.Transport]] = {}
        self._answers: list[tuple[int, bytes, asyncio.Transport]] = []
        self._is_turn = False
        self._loop.add_reader(self._epoll.fileno(), self._turn)

    def begin(self, take: Take, transport: asyncio.Transport) -> int:
        """Give *take* what comes by *transport* from now on; the descriptor of its socket."""
        transport.pause_reading()
        fd: int = transport.get_extra_info("socket").fileno()
        self.resume(fd, take, transport)
        return fd

    def resume(self, fd: int, take: Take, transport: asyncio.Transport) -> None:
        """Give *take* what comes by *fd*, the socket of *transport*, unless that is closing."""
        if fd not in self._takers and not (self._epoll.closed or transport.is_closing()):
            self._takers[fd] = take, transport
            self._epoll.register(fd, select.EPOLLIN)

    def pause(self, fd: int, transport: asyncio.Transport) -> None:
        """Take nothing more from *fd*, the socket of *transport*, for the time being."""
        del transport
        self.leave(fd)

    def leave(self, fd: int) -> None:
        """Take nothing more from *fd*, which is about to be closed."""
        if self._takers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._takers.clear()
        self._epoll.close()

    def send(self, fd: int, data: bytes, transport: asyncio.Transport) -> None:
        """
        Write *data* to *fd*, the socket of *transport*, before this turn ends. Nothing that is
        closed in a turn is gone before its end, so the descriptor is still its own.
        """
        if self._is_turn:
            self._answers.append((fd, data, transport))
        else:
            _write(fd, data, transport)

    def _turn(self) -> None:
        self._is_turn = True
        try:
            self._take_all()
        finally:
            self._is_turn = False
            self._write_all()

    def _write_all(self) -> None:
        answers = self._answers
        try:
            for fd, data, transport in answers:
                _write(fd, data, transport)
        finally:
            answers.clear()

    def _take_all(self) -> None:
        takers, read, answers = self._takers, os.read, self._answers
        for fd, _ in self._epoll.poll(0, _SOCKETS_MAX):
            if len(answers) >= _ANSWERS_MAX:
                self._write_all()
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
            self.leave(fd)
            transport.close()

    def _lose(self, fd: int, transport: asyncio.Transport) -> None:
        self.leave(fd)
        transport.abort()


def _write(fd: int, data: bytes, transport: asyncio.Transport) -> None:
    """Write *data*, past *transport* where nothing waits in it, which is half the cost."""
    if not transport.get_write_buffer_size():
        try:  # noqa: SIM105 - a context costs as much as the rest of this
            data = data[os.write(fd, data) :]
        except OSError:
            pass  # whatever it is, the transport meets it again and knows what to do
        if not data:
            return
    transport.write(data)


class EventLoopSockets:
    """The same for what the event loop reads and writes itself."""

    def begin(self, take: Take, transport: asyncio.Transport) -> int:
        del take, transport
        return NO_FILE

    def resume(self, fd: int, take: Take, transport: asyncio.Transport) -> None:
        del fd, take
        transport.resume_reading()

    def pause(self, fd: int, transport: asyncio.Transport) -> None:
        """Read nothing more for the time being."""
        del fd
        transport.pause_reading()

    def leave(self, fd: int) -> None:
        """The transport knows that it is about to be closed."""

    def send(self, fd: int, data: bytes, transport: asyncio.Transport) -> None:
        del fd
        transport.write(data)


BY_LOOP: Final = EventLoopSockets()


def readers() -> SocketReaders | None:
    """Readers in the running loop, where the system has what they need."""
    return SocketReaders() if sys.platform == "linux" else None
