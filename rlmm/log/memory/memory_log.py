"""
The `memory` log: the whole protocol over a topic in memory, for tests and trials.

Batches, offsets and errors are those of a real log. `rlmm.log.memory.script` decides faults, never
chance. Every call first lets other tasks run once, as a call to a broker would.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlmm.errors import (
    AppendRefused,
    AppendUncertain,
    ConfigError,
    LogError,
    LogRecreated,
    LogUnavailable,
    TopicAbsent,
)
from rlmm.log.memory.partition import AppendOutcome, BoundsFault
from rlmm.log.memory.topic import ring
from rlmm.log.protocol import LogStatistics
from rlmm.log.request_checks import require_partition, require_position, require_value

if TYPE_CHECKING:
    from collections.abc import Collection

    from rlmm.log.memory.partition import MemoryPartition
    from rlmm.log.memory.topic import MemoryTopic
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.records.record_set import RecordSet


@dataclass(frozen=True, slots=True)
class MemoryLogStatistics(LogStatistics):
    partitions: int
    batches: int
    size_bytes: int


class MemoryLog:
    """A `MetadataLog` on a topic in memory; several may be open on one topic, one after another."""

    def __init__(
        self, topic: MemoryTopic, *, is_observer: bool = False, partition_count: int | None = None
    ) -> None:
        """Open *topic*; *partition_count* is the configured count, None accepts any."""
        if topic.identity is None:
            raise ConfigError("the topic does not exist")
        self._topic = topic
        self._identity = topic.identity
        self._is_observer = is_observer
        self._partition_count = partition_count
        self._is_closed = False

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        """Return the identity of the topic, and bind this log to it."""
        del timeout_s  # nothing here ever waits
        await asyncio.sleep(0)
        if self._is_closed:
            raise _closed("identity")
        if self._topic.fault is not None:
            error, reason = self._topic.fault
            raise error(reason)
        identity = self._topic.identity
        if identity is None:
            raise TopicAbsent("the topic does not exist: create it, or name another")
        if self._partition_count not in {None, identity.partition_count}:
            raise ConfigError(
                f"the topic has {identity.partition_count} partitions, "
                f"the configuration says {self._partition_count}"
            )
        self._identity = identity
        return identity

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> dict[int, LogBounds | LogError]:
        """Ask for the bounds of each partition; one that hangs has its error at the deadline."""
        for partition in partitions:
            require_partition(partition, self._identity.partition_count)
        await asyncio.sleep(0)
        answers = {partition: self._bounds_now(partition) for partition in partitions}
        hanging = [partition for partition, answer in answers.items() if answer is None]
        try:
            async with self._topic.clock.timeout(timeout_s):
                for partition in hanging:
                    while (answer := self._bounds_now(partition)) is None:
                        await self._topic.partitions[partition].bell.wait()
                    answers[partition] = answer
        except TimeoutError:
            pass
        if self._is_closed:
            raise _closed("bounds")
        return {
            partition: answer or LogUnavailable(f"partition {partition}: no bounds in {timeout_s}s")
            for partition, answer in answers.items()
        }

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """Return the records from *position* on as soon as there are any; None at the deadline."""
        require_partition(partition, self._identity.partition_count)
        require_position(position, bytes_max)
        await asyncio.sleep(0)
        try:
            async with self._topic.clock.timeout(timeout_s):
                while True:
                    held = self._reachable(partition)
                    found = held.select(position, bytes_max)
                    if found is not None:
                        return found
                    await held.bell.wait()
        except TimeoutError:
            return None

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int]:
        del timeout_s
        await asyncio.sleep(0)
        return self._reachable(partition).epoch_end(leader_epoch)

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        """Store one event as a batch of its own, as the script has it, and return its offset."""
        require_partition(partition, self._identity.partition_count)
        require_value(value)
        if self._is_observer:
            msg = f"partition {partition}: an observer has no producer, nothing is written"
            raise AppendRefused(msg)
        await asyncio.sleep(0)
        try:
            async with self._topic.clock.timeout(timeout_s):
                while (held := self._reachable(partition)).holds_appends:
                    await held.bell.wait()
        except TimeoutError:
            msg = f"partition {partition}: no answer to an append in {timeout_s}s"
            raise AppendUncertain(msg) from None
        return self._append_now(held, value)

    def statistics(self) -> MemoryLogStatistics:
        held = list(self._topic.partitions)
        return MemoryLogStatistics(
            len(held),
            sum(len(partition.batches) for partition in held),
            sum(partition.size_bytes for partition in held),
        )

    async def close(self) -> None:
        """End every call of this log; the topic and its other logs are as before."""
        self._is_closed = True
        ring(self._topic.partitions)
        await asyncio.sleep(0)

    def _append_now(self, held: MemoryPartition, value: bytes) -> int:
        plan = held.append_plan
        outcome = plan.popleft() if plan else AppendOutcome.STORED
        if outcome is AppendOutcome.REFUSED:
            raise AppendRefused(f"partition {held.number}: the append was refused")
        offset = None
        if outcome is not AppendOutcome.UNCERTAIN_LOST:
            offset = self._topic.write(held, [value])
        if offset is None or outcome is AppendOutcome.UNCERTAIN_STORED:
            msg = f"partition {held.number}: it is unknown whether the event was stored"
            raise AppendUncertain(msg)
        return offset

    def _reachable(self, partition: int) -> MemoryPartition:
        if self._is_closed:
            raise _closed(f"partition {partition}")
        for fault in (self._topic.fault, self._partition_fault(partition)):
            if fault is not None:
                error, reason = fault
                raise error(f"partition {partition}: {reason}")
        return self._topic.partitions[partition]

    def _partition_fault(self, partition: int) -> tuple[type[LogError], str] | None:
        if self._topic.topic_id is None:
            return LogUnavailable, "the topic does not exist"
        if self._topic.topic_id != self._identity.topic_id:
            told, now = self._identity.topic_id, self._topic.topic_id
            return LogRecreated, f"the topic with id {told} is gone, another has the id {now}"
        count, before = len(self._topic.partitions), self._identity.partition_count
        if count != before:
            return LogRecreated, f"the topic had {before} partitions and has {count} now"
        return self._topic.partitions[partition].fault

    def _bounds_now(self, partition: int) -> LogBounds | LogError | None:
        """Return the bounds, or the error instead of them; None when no answer comes."""
        try:
            held = self._reachable(partition)
        except LogError as error:
            return error
        match held.bounds_fault:
            case BoundsFault.HANGS:
                return None
            case BoundsFault.MISSING:
                return LogUnavailable(f"partition {partition}: the answer does not name it")
            case BoundsFault.FAILS:
                return LogUnavailable(f"partition {partition}: its bounds could not be asked")
            case None:
                return held.bounds


def _closed(what: str) -> LogUnavailable:
    return LogUnavailable(f"{what}: the log is closed")
