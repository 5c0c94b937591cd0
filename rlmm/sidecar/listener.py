"""
The listener of the frame server: its addresses, connections and end.

Invariant: after `run` no connection, task or socket file is left.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import struct
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from rlmm.access.peer_credentials import tcp_peer
from rlmm.access.roles import Peer
from rlmm.base.loopback import is_loopback
from rlmm.base.threads import in_own_thread
from rlmm.errors import ConfigError
from rlmm.sidecar.connection import ClientConnection
from rlmm.sidecar.connection_slots import ConnectionSlots
from rlmm.sidecar.socket_reads import SocketReaders, readers
from rlmm.sidecar.unix_socket import UnixSocket

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rlmm.access.handshakes import Handshakes
    from rlmm.sidecar.session import SessionContext
    from rlmm.sidecar.statistics import SidecarStatistics

_log = logging.getLogger(__name__)

_FILES_KEPT = 512
"""Files that the process needs beside connections: its log, snapshots, connections to brokers."""
_BACKLOG = 1_024
_ACCEPTS = 8
"""Connections that one turn of the event loop accepts: with what each sends at once, a millisecond
or two."""
_LOOKS = 8
_LOOK_LEAST_S, _LOOK_MOST_S = 0.01, 1.0
_REMOVE_S = 1.0
"""How long the end waits for a disk that hangs before it leaves the file of the socket."""
_LEAVES_FILES: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""Newer event loops remove the file of a socket themselves, and block while they do."""
_WAIT_SHARE = 0.5
"""Share of the deadline in which answers under way may end by themselves."""


class Sidecar:
    def __init__(
        self, context: SessionContext, unix_path: Path | None, *, may_do_without: bool = False
    ) -> None:
        """Listen at *unix_path* too; where it *may do without*, an unusable path is only logged."""
        self._may_do_without = may_do_without
        self._context = context
        self._unix_path = unix_path
        settings = context.settings
        self._places = ConnectionSlots(settings.connections_max, settings.address_greetings_max)
        self._is_ending = False
        self._gone = asyncio.Event()
        self._look: asyncio.TimerHandle | None = None
        self._readers: SocketReaders | None = None
        self._handshakes: Handshakes | None = None
        self._authenticator_generation = context.authenticator.generation
        self.listening = asyncio.Event()
        self.addresses: list[tuple[str, int]] = []

    async def run(self) -> None:
        """
        Listen until cancelled; then answer the requests under way, within the deadline.

        Raises `ConfigError` where it cannot listen at an address of the settings.
        """
        settings = self._context.settings
        self._places = ConnectionSlots(
            files_for(settings.connections_max), settings.address_greetings_max
        )
        self._readers = readers()
        servers: list[asyncio.Server] = []
        unix: UnixSocket | None = None
        try:
            unix = await self._open_unix()
            if unix is not None:
                servers.append(await self._listen_unix(unix))
            if self._context.settings.address is not None:
                servers.append(await self._listen_tcp(*self._context.settings.address))
            self._look_after_all()
            self.listening.set()
            await asyncio.Event().wait()
        finally:
            self._is_ending = True
            self.listening.clear()
            for server in servers:
                server.close()
            if unix is not None:
                unix.socket.close()
            try:
                if self._handshakes is not None:
                    await self._handshakes.close()
                if unix is not None:
                    await _remove(unix)
                await self._end()
            finally:
                if self._look is not None:
                    self._look.cancel()
                if self._readers is not None:
                    self._readers.close()

    async def _open_unix(self) -> UnixSocket | None:
        if self._unix_path is None:
            return None
        try:
            return await in_own_thread(
                "sidecar: socket",
                partial(UnixSocket, self._unix_path, self._context.settings.mode, _BACKLOG),
            )
        except ConfigError as error:
            if not self._may_do_without:
                raise
            _log.warning("no Unix socket is opened: %s", error)
            return None

    async def _listen_unix(self, unix: UnixSocket) -> asyncio.Server:
        server = await asyncio.get_running_loop().create_unix_server(
            lambda: self._connection(_unix_peer, self._readers),
            sock=unix.socket,
            backlog=_ACCEPTS,
            **_LEAVES_FILES,
        )
        unix.socket.listen(_BACKLOG)
        _log.info("listening at %s", unix.path)
        return server

    async def _listen_tcp(self, host: str, port: int) -> asyncio.Server:
        hello_s = self._context.settings.hello_timeout_ms / 1_000
        shaking = self._handshakes = self._context.authenticator.handshakes("sidecar", hello_s)
        taken_by = self._readers if shaking is None else None
        connect = partial(self._connection, tcp_peer, taken_by)
        make: Callable[[], asyncio.BaseProtocol] = connect
        if shaking is not None:
            make = shaking.factory(connect)
        try:
            server = await asyncio.get_running_loop().create_server(
                make, host, port, backlog=_ACCEPTS
            )
            for found in server.sockets:
                with socket.socket(fileno=os.dup(found.fileno())) as same:
                    same.listen(_BACKLOG)
        except OSError as error:
            msg = f"sidecar.listen {host}:{port} cannot be used: {error.strerror or error}"
            raise ConfigError(msg) from error
        self.addresses = [found.getsockname()[:2] for found in server.sockets]
        for address in self.addresses:
            _log.info("listening at %s:%d%s", *address, "" if shaking is None else ", with TLS")
            if shaking is None and not is_loopback(address):
                _log.warning(
                    "at %s:%d nothing is encrypted: tls.certificate_file is not set", *address
                )
        return server

    def _connection(
        self, peer_of: Callable[[asyncio.Transport], Peer], taken_by: SocketReaders | None
    ) -> ClientConnection:
        return ClientConnection(
            self._context, peer_of, self._enter, self._leave, self._places.greeted, taken_by
        )

    def _enter(self, connection: ClientConnection) -> bool:
        return not self._is_ending and self._places.enter(connection)

    def _leave(self, connection: ClientConnection) -> None:
        self._places.leave(connection)
        if not self._places:
            self._gone.set()

    # -------------------------------------------------------------------------------- limits

    def _look_after_all(self) -> None:
        """Cut off silent clients, and those that do not take answers; periodically."""
        settings = self._context.settings
        loop = asyncio.get_running_loop()
        self._send_away_who_is_unwelcome()
        now_s = loop.time()
        self._context.clusters.look_after(now_s)
        slow_s, hello_s = settings.slow_client_ms / 1_000, settings.hello_timeout_ms / 1_000
        idle_s = settings.idle_timeout_ms / 1_000
        for connection in self._places:
            blocked_s = connection.blocked_s or connection.closing_s
            if blocked_s is not None:
                if now_s - blocked_s >= slow_s:
                    connection.abort("slow")
                continue
            state = connection.state
            if state == "greeting" and now_s - connection.heard_s >= hello_s:
                connection.abort("hello")
            elif state == "idle" and now_s - connection.heard_s >= idle_s:
                connection.abort("idle")
        look_s = min(slow_s, hello_s, idle_s) / _LOOKS
        look_s = min(max(look_s, _LOOK_LEAST_S), _LOOK_MOST_S)
        self._look = loop.call_later(look_s, self._look_after_all)

    def _send_away_who_is_unwelcome(self) -> None:
        generation = self._context.authenticator.generation
        if generation != self._authenticator_generation:
            self._authenticator_generation = generation
            for connection in self._places:
                if not connection.is_welcome:
                    connection.abort("unwelcome")

    def statistics(self) -> SidecarStatistics:
        states: dict[str, int] = dict.fromkeys(
            ("greeting", "idle", "waiting", "slow", "closing"), 0
        )
        for connection in self._places:
            states[connection.state] += 1
        clusters = self._context.clusters
        return self._context.figures.statistics(
            states,
            self._places.connections_max,
            clusters.brokers_statistics(),
            clusters.takeovers,
            clusters.given_up,
        )

    # --------------------------------------------------------------------------------- the end

    async def _end(self) -> None:
        """Let requests under way end; refuse the rest, and close all connections."""
        loop = asyncio.get_running_loop()
        stop_s = self._context.settings.stop_timeout_ms / 1_000
        deadline_s = loop.time() + stop_s
        for connection in self._places:
            connection.stop_reading()
        tasks = [task for one in self._places for task in one.waits.tasks()]
        if tasks:
            await asyncio.wait(tasks, timeout=stop_s * _WAIT_SHARE)
        for connection in self._places:
            connection.waits.cancel()
        tasks = [task for task in tasks if not task.done()]
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, deadline_s - loop.time()))
        await asyncio.sleep(0)  # requests that have just ended are answered in the next turn
        while self._has_lines() and loop.time() < deadline_s:  # noqa: ASYNC110 - waits for turns
            await asyncio.sleep(0)
        for connection in self._places:
            connection.close()
        if not await self._all_gone(deadline_s):
            for connection in self._places:
                connection.abort("stop")
            await self._all_gone(loop.time() + 1.0)

    def _has_lines(self) -> bool:
        return any(connection.has_line for connection in self._places)

    async def _all_gone(self, deadline_s: float) -> bool:
        self._gone.clear()
        if not self._places:
            return True
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True


async def _remove(unix: UnixSocket) -> None:
    """Remove the file of a closed socket; does not wait long for a disk that hangs."""
    try:
        async with asyncio.timeout(_REMOVE_S):
            await in_own_thread("sidecar: socket", unix.remove)
    except TimeoutError:
        _log.warning("%s is left behind: the disk does not answer", unix.path)


def files_for(connections_max: int) -> int:
    """Raise the soft limit of files as far as it goes, log a shortage, return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + _FILES_KEPT
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft_max = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft_max > soft:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft_max, hard))
                soft = soft_max
            except (OSError, ValueError) as error:
                _log.warning("the limit of open files cannot be raised: %s", error)
        if soft < wanted:
            had = max(1, soft - _FILES_KEPT)
            _log.warning(
                "the system allows this process %d open files: of sidecar.connections_max = %d "
                "connections it takes %d; allow %d files for all of them",
                soft, connections_max, had, wanted,
            )  # fmt: skip
            return had
    return connections_max


def _unix_peer(transport: asyncio.Transport) -> Peer:
    found = transport.get_extra_info("socket")
    size = struct.calcsize("3i")
    try:
        answer = found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        _, uid, _ = struct.unpack("3i", answer)
    except (OSError, AttributeError, struct.error):
        uid = None
    return Peer("unix", uid=uid)
