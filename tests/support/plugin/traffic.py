"""A producer, and consumers that read from the start again and again."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError

from tests.kafka.clients import until
from tests.kafka.ledger import CODECS, LEVELS, Entry, Ledger, Traffic, entry_of, read

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from tests.kafka.login import Login

ROUND = 10
DEADLINE_S = 120.0
"""Of what is written or read across an outage: a broker that was killed needs some seconds."""


class Pass(NamedTuple):
    level: str
    end: int
    entries: list[Entry]


class Writing:
    def __init__(
        self,
        login: Login,
        ledger: Ledger,
        chance: random.Random,
        broker: asyncio.Event,
        *,
        is_transactional: bool,
    ) -> None:
        self._traffic = Traffic(login, ledger, chance)
        self._broker = broker
        self._ledger = ledger
        self._chance = chance
        self._is_transactional = is_transactional
        self._allowed = 0
        self._news = asyncio.Event()

    @property
    def count(self) -> int:
        return len(self._ledger.entries)

    @property
    def is_idle(self) -> bool:
        return self.count >= self._allowed

    def allow(self, count: int) -> None:
        self._allowed = max(self._allowed, self.count) + count
        self._news.set()

    async def write(self, count: int) -> None:
        self.allow(count)
        wanted = self._allowed
        await until(lambda: self.count >= wanted, "they were written", deadline_s=DEADLINE_S)

    async def finished(self) -> None:
        await until(lambda: self.is_idle, "all was written", deadline_s=DEADLINE_S)

    async def beyond(self, count: int) -> None:
        await until(lambda: self.count > count, "there was more", deadline_s=10 * DEADLINE_S)

    async def run(self) -> None:
        while True:
            while self.is_idle:
                self._news.clear()
                await self._news.wait()
            await self._broker.wait()
            with contextlib.suppress(KafkaConnectionError):  # gone since: nothing was written
                await self._round()

    async def _round(self) -> None:
        traffic, codec = self._traffic, self._chance.choice(CODECS)
        kind = self._chance.randrange(4) if self._is_transactional else 0
        if kind == 0:
            await traffic.plain(ROUND, codec, is_idempotent=True)
        elif kind == 1:
            await traffic.plain(ROUND, codec)
        else:
            await traffic.transaction(ROUND, codec, is_committed=kind == 2)


class Reading:
    """A consumer that rereads from the start; out of range it goes to the end, so losses show."""

    def __init__(
        self, login: Login, writing: Writing, topic: str, level: str, broker: asyncio.Event
    ) -> None:
        self.count = 0
        self.passes: list[Pass] = []
        self.begun = 0
        """Number of passes begun; the first is number 0."""
        self.finished_number = -1
        self.level = level
        self._login = login
        self._writing = writing
        self._topic = topic
        self._broker = broker

    async def run(self) -> None:
        seen = 0
        while True:
            await self._writing.beyond(seen)
            seen = self._writing.count
            await self._broker.wait()
            with contextlib.suppress(KafkaConnectionError):  # gone since
                await self._pass()

    async def another(self) -> None:
        number = self.begun
        self._writing.allow(1)
        await until(
            lambda: self.finished_number >= number,
            f"a consumer ({self.level}) has read all",
            deadline_s=DEADLINE_S,
        )

    async def _pass(self) -> None:
        number = self.begun
        self.begun += 1
        place = TopicPartition(self._topic, 0)
        found: list[Entry] = []
        client = AIOKafkaConsumer(
            **self._login.for_aiokafka(),
            isolation_level=self.level,
            auto_offset_reset="latest",
            retry_backoff_ms=200,
        )
        try:
            await client.start()
            client.assign([place])
            end = (await client.end_offsets([place]))[place]
            client.seek(place, 0)
            async with asyncio.timeout(DEADLINE_S):
                while await client.position(place) < end:
                    for batch in (await client.getmany(place, timeout_ms=200)).values():
                        found += map(entry_of, batch)
                        self.count += len(batch)
        finally:
            await client.stop()
        self.passes.append(Pass(self.level, end, [one for one in found if one.offset < end]))
        self.finished_number = number


@contextlib.asynccontextmanager
async def jumping_consumer(login: Login, place: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
    """Return a consumer at offset 0 that goes to the end if offset 0 is out of range."""
    client = AIOKafkaConsumer(**login.for_aiokafka(), auto_offset_reset="latest")
    await client.start()
    try:
        client.assign([place])
        client.seek(place, 0)
        yield client
    finally:
        await client.stop()


async def assert_read(login: Login, ledger: Ledger, partition: int = 0, first: int = 0) -> None:
    """Assert that consumers of each isolation level read the ledger's records from *first* on."""
    for level in LEVELS:
        found = await read(login, ledger.topic, level, partition=partition, first=first)
        assert found == ledger.expected(level, partition, first), level


class Clients:
    def __init__(
        self, login: Login, topic: str, chance: random.Random, *, is_transactional: bool
    ) -> None:
        self.ledger = Ledger(topic)
        self.broker = asyncio.Event()
        """Whether a broker accepts connections; existing connections stay."""
        self.broker.set()
        self.writing = Writing(
            login, self.ledger, chance, self.broker, is_transactional=is_transactional
        )
        self.reading = [Reading(login, self.writing, topic, level, self.broker) for level in LEVELS]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def read(self) -> int:
        return sum(one.count for one in self.reading)

    def require_alive(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def all_read(self) -> None:
        await asyncio.gather(*(one.another() for one in self.reading))
        self.require_alive()

    def wrong_passes(self) -> list[str]:
        wrong = []
        for reading in self.reading:
            everything = self.ledger.expected(reading.level, 0)
            for number, done in enumerate(reading.passes):
                wanted = [one for one in everything if one.offset < done.end]
                if done.entries != wanted:
                    missing = {one.offset for one in wanted} - {one.offset for one in done.entries}
                    wrong.append(
                        f"pass {number}, {done.level}, to {done.end}: {len(done.entries)} records"
                        f" in place of {len(wanted)}, missing {sorted(missing)[:10]}"
                    )
        return wrong

    async def __aenter__(self) -> Self:
        running = [self.writing.run(), *(one.run() for one in self.reading)]
        self._tasks = [asyncio.create_task(run) for run in running]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
