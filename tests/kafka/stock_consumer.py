"""Kafka's own consumer, in Java; one process serves several requests."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.kafka.ledger import Entry
from tests.kafka.process import run_java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.kafka.jars import Jars

STOCK_CONSUMER = "rlmm.kafka.StockConsumer"
DEADLINE_S = 120.0


class Read(NamedTuple):
    partition: int
    first: int = 0

    def form(self) -> Mapping[str, int]:
        return {"read": self.partition, "first": self.first}


class OffsetAt(NamedTuple):
    partition: int
    timestamp_ms: int

    def form(self) -> Mapping[str, int]:
        return {"time": self.timestamp_ms, "partition": self.partition}


class Bounds(NamedTuple):
    partition: int

    def form(self) -> Mapping[str, int]:
        return {"bounds": self.partition}


class StockConsumer:
    def __init__(self, jars: Jars, bootstrap: str, topic: str, level: str) -> None:
        self._jars = jars
        self._where = (bootstrap, topic, level)

    async def read(self, *wanted: Read) -> list[list[Entry]]:
        return [[_entry(*record) for record in answer] for answer in await self._ask(wanted)]

    async def offsets_at(self, *wanted: OffsetAt) -> list[int | None]:
        return await self._ask(wanted)

    async def bounds(self, *partitions: int) -> list[tuple[int, int]]:
        answers = await self._ask([Bounds(partition) for partition in partitions])
        return [(answer["first"], answer["end"]) for answer in answers]

    async def _ask(self, questions: Sequence[Read | OffsetAt | Bounds]) -> list[Any]:
        asked = [json.dumps(question.form()) for question in questions]
        said = await asyncio.to_thread(
            run_java, self._jars, STOCK_CONSUMER, *self._where, *asked, deadline_s=DEADLINE_S
        )
        answers = [json.loads(line) for line in said.out.splitlines()]
        assert len(answers) == len(asked), said
        return answers


def _entry(
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: str | None,
    value: str | None,
    headers: Sequence[tuple[str, str]],
) -> Entry:
    read = tuple((name, base64.b64decode(content)) for name, content in headers)
    return Entry(partition, offset, timestamp_ms, _bytes(key), _bytes(value), read)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
