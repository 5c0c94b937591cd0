# The library has annotations but does not say so to type checkers: what is used is declared here.

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

__version__: str

class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int

class TopicPartition(NamedTuple):
    topic: str
    partition: int

class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int
    log_start_offset: int | None

class ConsumerRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

class BatchBuilder:
    def append(
        self, *, timestamp: int | None, key: bytes | None, value: bytes | None
    ) -> object | None: ...
    def record_count(self) -> int: ...
    def close(self) -> None: ...

class AIOKafkaProducer:
    def __init__(self, **settings: Any) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *error: object) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def create_batch(self) -> BatchBuilder: ...
    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int
    ) -> Awaitable[RecordMetadata]: ...
    async def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...
    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
    ) -> RecordMetadata: ...

class AIOKafkaConsumer:
    def __init__(self, *topics: str, **settings: Any) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def assign(self, partitions: Iterable[TopicPartition]) -> None: ...
    def assignment(self) -> frozenset[TopicPartition]: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    async def position(self, partition: TopicPartition) -> int: ...
    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]: ...
    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...
    async def end_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]: ...
