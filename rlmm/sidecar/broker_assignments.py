"""
The brokers of a cluster, and the assignment of its engine.

Partitions belong to a broker's id and outlive its connections. Invariant: an assignment that
follows brokers is the union of their partitions, and of those kept for restarted brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import RlmmError, TooBusy
from rlmm.metadata.assignment import Assignment
from rlmm.sidecar.broker_starts import NOTHING, SETTLE_S, BrokerSessions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.metadata.ids import TopicIdPartition, Uuid
    from rlmm.sidecar.broker_starts import BrokerStart, BrokerStatistics

    Partitions = frozenset[TopicIdPartition]


class AssignmentCounts:
    """
    User partitions, each with the number of brokers that have it.

    A change costs its own size and a copy of the table: comparing with hundreds of brokers would
    take a second.
    """

    def __init__(self) -> None:
        self._holders: dict[TopicIdPartition, int] = {}

    def change(self, before: Partitions, after: Partitions) -> None:
        holders = self._holders
        for partition in after - before:
            holders[partition] = holders.get(partition, 0) + 1
        for partition in before - after:
            left = holders[partition] - 1
            if left:
                holders[partition] = left
            else:
                del holders[partition]

    @property
    def all(self) -> Partitions:
        return frozenset(self._holders)


class BrokerAssignments:
    def __init__(self, engine: Engine, *, is_followed: bool, brokers_max: int) -> None:
        """*is_followed*: the engine answers for the brokers' partitions alone."""
        self.engine: Engine | None = engine
        self._is_followed = is_followed
        self._brokers_max = brokers_max
        self._brokers: dict[int, BrokerSessions] = {}
        self._holdings = AssignmentCounts()
        self._generation = 0
        self.takeovers = 0

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
        if len(self._brokers) >= self._brokers_max:
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
        that one are kept until the next. Raises `Superseded`.
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
        """Give up partitions that brokers have long not mentioned, unless the engine refuses."""
        for broker in list(self._brokers.values()):
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

    def _change(self, start: BrokerStart, partitions: Partitions, kept: Partitions) -> int:
        broker = start.broker
        if partitions == start.known and kept == broker.kept:
            return self._generation
        self._reconcile(broker, partitions | kept)
        takeovers = broker.takeovers
        broker.given(start, partitions, kept)
        self.takeovers += broker.takeovers - takeovers
        self._generation += 1
        return self._generation

    def _reconcile(self, broker: BrokerSessions, held: Partitions) -> None:
        """Answer for *held* because of *broker*; changes nothing where the engine refuses."""
        before = broker.held
        self._holdings.change(before, held)
        if self._is_followed and self.engine is not None:
            try:
                self.engine.reconcile(Assignment.of_user(self._holdings.all))
            except BaseException:
                self._holdings.change(held, before)
                raise

    def statistics(self) -> Mapping[int, BrokerStatistics]:
        return {number: one.statistics() for number, one in self._brokers.items()}
