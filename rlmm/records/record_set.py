"""The unit in which a log hands its records over. Only the value; `batch.walk` reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RecordSet:
    """
    The bytes of record batches of one partition, as a fetch or a `.log` file holds them.

    The first batch may begin below the offset requested, and the last one may be cut off.
    *next_offset* is the position behind the last whole batch, exclusive, or None where the batches
    say it: after compaction it may lie beyond that batch's own end.
    """

    partition: int
    data: bytes
    next_offset: int | None = None
