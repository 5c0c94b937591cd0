"""
systemd's notify protocol: datagrams to the socket that `NOTIFY_SOCKET` names.

Timers of the event loop send them, so that the watchdog gets none once the loop hangs. Invariant:
nothing here waits or raises.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rlmm.views.readiness import ProcessStatus, liveness_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlmm.engine.service import Service

_log = logging.getLogger(__name__)

SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE: Final = "WATCHDOG_USEC"
WATCHDOG_PID_VARIABLE: Final = "WATCHDOG_PID"
LOOK_FIRST_S: Final = 0.1
LOOK_S: Final = 2.0
EXTENSION_S: Final = 30.0
_EXTENSIONS = 6
"""Notices within one extension, since one may get lost."""
_STATUS_CHARACTERS_MAX = 500
_USEC = 1_000_000


class NotifySocket:
    """Sends lines to a supervisor's socket, or loses them; never waits, never raises."""

    def __init__(self, address: str) -> None:
        """*address* is a path, or begins with `@` for the abstract name space."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._is_told = False
        self._socket: socket.socket | None = None
        if not address.startswith(("/", "@")):
            self._tell(f"{SOCKET_VARIABLE} is neither a path nor an abstract name: {address!r}")
            return
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
        except OSError as error:
            self._tell(str(error))

    def send(self, *lines: str) -> bool:
        """Send *lines* in one datagram; whether the supervisor took them."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except (OSError, ValueError) as error:
            self._tell(str(error))
            return False
        return True

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tell(self, trouble: str) -> None:
        if not self._is_told:
            self._is_told = True
            _log.warning("the supervisor cannot be told how the service stands: %s", trouble)


def watchdog_s(environ: Mapping[str, str]) -> float | None:
    text, pid = environ.get(WATCHDOG_VARIABLE, ""), environ.get(WATCHDOG_PID_VARIABLE)
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        return None
    return int(text) / _USEC if pid is None or pid == str(os.getpid()) else None


class SupervisorNotices:
    def __init__(
        self, environ: Mapping[str, str], is_open: Callable[[], bool], heartbeat_s_max: float
    ) -> None:
        """
        *is_open* returns whether requests are taken.

        The watchdog gets no notice where an engine was not judged for *heartbeat_s_max*.
        """
        address = environ.get(SOCKET_VARIABLE)
        self._socket = NotifySocket(address) if address else None
        self._watchdog_s = watchdog_s(environ) if address else None
        self._process: Service | None = None
        self._is_open = is_open
        self._heartbeat_s_max = heartbeat_s_max
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}
        self._status = ""
        self._is_ready = False
        self._extend_s = float("-inf")

    def begin(self, process: Service) -> None:
        self._process = process

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Notify as long as the block runs; needs a running event loop."""
        if self._socket is None:
            yield
            return
        try:
            self._look()
            if self._watchdog_s is not None:
                self._watch()
            yield
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            self._socket.close()

    def stopping(self) -> None:
        if self._socket is not None:
            failure = self._standing().failure
            self._socket.send("STOPPING=1", f"STATUS={_line(failure or 'stopping')}")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        if self._socket is None or not self._is_ready:
            yield  # READY behind it would be wrong before requests are taken
            return
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        self._socket.send("RELOADING=1", f"MONOTONIC_USEC={now_us}")
        try:
            yield
        finally:
            self._socket.send("READY=1")

    def _look(self) -> None:
        assert self._socket is not None
        # Whatever comes up below, it is looked again.
        self._again(self._look, LOOK_S if self._is_ready else LOOK_FIRST_S)
        standing = self._standing()
        if standing.end:
            return
        lines = []
        status = _line(status_of(standing))
        if status != self._status:
            lines.append(f"STATUS={status}")
        is_ready = self._is_ready or self._is_open()
        now_s = asyncio.get_running_loop().time()
        if is_ready and not self._is_ready:
            lines.append("READY=1")
        elif not is_ready and now_s - self._extend_s >= EXTENSION_S / _EXTENSIONS:
            self._extend_s = now_s
            lines.append(f"EXTEND_TIMEOUT_USEC={int(EXTENSION_S * _USEC)}")
        if lines and self._socket.send(*lines):
            self._status, self._is_ready = status, is_ready

    def _watch(self) -> None:
        assert self._socket is not None
        assert self._watchdog_s is not None
        self._again(self._watch, self._watchdog_s / 2)
        now_s = asyncio.get_running_loop().time()
        standing = self._standing()
        found = liveness_view(standing, now_s, self._heartbeat_s_max)
        if standing.end or found.status != "stuck":
            self._socket.send("WATCHDOG=1")

    def _standing(self) -> ProcessStatus:
        process = self._process
        if process is None:
            return ProcessStatus({}, is_begun=False)
        return ProcessStatus(
            {name: engine.standing() for name, engine in process.engines.items()},
            process.expected,
            end=process.end,
            failure=process.failure,
            missing=process.missing,
        )

    def _again(self, what: Callable[[], None], pause_s: float) -> None:
        self._timers[what] = asyncio.get_running_loop().call_later(pause_s, what)


def status_of(process: ProcessStatus) -> str:
    """Return one line for operators: how far the process is, and what it waits for."""
    word = process.word
    if process.end or process.failure or process.opening or not process.engines:
        return f"{word}: {process.detail}"
    places, closed, left = 0, 0, 0
    waits = [f"{name} is not followed now: {why}" for name, why in process.missing.items()]
    for name, engine in process.engines.items():
        if engine.identity is None:
            waits.append(f"{name} waits for its log: {engine.last_trouble or 'no answer yet'}")
            continue
        if not engine.assignment.is_known:
            waits.append(f"{name} waits to be told what is assigned")
            continue
        not_open = engine.not_open
        places += len(engine.places)
        closed += len(not_open)
        for place in not_open:
            progress = engine.progress.get(place)
            if progress is not None and progress.target is not None:
                left += max(0, progress.target - progress.position)
    text = f"{word}: {places - closed} of {places} metadata partitions are answered from"
    if left:
        text += f", {left} records are left to read"
    return "; ".join([text, *waits])


def _line(text: str) -> str:
    return " ".join(text.split())[:_STATUS_CHARACTERS_MAX]
