"""
A log for who asks what happened in it, beside those who follow it.

Reads of one partition may wait for one another where a log is followed; who goes through all of it
from its start must neither wait for that nor hold it up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.errors import LogError
    from rlmm.log.protocol import LogBounds, MetadataLog
    from rlmm.records.record_set import RecordSet


@runtime_checkable
class HistoryReadSource(Protocol):
    """A log that has a way of its own for who reads beside its followers: the `kafka` log."""

    async def read_aside(
        self, partition: int, position: int, *, timeout_s: float, bytes_max: int = 1 << 20
    ) -> RecordSet | None:
        """As `MetadataLog.read`; waits for no read of the same partition, and none waits for it."""


class HistoryReader:
    """Reads a log, whatever of it is followed, and however far that is."""

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
    """Read beside those who follow *log*, by the way that it has for that, if it has one."""
    read = log.read_aside if isinstance(log, HistoryReadSource) else log.read
    return await read(partition, position, timeout_s=timeout_s, bytes_max=bytes_max)
