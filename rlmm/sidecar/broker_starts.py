"""
The starts of one broker, and its partitions, leaders and followers alike.

The earlier start's partitions stay in force until the first report of a new one, and those that a
piecemeal report has not mentioned until it has, or for a time. Invariant: an earlier start takes
nothing from a later one that has reported.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.base.doorbell import Doorbell
from rlmm.errors import NotAssigned, NotReady, Superseded
from rlmm.gate.admission import Gate
from rlmm.gate.reads import PartitionQueries
from rlmm.log.replay_progress import NotReadyReason

if TYPE_CHECKING:
    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition, Uuid

_log = logging.getLogger(__name__)

STARTS_KEPT: Final = 64
"""Starts of one broker that are remembered, beside connected ones."""
SETTLE_S: Final = 30.0
"""Time for a restarted broker to report in pieces, as long as a client waits for one."""
NOTHING: Final[frozenset[TopicIdPartition]] = frozenset()
_NOBODY: Final = Gate()
"""Refuses all as `NotReady`, for brokers without an engine."""


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    partitions: int | None
    connections: int
    takeovers: int
    superseded: int
    """Requests refused after another start took over. Rises where two brokers have one id."""


class BrokerStart:
    __slots__ = ("_is_named", "broker", "connections", "instance", "number", "reads")

    def __init__(self, broker: BrokerSessions, instance: Uuid | None, number: int) -> None:
        self.broker = broker
        self.instance = instance
        """`None`: hello named none. Such starts speak for the start that reported last."""
        self.number = number
        self.connections = 0
        self.reads: PartitionQueries
        self.move()
        self._is_named = False

    def move(self) -> None:
        engine = self.broker.engine
        self.reads = (PartitionQueries(_NOBODY) if engine is None else engine.reads).narrowed(
            self.require
        )

    @property
    def known(self) -> frozenset[TopicIdPartition] | None:
        """`None` before the first report."""
        broker = self.broker
        return broker.partitions if broker.current is self or self.instance is None else None

    @property
    def is_superseded(self) -> bool:
        current = self.broker.current
        return current is not None and self.instance is not None and self.number < current.number

    def is_of(self, engine: Engine) -> bool:
        return self.broker.engine is engine

    def require_current(self) -> None:
        if not self.is_superseded:
            return
        broker = self.broker
        assert broker.current is not None
        broker.superseded += 1
        msg = (
            f"broker {broker.broker_id} was started again: this request is of its earlier start "
            f"{_named(self)}, the current one is {_named(broker.current)}. Either two brokers have "
            "one id, or clients of one broker name different instances, or an earlier process has "
            "not ended"
        )
        if not self._is_named:
            self._is_named = True
            _log.warning("an earlier start of a broker is refused: %s", msg)
        raise Superseded(msg)

    def require(self, partition: TopicIdPartition) -> None:
        """Refuse partitions that the broker does not have, and all before its first report."""
        broker = self.broker  # nearly every question of a broker comes through here
        known = broker.partitions if broker.current is self or self.instance is None else None
        if known is not None and partition in known:
            return
        self.require_current()
        broker_id, engine = broker.broker_id, broker.engine
        place = _NOBODY.place_of(partition) if engine is None else engine.place_of(partition)
        if known is None or partition in broker.kept:
            whether = "what it has" if known is None else "whether it has it still"
            msg = f"{partition} is not ready: broker {broker_id} has not said yet {whether}"
            raise NotReady(
                msg,
                reason=NotReadyReason.ASSIGNMENT_UNKNOWN,
                user_partition=str(partition),
                metadata_partition=place,
            )
        msg = (
            f"{partition}, in metadata partition {place}, is not one of the {len(known)} that "
            f"broker {broker_id} was given"
        )
        raise NotAssigned(msg, metadata_partition=place)

    async def wait_given(self, partition: TopicIdPartition, deadline_s: float) -> None:
        """Wait until *deadline_s*, or until it is known whether the broker has *partition*."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline_s):
                while not self.is_superseded and (
                    self.known is None or partition in self.broker.kept
                ):
                    await self.broker.changed.wait()


class BrokerSessions:
    def __init__(self, broker_id: int, engine: Engine | None) -> None:
        self.broker_id = broker_id
        self.engine = engine
        self.partitions: frozenset[TopicIdPartition] | None = None
        self.kept = NOTHING
        """Partitions from before a restart that the broker has not reported yet."""
        self.settles_s: float | None = None
        """When *kept* is given up, by the event loop's clock; `None`: decided at the next look."""
        self.gone_s: float | None = None
        """Since when it has no connection, by the event loop's clock."""
        self.current: BrokerStart | None = None
        """The start that reported last."""
        self.changed = Doorbell()
        self.takeovers = 0
        self.superseded = 0
        self._starts: dict[Uuid | None, BrokerStart] = {}
        self._last_number = 0

    @property
    def connections(self) -> int:
        return sum(start.connections for start in self._starts.values())

    @property
    def is_idle(self) -> bool:
        return not self.held and not self.connections

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        return (self.partitions or NOTHING) | self.kept

    def meet(self, instance: Uuid | None) -> BrokerStart:
        """Count one more connection of a start; `Superseded` for an earlier start."""
        start = self._starts.get(instance)
        if start is None:
            number = 0
            if instance is not None:
                number = self._last_number = self._last_number + 1
            start = self._starts[instance] = BrokerStart(self, instance, number)
        start.require_current()
        start.connections += 1
        if len(self._starts) > STARTS_KEPT:
            self._forget_one()
        return start

    def move_to(self, engine: Engine | None) -> None:
        self.engine = engine
        for start in self._starts.values():
            start.move()

    def _forget_one(self) -> None:
        for instance, start in self._starts.items():
            if not start.connections and start is not self.current:
                del self._starts[instance]
                return

    def given(
        self,
        start: BrokerStart,
        partitions: frozenset[TopicIdPartition],
        kept: frozenset[TopicIdPartition],
    ) -> None:
        """Take the report of *start*: it has *partitions*, and did not mention *kept*."""
        before = self.current
        if before is None or start.instance is not None:
            self.current = start
        if before is not None and before is not self.current:
            self.takeovers += 1
            self.settles_s = None
            if before.connections and before.instance is not None:
                _log.warning(
                    "start %s of broker %d takes over, and %d connections of its start %s are open "
                    "still, whose requests are refused from now on",
                    _named(start), self.broker_id, before.connections, _named(before),
                )  # fmt: skip
            else:
                _log.info("broker %d was started again: %s", self.broker_id, _named(start))
        self.partitions, self.kept = partitions, kept
        for one in self._starts.values():
            one.reads.lookups.take_back()
        self.changed.ring()

    def settle(self) -> None:
        """Give up *kept*: the broker did not mention it in time."""
        _log.info(
            "broker %d did not report within %.0f s of its restart that it still has %d of its "
            "earlier partitions: they are not assigned any more",
            self.broker_id, SETTLE_S, len(self.kept),
        )  # fmt: skip
        self.kept = NOTHING
        self.changed.ring()

    def statistics(self) -> BrokerStatistics:
        count = None if self.partitions is None else len(self.partitions)
        return BrokerStatistics(count, self.connections, self.takeovers, self.superseded)


def _named(start: BrokerStart) -> str:
    return "without an instance" if start.instance is None else start.instance.hex()
