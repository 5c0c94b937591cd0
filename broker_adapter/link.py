"""
The link: one connection that is dialled, greeted and sent the assignment, again and again.

Invariant: on every connection the assignment precedes all questions asked after it, and it is sent
until the service accepts it or another start of the broker has taken over.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from broker_adapter.assignment import OwnAssignment
from broker_adapter.calls import MessageRoom
from broker_adapter.connection import ServiceDialer
from broker_adapter.retry_policies import ASSIGNMENTS, JITTER
from rlmm.base.backoff import Backoff
from rlmm.errors import NotAssigned, RlmmError, SidecarUnavailable, Stopped, Superseded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_adapter.address import Address
    from broker_adapter.calls import Call
    from broker_adapter.connection import ServiceConnection
    from broker_adapter.settings import ClientSettings
    from broker_adapter.statistics import ClientCounters
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.wire.hello import ClientHello, HelloAnswer

_log = logging.getLogger(__name__)

A = TypeVar("A")


class BrokerTakeover:
    """
    Counts how often in a row the service refused this start of the broker.

    The client tries a few times, as a new service may know less, before it gives up: two processes
    with one broker id must not go on side by side.
    """

    def __init__(self, address: Address, times_max: int, figures: ClientCounters) -> None:
        self._address = address
        self._times_max = times_max
        self._figures = figures
        self._times = 0

    @property
    def is_final(self) -> bool:
        return self._times >= self._times_max

    def heard(self, error: Superseded) -> Superseded:
        """Count that another start has taken over; return the error of every later call."""
        self._times += 1
        self._figures.superseded += 1
        if not self.is_final:
            _log.warning("at %s this broker's place is taken: %s", self._address, error)
            return Superseded(str(error))
        self._figures.has_given_up = True
        msg = f"{error}. Given up after it was said {self._times} times: a new client is needed"
        _log.error("at %s this broker's place is taken: %s", self._address, msg)
        return Superseded(msg)

    def refuted(self) -> None:
        self._times = 0


class ServiceLink:
    def __init__(
        self,
        address: Address,
        hello: ClientHello,
        settings: ClientSettings,
        figures: ClientCounters,
    ) -> None:
        self._address = address
        self._hello = hello
        self._settings = settings
        self._figures = figures
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(settings.reconnect, self._loop.time)
        self._assignment = OwnAssignment()
        self._connection: ServiceConnection | None = None
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._wake: asyncio.Future[None] = self._loop.create_future()
        self._failure: RlmmError | None = None
        self._dialling = ServiceDialer(address, hello, settings.connect_timeout_s)
        self._takeover = BrokerTakeover(address, settings.superseded_max, figures)
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._unheard = 0
        """Messages about the assignment that are not answered yet."""
        self._refused: RlmmError | None = None
        """Why the service does not know the assignment, if it refused it."""
        self.server: HelloAnswer | None = None

    # ------------------------------------------------------------------------------ questions

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_lost

    @property
    def is_accepted(self) -> bool:
        """Return whether the service accepted the partitions that this broker leads and follows."""
        is_said = not self._unheard and self._refused is None
        return not self._assignment.is_known or (self.is_connected and is_said)

    @property
    def lookups_max(self) -> int | None:
        return None if self.server is None else self.server.limits.lookups_max

    @property
    def timeout_ms_max(self) -> int | None:
        """Longest wait of one request there; 0: any, `None`: not known yet."""
        return None if self.server is None else self.server.limits.timeout_ms_max

    async def exchange(
        self, call: Call[A], options: Mapping[str, object] | None, deadline_s: float
    ) -> A:
        connection = await self._connected(deadline_s)
        try:
            value = await connection.call(call.method, call.args_with(options), deadline_s)
        except Superseded as error:
            self._step_back(connection, error)
            raise
        except NotAssigned as error:
            self._assignment.require_accepted(error, call, is_accepted=self.is_accepted)
            raise
        return call.answer(value)

    async def partition_count(self, deadline_s: float) -> int:
        """Return the number of metadata partitions; raises `SidecarUnavailable`."""
        server = self.server
        if server is None or server.partition_count is None:
            # At the first hello the service had not reached its log; only another one tells.
            server = await self._dialling.greeted_aside(deadline_s)
            if server.partition_count is None:
                raise SidecarUnavailable("the service does not know its topic yet")
            self.server = server
        assert server.partition_count is not None
        return server.partition_count

    async def _connected(self, deadline_s: float) -> ServiceConnection:
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
        self._tell(self._assignment.add(leaders, followers))

    def stop(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._tell(self._assignment.remove(partitions))

    def _tell(self, messages: list[Call[int]]) -> None:
        """Send *messages*; without a connection none is lost, as the next one begins with all."""
        connection = self._connection
        if connection is not None and not connection.is_lost:
            self._say(connection, messages)

    def _say(
        self, connection: ServiceConnection, messages: Sequence[Call[int]]
    ) -> list[asyncio.Future[object]]:
        def heard(answer: asyncio.Future[object]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if connection is not self._connection:
                return
            self._unheard -= 1
            if isinstance(error, Superseded):
                self._step_back(connection, error)
            elif isinstance(error, RlmmError):
                self._refused = error
                self._ring()
            elif not (self._unheard or self._refused is not None or connection.is_lost):
                # On a lost connection, what was taken away since was not said to anybody.
                self._assignment.accepted()

        answers = []
        for message in messages:
            answers.append(connection.send(message.method, message.args))
            self._unheard += 1
            answers[-1].add_done_callback(heard)
        return answers

    async def _tell_whole(self, connection: ServiceConnection) -> None:
        """Send the whole assignment until it is accepted or the connection is over."""

        async def attempt() -> None:
            if connection is not self._connection or connection.is_lost:
                return
            self._refused = None
            answers = self._say(connection, self._assignment.whole())
            if not answers:
                return
            _, silent = await asyncio.wait(answers, timeout=self._settings.timeout_s)
            if silent:
                connection.end(SidecarUnavailable("an assignment was not answered in time"))
            with suppress(Superseded):
                await asyncio.gather(*answers)

        def tell(policy: str, error: RlmmError, pause_s: float) -> None:
            level = logging.DEBUG if error.retriable else logging.WARNING
            _log.log(
                level, "%s does not take what this broker leads and follows: %s; said again in "
                "%.1f s", self._address, error, pause_s,
            )  # fmt: skip
            self._figures.repeated(policy, error, pause_s)

        async def pause(pause_s: float) -> None:
            await asyncio.wait((connection.lost,), timeout=pause_s)

        attempts = ASSIGNMENTS.attempts(
            now=self._loop.time, deadline_s=None, hook=tell, sleep=pause
        )
        await attempts(attempt)

    # ----------------------------------------------------------------------- the one connection

    async def run(self) -> None:
        """Connect again and again, until another start of the broker has taken over for good."""
        try:
            while (connection := await self._connect()) is not None:
                begun_s = self._loop.time()
                try:
                    await self._keep(connection)
                finally:
                    self._connection = None
                    connection.end(SidecarUnavailable("the client has hung up"))
                if not isinstance(self._failure, Superseded):
                    # Whatever ended this connection, the next one may do better.
                    self._failure = SidecarUnavailable(str(connection.lost.result()))
                    _log.warning("the connection to %s is lost: %s", self._address, self._failure)
                if self._loop.time() - begun_s >= self._settings.reconnect.last_s:
                    self._backoff.succeeded()
                else:
                    self._backoff.failed()
        finally:
            if not self._takeover.is_final:
                await self.close()

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._dialling.close()
        if self._connection is not None:
            self._connection.end(Stopped("the client is closed"))
        self._note_change()

    async def pause(self, pause_s: float) -> None:
        await asyncio.wait((self._closed,), timeout=pause_s)

    async def _connect(self) -> ServiceConnection | None:
        """Return the next connection; `None` when the client gives up."""
        attempts = 0
        while not self._takeover.is_final:
            pause_s = self._backoff.remaining_s * random.uniform(1 - JITTER, 1)  # noqa: S311 - no secret
            await asyncio.sleep(pause_s)
            attempts += 1
            try:
                return await self._attempt()
            except RlmmError as error:
                self._figures.failed_connections += 1
                level = logging.WARNING if attempts == 1 else logging.DEBUG
                _log.log(level, "%s cannot be connected to: %s", self._address, error)
                if isinstance(error, Superseded):
                    error = self._takeover.heard(error)
                self._failure = error
                self._backoff.failed()
                self._note_change()
        return None

    async def _attempt(self) -> ServiceConnection:
        deadline_s = self._loop.time() + self._settings.connect_timeout_s
        connection = await self._dialling.dial(deadline_s)
        try:
            self.server = await connection.greet(self._hello, deadline_s, self._address)
            self._assignment.room = MessageRoom.of(self.server.limits)
            self._takeover.refuted()
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

    async def _keep(self, connection: ServiceConnection) -> None:
        while not connection.is_lost:
            if connection is not self._connection:
                await connection.answered(self._settings.timeout_s)
                return
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
            except Superseded as error:
                self._step_back(connection, error)
            except RlmmError as error:
                _log.debug("ping was refused: %s", error)

    def _step_back(self, connection: ServiceConnection, error: Superseded) -> None:
        """End with *connection* after a takeover: sent requests are answered, none follows."""
        if connection is self._connection:
            self._connection = None
            self._failure = self._takeover.heard(error)
            self._ring()
            self._note_change()

    @property
    def _idle_s(self) -> float:
        idle_ms = 0 if self.server is None else self.server.limits.idle_ms
        return min(self._settings.idle_s, idle_ms / 3_000) if idle_ms else self._settings.idle_s

    def _ring(self) -> None:
        wake, self._wake = self._wake, self._loop.create_future()
        wake.set_result(None)

    def _note_change(self) -> None:
        changed, self._changed = self._changed, self._loop.create_future()
        changed.set_result(None)
