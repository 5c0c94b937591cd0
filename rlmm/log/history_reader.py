"""A reader of a log's history that neither waits for its followers nor delays them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.log.protocol import LogBounds, MetadataLog
    from rlmm.records.record_set import RecordSet


@runtime_checkable
class HistoryReadSource(Protocol):
    """A log with a separate way to read history: the `kafka` log."""

    async def read_aside(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """Read as `MetadataLog.read`, without delay to or by other reads."""


class HistoryReader:
    """Reads a log, also partitions that are not followed, and at any position."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log

    async def bounds(
        self, partitions: Collection[int], *, timeout_s: float
    ) -> Mapping[int, LogBounds | LogError]:
        return await self._log.bounds(partitions, timeout_s=timeout_s)

    async def read(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int
    ) -> RecordSet | None:
        return await read_aside(
            self._log, partition, position, timeout_s=timeout_s, bytes_max=bytes_max
        )


async def read_aside(
    log: MetadataLog, partition: int, position: int, *, timeout_s: float, bytes_max: int
) -> RecordSet | None:
    """Read *log* beside its followers, by its separate way where it has one."""
    read = log.read_aside if isinstance(log, HistoryReadSource) else log.read
    return await read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
