"""The operations that the contract suite needs of an implementation beside the protocol."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from rlmm.records.batch import Batch, walk

if TYPE_CHECKING:
    from rlmm.log.protocol import MetadataLog
    from rlmm.records.record_set import RecordSet

PARTITION_COUNT = 4
ANSWER_S = 10.0
"""A deadline that no call of the suite ever reaches, unless it is broken."""
SHORT_S = 0.2
"""A deadline that is meant to pass."""


class LogUnderTest(Protocol):
    """One log with an empty topic behind it, and the operations of the outside world on it."""

    @property
    def log(self) -> MetadataLog: ...

    @property
    def value_bytes_max(self) -> int: ...

    @property
    def has_own_timers(self) -> bool: ...

    async def reopen(self, *, is_observer: bool = False) -> MetadataLog: ...

    async def delete_records(self, partition: int, before_offset: int) -> None: ...

    async def pass_time(self, seconds: float) -> None: ...

    def reads_waiting(self) -> int | None:
        """How many reads wait inside the log; None when it cannot say."""


def values_of(record_set: RecordSet | None) -> list[tuple[int, bytes]]:
    assert record_set is not None
    found: list[tuple[int, bytes]] = []
    for batch in walk(record_set.data):
        assert isinstance(batch, Batch), batch
        if not batch.is_control:
            found.extend((offset, value) for offset, value in batch.values() if value is not None)
    return found


async def read_on(log: MetadataLog, partition: int, position: int) -> RecordSet:
    record_set = await log.read(partition, position, timeout_s=ANSWER_S)
    assert record_set is not None
    return record_set


async def read_until(
    log: MetadataLog, partition: int, position: int, next_offset: int, *, bytes_max: int = 1 << 20
) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    while position < next_offset:
        record_set = await log.read(partition, position, timeout_s=ANSWER_S, bytes_max=bytes_max)
        assert record_set is not None
        assert record_set.partition == partition
        found += [each for each in values_of(record_set) if each[0] >= position]
        assert record_set.next_offset is not None
        assert record_set.next_offset > position
        position = record_set.next_offset
    return found


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
