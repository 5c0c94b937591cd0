"""
Socket reads by one epoll for all plain sockets.

The event loop's own reads cost more than the answer. Answers go out a few at a time: waking a
client for each costs a third of an answer. TLS, and systems without epoll, use the event loop.
Invariants: a paused or closed socket is not read from, even in the same turn; every answer is
written in its turn.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Final

from rlmm.base.paused_reading import pause_from_start

if TYPE_CHECKING:
    from collections.abc import Callable

    Take = Callable[[bytes], None]

NO_FILE: Final = -1
RECEIVED_BYTES: Final = 16 * 1024
"""Bytes taken from a socket at a time, and allocated for each request."""
_SOCKETS_MAX: Final = 256
"""Sockets in one turn, before other work of the loop."""
TURN_S: Final = 0.002
"""How long one turn reads, and answers what it read; the last request may end later."""
_ANSWERS_MAX: Final = 16
"""Answers that are written together; the first waits for so many requests."""


class SocketReaders:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._takers: dict[int, tuple[Take, asyncio.Transport]] = {}
        self._answers: list[tuple[int, bytes, asyncio.Transport]] = []
        self._is_turn = False
        self._left: list[tuple[int, int]] = []
        """Sockets that had data when the turn before ended by time: they are read first."""
        self.is_late = False
        """Whether such sockets are read now: each answer of them may take as long as a turn."""
        self._loop.add_reader(self._epoll.fileno(), self._turn)

    def begin(self, take: Take, transport: asyncio.Transport) -> int:
        pause_from_start(transport)
        fd: int = transport.get_extra_info("socket").fileno()
        self.resume(fd, take, transport)
        return fd

    def resume(self, fd: int, take: Take, transport: asyncio.Transport) -> None:
        if fd not in self._takers and not (self._epoll.closed or transport.is_closing()):
            self._takers[fd] = take, transport
            self._epoll.register(fd, select.EPOLLIN)

    def pause(self, fd: int, transport: asyncio.Transport) -> None:
        del transport
        self.leave(fd)

    def leave(self, fd: int) -> None:
        if self._takers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._takers.clear()
        self._epoll.close()

    def send(self, fd: int, data: bytes, transport: asyncio.Transport) -> None:
        """
        Write *data* to *fd*, the socket of *transport*, before this turn ends.

        A socket that is closed in a turn keeps its descriptor until the end of the turn.
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
        self.is_late = bool(self._left)
        ready = iter(self._left or self._epoll.poll(0, _SOCKETS_MAX))
        self._left = []
        now_s = perf_counter()
        end_s = now_s + TURN_S
        for fd, _ in ready:
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
                    begun_s, now_s = now_s, perf_counter()
                    if now_s - begun_s > TURN_S:
                        transport.get_protocol().note_cost(now_s - begun_s)  # type: ignore[attr-defined]
                    if now_s < end_s:
                        continue
                    self._left = list(ready)
                    break
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
    """Write past *transport* where its buffer is empty, which halves the cost."""
    if not transport.get_write_buffer_size():
        try:  # noqa: SIM105 - a context costs as much as the rest of this
            data = data[os.write(fd, data) :]
        except OSError:
            pass  # whatever it is, the transport meets it again and knows what to do
        if not data:
            return
    transport.write(data)


class EventLoopSockets:
    """Offers the same interface for sockets that the event loop reads and writes."""

    is_late = False

    def begin(self, take: Take, transport: asyncio.Transport) -> int:
        del take, transport
        return NO_FILE

    def resume(self, fd: int, take: Take, transport: asyncio.Transport) -> None:
        del fd, take
        transport.resume_reading()

    def pause(self, fd: int, transport: asyncio.Transport) -> None:
        del fd
        transport.pause_reading()

    def leave(self, fd: int) -> None: ...

    def send(self, fd: int, data: bytes, transport: asyncio.Transport) -> None:
        del fd
        transport.write(data)


BY_LOOP: Final = EventLoopSockets()


def readers() -> SocketReaders | None:
    return SocketReaders() if sys.platform == "linux" else None
