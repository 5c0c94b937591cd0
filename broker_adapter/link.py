"""
A connection that comes back: dialled, greeted and told what this broker has, again and again.

One connection at a time carries everything. Invariant: what is said of leaders and followers stands
on every connection before any question that is asked after it was said, and is said until it is
accepted.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from broker_adapter.assignment import OwnAssignment
from broker_adapter.connection import Connection
from broker_adapter.policies import ASSIGNMENTS, JITTER
from rlmm.backoff import Backoff
from rlmm.errors import RlmmError, SidecarUnavailable, Stopped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_adapter.address import Address
    from broker_adapter.calls import Call
    from broker_adapter.settings import ClientSettings
    from broker_adapter.statistics import Figures
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.hello import Hello, HelloAnswer

_log = logging.getLogger(__name__)


class Link:
    """Keeps a connection to a service, as long as `run` runs."""

    def __init__(
        self, address: Address, hello: Hello, settings: ClientSettings, figures: Figures
    ) -> None:
        self._address = address
        self._hello = hello
        self._settings = settings
        self._figures = figures
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(settings.reconnect, self._loop.time)
        self._assignment = OwnAssignment()
        self._connection: Connection | None = None
        self._changed: asyncio.Future[None] = self._loop.create_future()
        """Done at the next change of what callers wait for."""
        self._wake: asyncio.Future[None] = self._loop.create_future()
        self._failure: RlmmError | None = None
        """Why there is no connection."""
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._unheard = 0
        """Messages about the assignment that are not answered yet."""
        self._refused: RlmmError | None = None
        """Why the service does not know the assignment, if it refused it."""
        self.server: HelloAnswer | None = None

    # ------------------------------------------------------------------------------ questions

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None and not self._connection.is_lost

    @property
    def is_told(self) -> bool:
        """Whether the service has accepted all that was said of leaders and followers."""
        is_said = not self._unheard and self._refused is None
        return not self._assignment.is_known or (self.is_connected and is_said)

    def is_awaited(self, partition: TopicIdPartition) -> bool:
        """Whether *partition* is this broker's, and the service may not know that yet."""
        return partition in self._assignment and not self.is_told

    @property
    def lookups_max(self) -> int | None:
        """Look-ups that the service takes at once."""
        return None if self.server is None else self.server.limits.lookups_max

    async def exchange(self, method: str, args: Sequence[object], deadline_s: float) -> object:
        """The result of one request, on the connection that there is or will be."""
        connection = await self._connected(deadline_s)
        return await connection.call(method, args, deadline_s)

    async def partition_count(self, deadline_s: float) -> int:
        """How many metadata partitions the topic has."""
        server = self.server
        if server is None or server.partition_count is None:
            # At the first hello the service had not reached its log; only another one tells.
            beside = await self._dial(deadline_s)
            try:
                server = await beside.greet(self._hello, deadline_s)
            finally:
                beside.end(SidecarUnavailable("it has told what it was asked for"))
            if server.partition_count is None:
                raise SidecarUnavailable("the service does not know its topic yet")
            self.server = server
        assert server.partition_count is not None
        return server.partition_count

    async def _connected(self, deadline_s: float) -> Connection:
        while True:
            if self._closed.done():
                raise Stopped("the client is closed")
            connection, failure = self._connection, self._failure
            if connection is not None and not connection.is_lost:
                return connection
            if failure is not None and not failure.retriable:
                raise type(failure)(str(failure))
            left_s = deadline_s - self._loop.time()
            if left_s <= 0:
                why = "it has not answered yet" if failure is None else str(failure)
                msg = f"the service at {self._address} was not reached: {why}"
                raise SidecarUnavailable(msg)
            await asyncio.wait((self._changed,), timeout=left_s)

    # ----------------------------------------------------------------------------- assignment

    def change(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        """This broker leads and follows these, too, from now on."""
        self._tell(self._assignment.add(leaders, followers))

    def stop(self, partitions: Iterable[TopicIdPartition]) -> None:
        """These are not this broker's any more."""
        self._tell(self._assignment.remove(partitions))

    def _tell(self, messages: list[Call[int]]) -> None:
        """Without a connection nothing is lost: the next one begins with the whole."""
        connection = self._connection
        if connection is not None and not connection.is_lost:
            self._say(connection, messages)

    def _say(
        self, connection: Connection, messages: Sequence[Call[int]]
    ) -> list[asyncio.Future[object]]:
        """Send *messages*, with nothing between them."""

        def heard(answer: asyncio.Future[object]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if connection is not self._connection:
                return
            self._unheard -= 1
            if isinstance(error, RlmmError):
                self._refused = error
                self._ring()

        answers = []
        for message in messages:
            answers.append(connection.send(message.method, message.args))
            self._unheard += 1
            answers[-1].add_done_callback(heard)
        return answers

    async def _tell_whole(self, connection: Connection) -> None:
        """Say all of it, until it is accepted or the connection is over."""

        async def attempt() -> None:
            if connection.is_lost:
                return
            self._refused = None
            answers = self._say(connection, self._assignment.whole())
            if not answers:
                return
            _, silent = await asyncio.wait(answers, timeout=self._settings.timeout_s)
            if silent:
                connection.end(SidecarUnavailable("an assignment was not answered in time"))
            await asyncio.gather(*answers)

        async def pause(pause_s: float) -> None:
            await asyncio.wait((connection.lost,), timeout=pause_s)

        await ASSIGNMENTS.run(
            attempt,
            now=self._loop.time,
            deadline_s=None,
            hook=self._figures.repeated,
            sleep=pause,
        )

    # ----------------------------------------------------------------------- the one connection

    async def run(self) -> None:
        """Connect, and connect again, without end."""
        try:
            while True:
                connection = await self._connect()
                begun_s = self._loop.time()
                try:
                    await self._keep(connection)
                finally:
                    self._connection = None
                    connection.end(SidecarUnavailable("the client has hung up"))
                # Whatever ended this connection, the next one may do better.
                self._failure = SidecarUnavailable(str(connection.lost.result()))
                _log.warning("the connection to %s is lost: %s", self._address, self._failure)
                if self._loop.time() - begun_s >= self._settings.reconnect.last_s:
                    self._backoff.succeeded()
                else:
                    self._backoff.failed()
        finally:
            await self.close()

    async def close(self) -> None:
        """Refuse everything from now on."""
        if not self._closed.done():
            self._closed.set_result(None)
        if self._connection is not None:
            self._connection.end(Stopped("the client is closed"))
        self._note_change()

    async def pause(self, pause_s: float) -> None:
        """Return after so long, or when it is closed."""
        await asyncio.wait((self._closed,), timeout=pause_s)

    async def _connect(self) -> Connection:
        attempts = 0
        while True:
            pause_s = self._backoff.remaining_s * random.uniform(1 - JITTER, 1)  # noqa: S311 - no secret
            await asyncio.sleep(pause_s)
            attempts += 1
            try:
                return await self._attempt()
            except (OSError, RlmmError) as error:
                self._figures.failed_connections += 1
                failure = error if isinstance(error, RlmmError) else SidecarUnavailable(_why(error))
                level = logging.WARNING if attempts == 1 else logging.DEBUG
                _log.log(level, "%s cannot be connected to: %s", self._address, failure)
                self._failure = failure
                self._backoff.failed()
                self._note_change()

    async def _attempt(self) -> Connection:
        """A connection that was greeted and told the whole assignment."""
        deadline_s = self._loop.time() + self._settings.connect_timeout_s
        connection = await self._dial(deadline_s)
        try:
            self.server = await connection.greet(self._hello, deadline_s)
            self._unheard, self._refused = 0, None
            self._connection = connection
            self._say(connection, self._assignment.whole())
        except BaseException:
            self._connection = None
            connection.end(SidecarUnavailable("the service could not be greeted"))
            raise
        self._figures.connections += 1
        self._failure = None
        self._note_change()
        _log.info("connected to %s: %s", self._address, self.server.server)
        return connection

    async def _dial(self, deadline_s: float) -> Connection:
        async with asyncio.timeout_at(deadline_s):
            return await self._address.dial(Connection)

    async def _keep(self, connection: Connection) -> None:
        """Look after *connection* until it is lost."""
        while not connection.is_lost:
            if self._refused is not None:
                await self._tell_whole(connection)
                continue
            idle_s = self._idle_s
            left_s = connection.heard_s + idle_s - self._loop.time()
            if left_s > 0:
                await asyncio.wait(
                    (connection.lost, self._wake),
                    timeout=left_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                continue
            try:
                await connection.call("ping", [], self._loop.time() + idle_s)
            except SidecarUnavailable as error:
                connection.end(error)
            except RlmmError as error:
                _log.debug("ping was refused: %s", error)

    @property
    def _idle_s(self) -> float:
        """How long nothing may be heard before somebody asks whether the other end is there."""
        idle_ms = 0 if self.server is None else self.server.limits.idle_ms
        return min(self._settings.idle_s, idle_ms / 3_000) if idle_ms else self._settings.idle_s

    def _ring(self) -> None:
        """The one who looks after the connection is to look again."""
        wake, self._wake = self._wake, self._loop.create_future()
        wake.set_result(None)

    def _note_change(self) -> None:
        changed, self._changed = self._changed, self._loop.create_future()
        changed.set_result(None)


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return error.strerror or str(error)
