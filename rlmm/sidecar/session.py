"""
The session of one client: its engine, and its requests.

Requests are answered or refused at once; one that has to wait gives a coroutine. Roles are checked
after a request's form, before the assignment. Before hello a client may do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rlmm.access.roles import Role
from rlmm.errors import (
    NotPermitted,
    NotReady,
    ProtocolError,
    Stopped,
    TooBusy,
    UnknownMethod,
)
from rlmm.sidecar import assignment_requests, log_queries, operator_queries, waiting_requests
from rlmm.sidecar.dispatch import (
    COUNTS,
    READS,
    Args,
    RequestLimits,
    event_broker,
    read_assign,
    read_event,
    read_listing,
    read_log_question,
    read_size,
    read_stop,
    require_sound,
)
from rlmm.sidecar.operator_queries import OpenImage
from rlmm.sidecar.request_audit import RequestAudit
from rlmm.sidecar.request_scheduler import RequestScheduler
from rlmm.views.values import in_milliseconds
from rlmm.wire.hello import HelloAnswer, ServiceLimits, agree, hello_answer_value, read_hello
from rlmm.wire.methods import METHODS
from rlmm.wire.operator_queries import read_places
from rlmm.wire.options import read_read_options, read_wait_options, read_write_options
from rlmm.wire.value_checks import uint63
from rlmm.wire.values import read_partition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from rlmm.access.authentication import Authenticator
    from rlmm.access.roles import Client, Peer
    from rlmm.engine.engine import Engine
    from rlmm.gate.reads import PartitionQueries
    from rlmm.sidecar.broker_assignments import BrokerAssignments
    from rlmm.sidecar.broker_starts import BrokerStart
    from rlmm.sidecar.clusters import Clusters
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters
    from rlmm.wire.hello import ClientHello
    from rlmm.wire.methods import Method

LOOP_READ_BYTES: Final = 16 * 1024
"""What the event loop gives at once, for TLS a record: small frames take five times their bytes."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    settings: SidecarSettings
    clusters: Clusters
    authenticator: Authenticator
    figures: FrameServerCounters
    status: Callable[[Engine], Mapping[str, object]]
    server: str
    mode: str
    turns: RequestScheduler = field(default_factory=RequestScheduler)
    buffer: memoryview = field(default_factory=lambda: memoryview(bytearray(LOOP_READ_BYTES)))


class ClientSession:
    __slots__ = (
        "_audit", "_bounds", "_client", "_context", "_engine", "broker", "hello",
        "image", "known_reads", "log_reads", "meter",
    )  # fmt: skip

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._bounds = RequestLimits.of(context.settings)
        self.hello: ClientHello | None = None
        self._engine: Engine | None = None
        self.known_reads: PartitionQueries | None = None
        self._client: Client | None = None
        """Counts as one connection of the client."""
        self._audit: RequestAudit | None = None
        self.broker: BrokerStart | None = None
        self.meter: Callable[[int], None] | None = None
        """Called with the bytes of each request of a client with a rate limit; may raise `TooBusy`.
        """
        self.image = OpenImage(context.settings, context.figures)
        self.log_reads = 0

    @property
    def figures(self) -> FrameServerCounters:
        return self._context.figures

    @property
    def is_known(self) -> bool:
        return self.hello is not None

    @property
    def client(self) -> Client:
        client = self._client
        assert client is not None
        return client

    @property
    def long_turn(self) -> asyncio.Lock:
        return self._context.turns.long_turn(self.client.name)

    @property
    def limited_name(self) -> str:
        """Return the client's name; empty for a client without limits."""
        return self.client.name if self.client.is_limited else ""

    @property
    def audit(self) -> RequestAudit:
        audit = self._audit
        assert audit is not None
        return audit

    @property
    def refuses_unassigned(self) -> bool:
        return self._context.authenticator.refuses_unassigned

    @property
    def is_welcome(self) -> bool:
        return self._client is None or self._context.authenticator.is_valid(self._client)

    def leave(self) -> None:
        self.image.close()
        self._leave_broker()
        if self._client is not None:
            self._context.authenticator.limits.leave(self._client)

    # ------------------------------------------------------------------------------- hello

    def greet(self, method: str, args: Args, peer: Peer) -> dict[str, object]:
        """Answer hello; after a refusal the connection ends."""
        if method != "hello":
            raise NotPermitted("the first request must be hello: nothing else is answered before")
        METHODS["hello"].require_count(args)
        hello = read_hello(args[0])
        version = agree(hello.versions)
        authenticator = self._context.authenticator
        client = authenticator.identify(peer, hello.token)
        audit = self._audit = RequestAudit(authenticator.audit, client, peer)
        try:
            client.require_broker(hello.broker_id)
            authenticator.limits.enter(client)
        except (NotPermitted, TooBusy) as error:
            audit.refuse("connection", error)
            raise
        self.hello, self._client = hello, client
        self.meter = audit.metered(authenticator.limits.meter(client))
        try:
            self._wake_log()
            engine = self.engine()
        except NotReady:
            identity = None
        except BaseException:
            self.hello = None
            raise
        else:
            identity = engine.identity
        settings = self._context.settings
        return hello_answer_value(
            HelloAnswer(
                version,
                self._context.server,
                None if identity is None else identity.cluster_id,
                None if identity is None else identity.topic_id,
                None if identity is None else identity.partition_count,
                client.role.value,
                self._context.mode,
                ServiceLimits(
                    settings.frame_bytes_max,
                    settings.pipeline_max,
                    settings.waiting_max,
                    settings.lookups_max,
                    settings.page_max,
                    settings.idle_timeout_ms,
                    settings.timeout_ms_max,
                    settings.assign_max,
                ),
            )
        )

    def engine(self) -> Engine:
        if self._engine is not None and not self.is_left_behind():
            return self._engine
        hello = self.hello
        assert hello is not None
        clusters = self._context.clusters
        may_teach = self.client.role.may(Role.BROKER)
        engine = clusters.find(hello.cluster_id, hello.bootstrap, may_teach=may_teach)
        is_right = clusters.require_right(engine, hello.cluster_id)
        if hello.broker_id is not None and (self.broker is None or not self.broker.is_of(engine)):
            self._leave_broker()
            self.broker = clusters.brokers(engine).meet(hello.broker_id, hello.instance)
        if is_right:
            self._engine = engine
            self.known_reads = self._reads_of(engine)
        return engine

    def _wake_log(self) -> None:
        """A broker that speaks is a sign of life of its cluster."""
        assert self.hello is not None
        if self.hello.broker_id is not None:
            self._context.clusters.wake_logs(self.hello.cluster_id)

    def _leave_broker(self) -> None:
        start, self.broker = self.broker, None
        if start is not None:
            self._context.clusters.leave(start)

    def is_left_behind(self) -> bool:
        """Forget an engine that was taken off; whether there was one."""
        if self._engine is None or self.is_served(self._engine):
            return False
        self._engine = self.known_reads = None
        return True

    def is_served(self, engine: Engine) -> bool:
        return self._context.clusters.is_served(engine)

    def reads(self) -> PartitionQueries:
        return self.known_reads or self._reads_of(self.engine())

    def _reads_of(self, engine: Engine) -> PartitionQueries:
        if self.broker is not None:
            return self.broker.reads
        return engine.reads.of_everyone() if self.client.role is Role.ADMIN else engine.reads

    # ------------------------------------------------------------------------------ requests

    def answer(self, method: str, args: Args) -> object:
        """Return the answer, or what returns it: a coroutine that waits, a generator by steps."""
        ask = READS.get(method)
        if ask is None:
            return self._other(method, args)
        if len(args) != COUNTS[method]:
            return self._optional(method, args)
        reads = self.known_reads
        if reads is None:
            require_sound(method, args, self._bounds)
            try:
                reads = self.reads()
            except NotReady:
                if method == "is_ready":
                    return False
                raise
        try:
            value = ask(reads, args, self._bounds)
        except Stopped:
            if self.is_left_behind():
                return self.answer(method, args)
            raise
        return value if type(value) is not GeneratorType else waiting_requests.served(self, value)

    def _optional(self, method: str, args: Args) -> object:
        METHODS[method].require_count(args)
        options = read_read_options(args[-1], self._bounds.timeout_ms_max)
        question = args[:-1]
        require_sound(method, question, self._bounds)
        if not options.waits:
            return self.answer(method, question)
        return waiting_requests.read(self, method, question, options)

    def _other(self, method: str, args: Args) -> object:
        found = METHODS.get(method)
        if found is None:
            msg = f"there is no method {method!a:.80}"
            raise UnknownMethod(msg)
        found.require_count(args)
        if found.is_write:
            event = read_event(method, args)
            said = args[-1] if _has_options(found, args) else None
            options = read_write_options(said, self._bounds.timeout_ms_max)
            with self.audit.judging_write(method, event):
                self._require_rights(found)
                self.client.require_author(event_broker(event))
            return waiting_requests.write(self, method, event, options)
        return self._others[method](self, found, args)

    def _require(self, method: Method) -> None:
        with self.audit.judging(method.name):
            self._require_rights(method)

    def _require_rights(self, method: Method) -> None:
        self.client.require_role(method.role, method.name)
        if self.broker is not None:
            self.broker.require_current()

    def _again(self, method: Method, args: Args) -> object:
        raise ProtocolError("hello is said once, as the first request of a connection")

    def _ping(self, method: Method, args: Args) -> None:
        self._require(method)

    def _wait_ready(self, method: Method, args: Args) -> object:
        partition = read_partition(args[0])
        said = args[1] if _has_options(method, args) else None
        timeout_ms = read_wait_options(said, self._bounds.timeout_ms_max)
        if timeout_ms is None:
            timeout_ms = self._context.settings.ready_timeout_ms
        self._require(method)
        return waiting_requests.wait_ready(self, partition, timeout_ms / 1_000)

    def _assign(self, method: Method, args: Args) -> object:
        partitions, complete = read_assign(args, self._bounds)
        self._require(method)
        self._wake_log()
        return assignment_requests.assign(self, method.name, partitions, complete=complete)

    def _stop_partitions(self, method: Method, args: Args) -> object:
        partitions = read_stop(args, self._bounds)
        self._require(method)
        return assignment_requests.stop_partitions(self, method.name, partitions)

    def brokers(self, engine: Engine) -> BrokerAssignments:
        return self._context.clusters.brokers(engine)

    def _read_token(self, method: Method, args: Args) -> object:
        self._require(method)
        return self.engine().read_token()

    def _status(self, method: Method, args: Args) -> object:
        self._require(method)
        engine = self.engine()
        brokers = self._context.clusters.shown(engine)
        return in_milliseconds({**self._context.status(engine), "brokers": brokers})

    # ------------------------------------------------------------------------------- looking

    def _list_partitions(self, method: Method, args: Args) -> object:
        place, after, limit = read_listing(args)
        self._require(method)
        limit = min(limit, self._bounds.page_max)
        return operator_queries.list_partitions(
            self, place, after, limit, self._bounds.answer_bytes_max
        )

    def _open_image(self, method: Method, args: Args) -> object:
        partition, size = read_partition(args[0]), read_size(args[1], self._bounds)
        self._require(method)
        return self.image.open(self, partition, size)

    def _read_image(self, method: Method, args: Args) -> object:
        offset, size = uint63(args[0], "an offset"), read_size(args[1], self._bounds)
        self._require(method)
        return self.image.read(offset, size)

    def _close_image(self, method: Method, args: Args) -> None:
        self._require(method)
        self.image.close()

    def _log_bounds(self, method: Method, args: Args) -> object:
        places = read_places(args[0], self._bounds.lookups_max)
        self._require(method)
        return log_queries.log_bounds(self, places)

    def _read_log(self, method: Method, args: Args) -> object:
        topic_id, place, position, skip, size = read_log_question(args[:5], self._bounds)
        said = args[5] if _has_options(method, args) else None
        timeout_ms = read_wait_options(said, self._bounds.timeout_ms_max) or 0
        self._require(method)
        piece = skip, size
        return log_queries.read_log(self, topic_id, place, position, piece, timeout_ms / 1_000)

    _others: ClassVar[Mapping[str, Callable[[ClientSession, Method, Args], Any]]] = {
        "hello": _again,
        "ping": _ping,
        "wait_ready": _wait_ready,
        "assign": _assign,
        "stop_partitions": _stop_partitions,
        "read_token": _read_token,
        "status": _status,
        "list_partitions": _list_partitions,
        "open_image": _open_image,
        "read_image": _read_image,
        "close_image": _close_image,
        "log_bounds": _log_bounds,
        "read_log": _read_log,
    }


def _has_options(method: Method, args: Args) -> bool:
    return len(args) > len(method.args)
