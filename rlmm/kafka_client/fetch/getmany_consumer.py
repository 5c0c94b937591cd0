"""
The consumer of one partition, as the fallback reads it: started late, stopped whole.

What the library raises comes through as it is; `getmany` knows what it means.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaConsumer

from rlmm.errors import LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiokafka import ConsumerRecord, TopicPartition

    from rlmm.kafka_client.connections.task_set import TaskSet

FETCH_BYTES = 1024 * 1024
"""What a consumer asks for at first."""
STOP_S = 2.0
"""How long a consumer that stops is waited for."""

_RECORDS_MAX = 500
"""Records of one record set: they are made into a batch on the event loop."""
_UNKNOWN = -1


class PartitionConsumer:
    """The consumer of one partition, started when it is first read, and anew when it died."""

    def __init__(
        self, partition: TopicPartition, options: Mapping[str, object], crew: TaskSet
    ) -> None:
        self.turn = asyncio.Lock()
        self.trouble: LogUnavailable | None = LogUnavailable("its leader has not answered yet")
        """Why the last call of the library came to nothing; None when it did not."""
        self.checked_at = float("-inf")
        self.asked_since = float("inf")
        """Since when the bounds are asked for, over reads, with no answer yet."""
        self.is_suspect = False
        """Whether records were there and none came when that was looked at last."""
        self.fetch_bytes = FETCH_BYTES
        self._partition = partition
        self._options = options
        self._crew = crew
        self._starting: asyncio.Task[AIOKafkaConsumer] | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._next_offset = _UNKNOWN

    @property
    def is_started(self) -> bool:
        """Whether there is a consumer."""
        return self._consumer is not None

    async def take(self, position: int, wait_ms: int) -> tuple[Sequence[ConsumerRecord], int]:
        """The records from *position* on, and the position behind them; raises the library's."""
        consumer = self._consumer or await self._started()
        if position != self._next_offset:
            consumer.seek(self._partition, position)
        self._next_offset = _UNKNOWN  # until it is told: this may be cancelled behind the records
        found = await consumer.getmany(
            self._partition, timeout_ms=wait_ms, max_records=_RECORDS_MAX
        )
        self._next_offset = await consumer.position(self._partition)
        return found.get(self._partition, ()), self._next_offset

    async def _started(self) -> AIOKafkaConsumer:
        """The consumer; a start goes on when who waits for it is cancelled."""
        if self._starting is None:
            self._starting = self._crew.start(self._start(), "start a consumer")
        return await asyncio.shield(self._starting)

    async def _start(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(max_partition_fetch_bytes=self.fetch_bytes, **self._options)
        try:
            await consumer.start()
        except BaseException:
            await _finish(consumer)
            raise
        finally:
            self._starting = None
        consumer.assign([self._partition])
        self._consumer = consumer
        self._next_offset = _UNKNOWN
        return consumer

    async def stop(self) -> None:
        """End the consumer; the next read starts another."""
        if self._starting is not None:
            # Cancelled while it connects, the library would leave the connection behind.
            await asyncio.wait({self._starting}, timeout=STOP_S)
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            # In a task of its own: what the library cancels may cancel whoever waits for it.
            stopping = self._crew.start(_finish(consumer), "stop a consumer")
            await asyncio.wait({stopping}, timeout=STOP_S)


async def _finish(consumer: AIOKafkaConsumer) -> None:
    """
    Stop a consumer, all of it.

    Where a fetch has just failed, the library's own `stop` ends as if it were cancelled before it
    comes to its connections; they would be made anew for ever.
    """
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        # Nothing public closes them any more.
        await consumer._client.close()  # type: ignore[attr-defined]  # noqa: SLF001
        raise
