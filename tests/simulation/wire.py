"""
The network between one engine and the topic: a log that delays, loses, repeats and damages. A lost
request has no effect, or a late one; a lost answer comes after the effect. Bytes damaged on the way
arrive sound at the next fetch. Every call ends by its deadline.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rlmm.base.doorbell import Doorbell
from rlmm.errors import AppendRefused, AppendUncertain, LogError, LogUnavailable
from tests.simulation.fetches import FetchLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping
    from random import Random

    from rlmm.log.memory.memory_log import MemoryLogStatistics
    from rlmm.log.protocol import LogBounds, LogIdentity
    from rlmm.records.record_set import RecordSet
    from tests.simulation.topic import SimulatedTopic

    Sent = Callable[[int, bytes], None]
    """Called for every append, before a fault can affect it."""

T = TypeVar("T")
_LATE_S = 6.0


class Wire:
    def __init__(self, topic: SimulatedTopic, random: Random, sent: Sent) -> None:
        self._topic = topic
        self._log = FetchLog(topic)
        self._random = random
        self._sent = sent
        self._bell = Doorbell()
        self._damaged: set[int] = set()
        """Partitions of which the last answer was damaged."""
        self.delay_s = 0.0
        """Longest time that a request, or an answer, is under way."""
        self.loss = 0.0
        self.damage = 0.0
        self.is_cut = False
        self.hangs = False
        """Whether what does not come through hangs until its deadline, instead of failing."""
        self.is_dead = False
        """Whether the machine behind it is gone: then nothing it still asks for happens."""

    def mend(self) -> None:
        self.delay_s = self.loss = self.damage = 0.0
        self.is_cut = False
        self._bell.ring()

    def die(self) -> None:
        """End the machine; requests under way may arrive, and no answer comes back."""
        self.is_dead = True
        self._bell.ring()

    # ------------------------------------------------------------------------ the protocol

    async def identity(self, *, timeout_s: float) -> LogIdentity:
        async def ask() -> LogIdentity:
            await self._there()
            found = await self._log.identity(timeout_s=timeout_s)
            await self._back()
            return found

        return await self._within(ask(), timeout_s, "who the log is")

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        async def ask() -> Mapping[int, LogBounds | LogError]:
            await self._there()
            found = await self._log.bounds(partitions, timeout_s=timeout_s)
            await self._back()
            return found

        try:
            return await self._within(ask(), timeout_s, "the bounds")
        except LogUnavailable as error:
            return {partition: LogUnavailable(str(error)) for partition in partitions}

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        async def ask() -> RecordSet | None:
            await self._there()
            found = await self._log.read(
                partition, position, timeout_s=timeout_s, bytes_max=bytes_max
            )
            await self._back()
            return found

        found = await self._within(ask(), timeout_s, "a read")
        return None if found is None else self._maybe_damaged(found)

    async def epoch_end(
        self, partition: int, leader_epoch: int, *, timeout_s: float
    ) -> tuple[int, int]:
        async def ask() -> tuple[int, int]:
            await self._there()
            found = await self._log.epoch_end(partition, leader_epoch, timeout_s=timeout_s)
            await self._back()
            return found

        return await self._within(ask(), timeout_s, "the end of a leader epoch")

    async def append(self, partition: int, value: bytes, *, timeout_s: float) -> int:
        self._sent(partition, value)
        try:
            async with asyncio.timeout(timeout_s):
                if self.is_cut and not self.hangs:
                    raise LogUnavailable("no connection, nothing was sent")
                await self._hold()
                await self._travel()
                if self._is_lost():
                    self._arrive_late(partition, value)
                    raise AppendUncertain("no answer: the request was lost, or late")
                offset = await self._log.append(partition, value, timeout_s=timeout_s)
                self._topic.history(partition).publish(offset, value)
                await self._hold()
                await self._travel()
                if self._is_lost():
                    raise AppendUncertain("no answer: it was lost")
                return offset
        except TimeoutError:
            raise AppendUncertain(f"no answer in {timeout_s} s") from None

    def statistics(self) -> MemoryLogStatistics:
        return self._log.statistics()

    async def close(self) -> None:
        await self._log.close()

    # ------------------------------------------------------------------------- what happens

    async def _within(self, asked: Coroutine[None, None, T], timeout_s: float, what: str) -> T:
        try:
            async with asyncio.timeout(timeout_s):
                return await asked
        except TimeoutError:
            raise LogUnavailable(f"{what}: no answer in {timeout_s} s") from None

    async def _there(self) -> None:
        await self._pass("no connection")

    async def _back(self) -> None:
        await self._pass("the connection broke")

    async def _pass(self, what: str) -> None:
        if self.is_cut and not self.hangs:
            await asyncio.sleep(0)
            raise LogUnavailable(what)
        await self._hold()
        await self._travel()
        if self._is_lost():
            raise LogUnavailable("no answer: it was lost on the way")

    async def _hold(self) -> None:
        """Wait while the wire is cut, and for ever when the machine is off."""
        while self.is_cut or self.is_dead:
            await self._bell.wait()

    async def _travel(self) -> None:
        if self.delay_s:
            await asyncio.sleep(self._random.random() * self.delay_s)
            await self._hold()

    def _is_lost(self) -> bool:
        return self.loss > 0 and self._random.random() < self.loss

    def _arrive_late(self, partition: int, value: bytes) -> None:
        """Let half of the given-up requests arrive later."""
        if self._random.random() < 0.5:
            loop = asyncio.get_running_loop()
            delay_s = self._random.random() * _LATE_S
            loop.call_later(delay_s, self._arrive, self._topic.topic_id, partition, value)

    def _arrive(self, topic_id: bytes | None, partition: int, value: bytes) -> None:
        topic = self._topic
        if topic_id is not None and topic.topic_id == topic_id and topic.takes_late:
            held = self._topic.partitions[partition]
            if held.fault is None and not held.holds_appends:
                try:
                    self._topic.write(held, [value])
                except AppendRefused:
                    return

    def _maybe_damaged(self, found: RecordSet) -> RecordSet:
        partition = found.partition
        if not found.data or partition in self._damaged or self._random.random() >= self.damage:
            self._damaged.discard(partition)
            return found
        self._damaged.add(partition)
        data = bytearray(found.data)
        data[-1] ^= 1 << self._random.randrange(8)
        return replace(found, data=bytes(data))
