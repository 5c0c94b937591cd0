"""
What each broker said it leads and follows; and what the engine answers for because of it.

Leaders and followers are alike. What a broker was given belongs to its id and outlives every
connection; a broker that was started again has said nothing yet. Invariant: where the engine's
assignment follows the brokers it is the union of what they have, what a broker had before it was
started again included, so that nothing is given up that will be wanted in a moment.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlmm.assignment import Assignment
from rlmm.doorbell import Doorbell
from rlmm.errors import NotAssigned, NotPermitted, NotReady
from rlmm.progress import Why

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlmm.engine import Engine
    from rlmm.gate.reads import Reads
    from rlmm.metadata.ids import TopicIdPartition, Uuid

_NONE: frozenset[TopicIdPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class Share:
    """What one broker has. A value: every change gives another one."""

    instance: Uuid | None = None
    """The start of the broker that this is said by; `None` where it was not told."""
    partitions: frozenset[TopicIdPartition] | None = None
    """`None`: nothing was said yet."""
    before: frozenset[TopicIdPartition] = _NONE
    """What it had before it was started again, until it says anew."""

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What is to be read for it."""
        return self.before if self.partitions is None else self.partitions

    def met(self, instance: Uuid | None) -> Share:
        """Somebody says to be this broker, in its start *instance*."""
        if instance is None or instance == self.instance:
            return self
        if self.instance is None and self.partitions is None:
            return replace(self, instance=instance)
        return Share(instance, None, self.held)

    def given(self, partitions: Iterable[TopicIdPartition], *, complete: bool) -> Share:
        """It has *partitions*, and no others if that is *complete*."""
        known = _NONE if complete or self.partitions is None else self.partitions
        return Share(self.instance, known.union(partitions))

    def without(self, partitions: Collection[TopicIdPartition]) -> Share:
        """It does not have *partitions* any more; of what it never had nothing comes."""
        known = None if self.partitions is None else self.partitions.difference(partitions)
        return Share(self.instance, known, self.before.difference(partitions))


class Broker:
    """One broker of one cluster: what it has, and the questions that it may ask."""

    def __init__(self, broker_id: int, engine: Engine) -> None:
        self.broker_id = broker_id
        self.share = Share()
        self.changed = Doorbell()
        self.reads: Reads = engine.reads.narrowed(self.require)
        self._engine = engine

    def is_of(self, engine: Engine) -> bool:
        """Whether it is a broker of this engine's cluster."""
        return self._engine is engine

    def require(self, partition: TopicIdPartition) -> None:
        """Refuse what this broker was not given, and everything while it has not said what."""
        known = self.share.partitions
        if known is not None and partition in known:
            return
        place = self._engine.place_of(partition)
        if known is None:
            msg = (
                f"{partition} is not ready: broker {self.broker_id} has not said yet what it "
                "leads and follows"
            )
            raise NotReady(
                msg,
                reason=Why.ASSIGNMENT_UNKNOWN,
                user_partition=str(partition),
                metadata_partition=place,
            )
        msg = (
            f"{partition}, in metadata partition {place}, is not one of the {len(known)} that "
            f"broker {self.broker_id} was given"
        )
        raise NotAssigned(msg, metadata_partition=place)

    async def wait_given(self, deadline_s: float) -> None:
        """Wait until it is known what the broker has, or for the deadline."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline_s):
                while self.share.partitions is None:
                    await self.changed.wait()


class BrokerAssignments:
    """The brokers of one cluster."""

    def __init__(self, engine: Engine, *, is_followed: bool) -> None:
        """*is_followed*: the engine answers for what the brokers have, and for nothing else."""
        self._engine = engine
        self._is_followed = is_followed
        self._brokers: dict[int, Broker] = {}
        self._generation = 0

    def meet(self, broker_id: int, instance: Uuid | None) -> Broker:
        """The broker of this id, which is in its start *instance*."""
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = Broker(broker_id, self._engine)
        broker.share = broker.share.met(instance)
        return broker

    def assign(
        self,
        broker: Broker,
        instance: Uuid | None,
        partitions: Iterable[TopicIdPartition],
        *,
        complete: bool,
    ) -> int:
        """*broker* has *partitions*, and no others if that is *complete*; the generation."""
        return self._change(broker, instance, broker.share.given(partitions, complete=complete))

    def stop(
        self, broker: Broker, instance: Uuid | None, partitions: Collection[TopicIdPartition]
    ) -> int:
        """*broker* does not have *partitions* any more; the generation."""
        return self._change(broker, instance, broker.share.without(partitions))

    def _change(self, broker: Broker, instance: Uuid | None, share: Share) -> int:
        current = broker.share
        if None not in {instance, current.instance} and instance != current.instance:
            msg = (
                f"broker {broker.broker_id} was started again since: what this connection says is "
                "of an earlier start"
            )
            raise NotPermitted(msg)
        if share == current:
            return self._generation
        if self._is_followed:
            held = [one.share.held for one in self._brokers.values() if one is not broker]
            self._engine.reconcile(Assignment.of_user(share.held.union(*held)))
        broker.share = share
        self._generation += 1
        broker.changed.ring()
        return self._generation

    def statistics(self) -> Mapping[int, int | None]:
        """How many partitions each broker has; `None` where it has not said yet."""
        return {
            number: None if one.share.partitions is None else len(one.share.partitions)
            for number, one in self._brokers.items()
        }
