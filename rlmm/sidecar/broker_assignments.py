"""
The brokers of a cluster, and the assignment of its engine.

Partitions belong to a broker's id and outlive its connections. Invariant: an assignment that
follows brokers is the union of their partitions, and of those kept for restarted brokers.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlmm.errors import RlmmError, TooBusy
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar.broker_starts import NOTHING, SETTLE_S, BrokerSessions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.sidecar.broker_starts import BrokerStart, BrokerStatistics
    from rlmm.sidecar.settings import AssignmentLimits

    Partitions = frozenset[TopicIdPartition]

_log = logging.getLogger(__name__)

PARTITION_BYTES: Final = 512
"""Memory of an assigned user partition, beside its topic's name."""
REPLICA_BYTES: Final = 64
"""Memory of it for each further broker that has it."""


class AssignmentCounts:
    """
    User partitions, each with the number of brokers that have it.

    A change costs its own size and a copy of the table: comparing with hundreds of brokers would
    take a second.
    """

    def __init__(self) -> None:
        self._holders: dict[TopicIdPartition, int] = {}
        self.bytes = 0
        """Memory that they take, about."""

    def change(self, before: Partitions, after: Partitions) -> None:
        holders = self._holders
        for partition in after - before:
            held = holders.get(partition, 0)
            holders[partition] = held + 1
            self.bytes += REPLICA_BYTES if held else PARTITION_BYTES + len(partition.topic)
        for partition in before - after:
            left = holders[partition] - 1
            if left:
                holders[partition] = left
                self.bytes -= REPLICA_BYTES
            else:
                del holders[partition]
                self.bytes -= PARTITION_BYTES + len(partition.topic)

    @property
    def all(self) -> Partitions:
        return frozenset(self._holders)


class BrokerAssignments:
    def __init__(self, engine: Engine, limits: AssignmentLimits, *, is_followed: bool) -> None:
        """*is_followed*: the engine answers for the brokers' partitions alone."""
        self.engine: Engine | None = engine
        self._is_followed = is_followed
        self._limits = limits
        self._brokers: dict[int, BrokerSessions] = {}
        self._holdings = AssignmentCounts()
        self._generation = 0
        self.takeovers = 0
        self.given_up = 0
        """Brokers whose partitions were given up, because they had no connection for long."""

    def __contains__(self, broker: BrokerSessions) -> bool:
        return self._brokers.get(broker.broker_id) is broker

    def move_to(self, engine: Engine | None) -> None:
        """Hand all brokers to another engine, or to none; its errors leave all unchanged."""
        has_spoken = any(one.partitions is not None for one in self._brokers.values())
        if engine is not None and self._is_followed and has_spoken:
            engine.reconcile(Assignment.of_user(self._holdings.all))
        self.engine = engine
        for broker in self._brokers.values():
            broker.move_to(engine)

    def meet(self, broker_id: int, instance: Uuid | None) -> BrokerStart:
        """
        Return the start *instance* for one more connection, which is to `leave` it.

        Raises `Superseded`, or `TooBusy` for one broker too many.
        """
        broker = self._brokers.get(broker_id)
        if broker is not None:
            return broker.meet(instance)
        if len(self._brokers) >= self._limits.brokers_max:
            msg = (
                f"broker {broker_id} is one too many: of {len(self._brokers)} brokers it is known "
                "what they have, sidecar.brokers_max allows no more"
            )
            raise TooBusy(msg)
        broker = self._brokers[broker_id] = BrokerSessions(broker_id, self.engine)
        return broker.meet(instance)

    def leave(self, start: BrokerStart) -> None:
        """Drop a connection; forgets a broker without partitions and connections."""
        start.connections -= 1
        self._forget_idle(start.broker)

    def _forget_idle(self, broker: BrokerSessions) -> None:
        if broker.is_idle:
            del self._brokers[broker.broker_id]

    def assign(
        self, start: BrokerStart, partitions: Iterable[TopicIdPartition], *, complete: bool
    ) -> int:
        """
        Give *start* its *partitions*, all of them if *complete*; return the generation.

        Its first report takes over from the start before; unless it is complete, the partitions of
        that one are kept until the next. Raises `Superseded`, or `TooBusy` for partitions that are
        too many, of the broker or of all brokers together.
        """
        start.require_current()
        if complete:
            return self._change(start, frozenset(partitions), NOTHING)
        broker = start.broker
        kept = broker.kept if start.known is not None else broker.held
        has = (start.known or NOTHING).union(partitions)
        return self._change(start, has, kept - has)

    def stop(self, start: BrokerStart, partitions: Collection[TopicIdPartition]) -> int:
        """
        Take *partitions* from *start*; return the generation. Raises `Superseded`.

        Before its first report a start takes nothing from the one before.
        """
        start.require_current()
        if start.known is None:
            return self._generation
        kept = start.broker.kept.difference(partitions)
        return self._change(start, start.known.difference(partitions), kept)

    def settle(self, now_s: float) -> None:
        """
        Give up partitions that brokers have long not mentioned, and those of brokers long gone.

        They are kept where the engine refuses.
        """
        for broker in list(self._brokers.values()):
            if self._is_long_gone(broker, now_s):
                self._give_up(broker)
                continue
            if not broker.kept:
                continue
            if broker.settles_s is None:
                broker.settles_s = now_s + SETTLE_S
            elif now_s >= broker.settles_s and self.engine is not None:
                try:
                    self._reconcile(broker, broker.partitions or NOTHING)
                except RlmmError:
                    continue
                broker.settle()
                self._generation += 1
                self._forget_idle(broker)

    def _is_long_gone(self, broker: BrokerSessions, now_s: float) -> bool:
        if broker.connections:
            broker.gone_s = None
        elif broker.gone_s is None:
            broker.gone_s = now_s
        return broker.gone_s is not None and now_s - broker.gone_s >= self._limits.broker_gone_s

    def _give_up(self, broker: BrokerSessions) -> None:
        if self.engine is None:
            return
        try:
            self._reconcile(broker, NOTHING)
        except RlmmError:
            return
        _log.warning(
            "broker %d has had no connection for sidecar.broker_gone_ms, %.0f s: its %d partitions "
            "are not assigned any more, until it reports them again",
            broker.broker_id, self._limits.broker_gone_s, len(broker.held),
        )  # fmt: skip
        del self._brokers[broker.broker_id]
        self.given_up += 1
        self._generation += 1

    def _change(self, start: BrokerStart, partitions: Partitions, kept: Partitions) -> int:
        broker = start.broker
        if partitions == start.known and kept == broker.kept:
            return self._generation
        most = self._limits.broker_partitions_max
        if len(partitions) > max(most, len(start.known or NOTHING)):
            msg = (
                f"broker {broker.broker_id} reports {len(partitions)} partitions, "
                f"sidecar.broker_partitions_max allows {most}"
            )
            raise TooBusy(msg)
        self._reconcile(broker, partitions | kept)
        takeovers = broker.takeovers
        broker.given(start, partitions, kept)
        self.takeovers += broker.takeovers - takeovers
        self._generation += 1
        return self._generation

    def _reconcile(self, broker: BrokerSessions, held: Partitions) -> None:
        """Answer for *held* because of *broker*; changes nothing where the engine refuses."""
        before, bytes_before = broker.held, self._holdings.bytes
        self._holdings.change(before, held)
        if self._holdings.bytes > max(self._limits.assigned_bytes_max, bytes_before):
            self._holdings.change(held, before)
            msg = (
                f"the partitions of all brokers take {bytes_before} bytes, with those that broker "
                f"{broker.broker_id} reports they take more than sidecar.assigned_bytes_max, "
                f"{self._limits.assigned_bytes_max}"
            )
            raise TooBusy(msg)
        if self._is_followed and self.engine is not None:
            try:
                self.engine.reconcile(Assignment.of_user(self._holdings.all))
            except BaseException:
                self._holdings.change(held, before)
                raise

    def statistics(self) -> Mapping[int, BrokerStatistics]:
        return {number: one.statistics() for number, one in self._brokers.items()}
