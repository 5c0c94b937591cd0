"""
Traffic of every kind until all of it is in the tier alone, then every way to read it compared.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlmm.metadata.segment import SegmentMetadata
from tests.kafka.clients import PAUSE_S, end_offsets
from tests.kafka.ledger import CODECS, LEVELS, Entry, Ledger, Traffic, offset_at, offsets, read
from tests.kafka.process import ProcessFailed
from tests.kafka.stock_consumer import OffsetAt, Read, StockConsumer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.kafka.tiered import TieredKafka

SEED = 20_261_119
DEADLINE_S = 60.0
PLACES = 4


@dataclass(frozen=True, slots=True)
class CoreStory:
    kafka: TieredKafka
    ledger: Ledger
    partitions: int
    chance: random.Random
    aborted_through: list[Entry] = field(default_factory=list)
    """What was written in the aborted transaction that was open while others wrote."""

    @property
    def topic(self) -> str:
        return self.ledger.topic

    @classmethod
    def of(cls, kafka: TieredKafka, topic: str, *, partitions: int = 2) -> CoreStory:
        return cls(kafka, Ledger(topic), partitions, random.Random(SEED))

    def traffic(self) -> Traffic:
        return Traffic(self.kafka.login, self.ledger, self.chance, partitions=self.partitions)

    async def produce(self, count: int = 12) -> None:
        """Produce in five codecs, in and out of transactions, two of which stay open meanwhile."""
        await self.traffic().plain(2 * count)
        through = self.traffic(), self.traffic()
        async with (
            through[0].open_transaction(is_committed=False) as send_aborted,
            through[1].open_transaction(is_committed=True) as send_committed,
        ):
            begun = await asyncio.gather(send_aborted(count), send_committed(count))
            await asyncio.gather(*(self._of_codec(codec, count) for codec in CODECS))
            ended = await asyncio.gather(send_aborted(count), send_committed(count))
            self.aborted_through.extend([*begun[0], *ended[0]])
        await self.traffic().plain(count, "zstd", is_idempotent=True)

    async def _of_codec(self, codec: str | None, count: int) -> None:
        traffic = self.traffic()
        await traffic.plain(count, codec)
        await traffic.plain(count, codec, is_idempotent=True)
        if codec is not None:  # transactions without one are the two that are open
            await traffic.transaction(count, codec)
            await traffic.transaction(count, codec, is_committed=False)

    async def ends(self) -> dict[int, int]:
        return await end_offsets(self.kafka.login, self.topic, self.partitions)

    async def wait_until_in_the_tier_alone(self) -> None:
        ends: dict[int, int] = {}
        try:
            async with asyncio.timeout(DEADLINE_S):
                while True:
                    # Asked anew: markers may be written after a transaction's end was told.
                    ends = await self.ends()
                    if self._is_empty_locally(ends):
                        return
                    await asyncio.sleep(PAUSE_S)
        except TimeoutError as error:
            what = f"{self.topic} is in the tier as a whole, up to {ends}, and nowhere else"
            raise ProcessFailed(f"{DEADLINE_S:g} s passed before {what}") from error

    def _is_empty_locally(self, ends: Mapping[int, int]) -> bool:
        return all(
            [path.stem for path in self.kafka.local_segments(self.topic, partition)]
            == [f"{end:020d}"]
            for partition, end in ends.items()
        )

    def segments(self) -> list[SegmentMetadata]:
        events = (found.event for found in self.kafka.metadata_events(self.topic))
        return [event for event in events if isinstance(event, SegmentMetadata)]

    def segments_of(self, entries: Sequence[Entry]) -> dict[int, int]:
        places = {(one.partition, one.offset) for one in entries}
        holding = [
            one.id.partition.partition
            for one in self.segments()
            if any(
                (one.id.partition.partition, offset) in places
                for offset in range(one.start_offset, one.last_offset + 1)
            )
        ]
        return {partition: holding.count(partition) for partition in range(self.partitions)}

    # ------------------------------------------------------------------------------------ reading

    def places(self, partition: int) -> list[int]:
        last = max(offsets(self.ledger.expected("read_uncommitted", partition)))
        return [0, *sorted(self.chance.randint(1, last) for _ in range(PLACES)), last]

    def times(self, partition: int) -> list[int]:
        known = [one.timestamp_ms for one in self.ledger.entries if one.partition == partition]
        drawn = [stamp + late for stamp in self.chance.sample(known, PLACES) for late in (0, 1)]
        return [min(known) - 1, *sorted(drawn), max(known)]

    async def assert_read(self, *, levels: Sequence[str] = LEVELS) -> None:
        for level in levels:
            await self.assert_read_by_aiokafka(level)
            await self.assert_read_by_java(level)
        await self.assert_times()

    async def assert_read_by_aiokafka(self, level: str) -> None:
        for partition in range(self.partitions):
            for first in self.places(partition):
                found = await read(
                    self.kafka.login, self.topic, level, partition=partition, first=first
                )
                assert found == self.ledger.expected(level, partition, first), (level, first)

    async def assert_read_by_java(self, level: str) -> None:
        wanted = [
            Read(partition, first)
            for partition in range(self.partitions)
            for first in self.places(partition)
        ]
        for question, found in zip(
            wanted, await self.stock_consumer(level).read(*wanted), strict=True
        ):
            expected = self.ledger.expected(level, question.partition, question.first)
            assert found == expected, (level, question)

    def stock_consumer(self, level: str = "read_uncommitted") -> StockConsumer:
        return StockConsumer(self.kafka.node.jars, self.kafka.bootstrap, self.topic, level)

    async def assert_times(self) -> None:
        asked = [
            OffsetAt(partition, stamp)
            for partition in range(self.partitions)
            for stamp in self.times(partition)
        ]
        told = await self.stock_consumer().offsets_at(*asked)
        assert sum(found is not None for found in told) > self.partitions * PLACES
        for (partition, stamp), found in zip(asked, told, strict=True):
            assert await offset_at(self.kafka.login, self.topic, stamp, partition) == found
            self._judge_time(partition, stamp, found)

    def _judge_time(self, partition: int, stamp: int, told: int | None) -> None:
        """A marker of a transaction has a time too, and may be the broker's answer."""
        known = self.ledger.expected("read_uncommitted", partition)
        expected = self.ledger.at_time(partition, stamp)
        if told not in offsets(known):
            first = known[0].offset
            assert told is None or first < told, (partition, stamp, told)
            assert expected is None or (told is not None and told < expected), (stamp, told)
        else:
            assert told == expected, (partition, stamp)
