"""
A stand-in for a service, in memory on one event loop, for tests of brokers in Python.

It uses the service's state machine and frames, so it answers nothing that a service could not.
`faults` are injected on purpose.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from broker_adapter.assignment import OwnAssignment
from broker_adapter.connection import refusal_here, unanswered
from broker_adapter.settings import ClientSettings
from broker_adapter.stand_in_answers import ANSWERS, Share
from broker_adapter.statistics import ClientCounters
from broker_adapter.verbs import Verbs
from rlmm.errors import InvalidArgument, NotAssigned, RlmmError, SidecarUnavailable, Stopped
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.python_shard import PythonShard
from rlmm.wire.framing import HEAD_BYTES
from rlmm.wire.messages import answer_frame, read_answer, read_request, refusal_frame, request_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_adapter.calls import Call
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.verdicts import RejectReason

A = TypeVar("A")

CLUSTER_ID: Final = "stand-in"
LOOKUPS_MAX: Final = 1_000


@dataclass
class InjectedFaults:
    is_unavailable: bool = False
    """No request reaches the service."""
    is_not_ready: bool = False
    """Every question and every write is refused: the history is not read yet."""
    rejection: RejectReason | None = None
    """Every event is refused by the state machine, with nothing stored."""
    refusals: deque[RlmmError] = field(default_factory=deque)
    """The next requests are refused with these, in turn."""
    lost_requests: int = 0
    """As many requests are sent and never arrive."""
    lost_answers: int = 0
    """As many requests are carried out, and their answers never arrive."""


class StandInService:
    def __init__(self, partition_count: int = 4) -> None:
        # Tests on it shall be the same on every machine, with the native core and without.
        self.shards = [PythonShard(number) for number in range(partition_count)]
        self.faults = InjectedFaults()
        self.shares: dict[int, Share] = {}
        """What each broker has; one that is not in here has said nothing yet."""

    def client(
        self, broker_id: int | None = None, settings: ClientSettings | None = None
    ) -> StandIn:
        """Return a broker's client; without *broker_id* a client that sees everything."""
        return StandIn(self, broker_id, settings)

    def place_of(self, partition: TopicIdPartition) -> int:
        return metadata_partition_for(partition.topic_id, partition.partition, len(self.shards))

    def answer(self, broker_id: int | None, payload: bytes) -> bytes:
        request_id, method, args = read_request(payload)
        try:
            if self.faults.refusals:
                raise self.faults.refusals.popleft()
            if method not in ANSWERS:
                msg = f"the stand-in does not answer {method}"
                raise InvalidArgument(msg)
            value = ANSWERS[method](self, broker_id, args)
        except RlmmError as error:
            return refusal_frame(request_id, error)
        return answer_frame(request_id, value)


class _Memory:
    def __init__(self, service: StandInService, broker_id: int | None) -> None:
        self._service = service
        self._broker_id = broker_id
        self._assignment = OwnAssignment()
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_accepted = True
        self.lookups_max = LOOKUPS_MAX
        self.timeout_ms_max = 0

    @property
    def is_connected(self) -> bool:
        return not self._service.faults.is_unavailable and not self._closed.done()

    async def exchange(
        self, call: Call[A], options: Mapping[str, object] | None, deadline_s: float
    ) -> A:
        method = call.method
        await asyncio.sleep(0)
        if self._closed.done():
            raise Stopped("the client is closed")
        faults = self._service.faults
        if faults.is_unavailable:
            raise SidecarUnavailable(f"{method} was not sent: the service is not there")
        self._tell_whole()
        request = request_frame(0, method, call.args_with(options))
        if faults.lost_requests:
            faults.lost_requests -= 1
            raise unanswered(method, SidecarUnavailable("the connection broke"))
        answer = self._service.answer(self._broker_id, request[HEAD_BYTES:])
        if faults.lost_answers:
            faults.lost_answers -= 1
            raise unanswered(method, SidecarUnavailable("the connection broke"))
        _, error, result = read_answer(answer[HEAD_BYTES:])
        if isinstance(error, NotAssigned):
            self._assignment.require_accepted(error, call, is_accepted=self.is_accepted)
        if error is not None:
            raise refusal_here(method, error)
        return call.answer(result)

    async def partition_count(self, deadline_s: float) -> int:
        del deadline_s
        return len(self._service.shards)

    def change(
        self, leaders: Iterable[TopicIdPartition], followers: Iterable[TopicIdPartition]
    ) -> None:
        self._require_broker()
        self._assignment.add(leaders, followers)
        self.is_accepted = False
        self._tell_whole()

    def stop(self, partitions: Iterable[TopicIdPartition]) -> None:
        self._require_broker()
        self._assignment.remove(partitions)
        self.is_accepted = False
        self._tell_whole()

    def _tell_whole(self) -> None:
        if self.is_accepted or self._service.faults.is_unavailable:
            return
        for message in self._assignment.whole():
            request = request_frame(0, message.method, message.args)
            answer = self._service.answer(self._broker_id, request[HEAD_BYTES:])
            if read_answer(answer[HEAD_BYTES:]).error is not None:
                return
        self.is_accepted = True

    def _require_broker(self) -> None:
        if self._broker_id is None:
            msg = "only a broker leads and follows partitions: this client was given no broker_id"
            raise InvalidArgument(msg)

    async def pause(self, pause_s: float) -> None:
        await asyncio.wait((self._closed,), timeout=pause_s)

    async def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)


class StandIn(Verbs):
    def __init__(
        self,
        service: StandInService | None = None,
        broker_id: int | None = None,
        settings: ClientSettings | None = None,
    ) -> None:
        """Make a service where *service* is `None`; answer for *broker_id*'s share."""
        self.service = service or StandInService()
        memory = _Memory(self.service, broker_id)
        super().__init__(memory, settings or ClientSettings(), ClientCounters())
